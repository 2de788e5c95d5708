"""Reading a spec file: its errors in the words of the file, and its identity."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from pldp.errors import Outcome, SourceError, SpecError, quoted
from pldp.questions.plan import Plan
from pldp.questions.several import entries_of
from pldp.questions.source import roles
from pldp.questions.specs import KINDS_STATED, SPECS, AnySpec, known_kind
from pldp.spec.columns import check_roles
from pldp.spec.runner import RunnerOptions
from pldp.spec.source import SUFFIXES
from pldp.tasks import plainyaml
from pldp.tasks.public import read_public
from pldp.tasks.sources.listing import files_at, names_many
from pldp.tasks.specerrors import broken_rules, printable
from pldp.tasks.stamps import Stamp, require_unchanged, stamp

_LARGEST = 16 << 20
"""Bytes of a spec: somebody who names the data by mistake is told at once."""


@dataclass(frozen=True)
class SpecFile:
    """A valid spec, the plan it resolves to, what identifies both, and where its paths start."""

    path: Path
    spec: AnySpec
    plan: Plan
    tables: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """What its public files hold, by the field of the spec that names them."""
    read: tuple[Stamp, ...] = field(default=(), compare=False)
    """Those files, as they were when they were read."""
    landed: Path | None = None
    """Where the rows of a server are exported to (tasks/landing.py)."""

    @property
    def public(self) -> str:
        """The spec as it is published, in JSON."""
        return published(self.spec.model_dump(mode="json"), (*_PLACES, "inbox"))

    @property
    def identity(self) -> str:
        """What the spec says, as a hash: a key that a later version adds does not make another release of it."""
        stated = published(self.spec.model_dump(mode="json", exclude_defaults=True))
        return hashlib.sha256(stated.encode()).hexdigest()

    def resolve(self, path: str) -> Path:
        return resolve(self.path, path)

    @property
    def inputs(self) -> list[Path]:
        """Everything whose content makes another release."""
        return [self.source, *(self.resolve(path) for path in self.spec.files()[1:])]

    @property
    def source(self) -> Path:
        """The file of raw rows, or the folder of clients' reports; of a server's rows their export, if it is there."""
        return (self.landed or Path()) if self.spec.source.remote else self.resolve(self.spec.files()[0])

    @property
    def reports(self) -> Path | None:
        """The folder of clients' reports, if that is the source."""
        return None if self.spec.source.reports is None else self.source

    @property
    def users(self) -> Path | None:
        return None if self.spec.users is None else self.resolve(self.spec.users.path)

    def refuse_release(self) -> None:
        """What only an evaluation may do."""
        for reason in (self.spec.refusal, *(question.refusal for question in self.plan.questions)):
            if reason is not None:
                raise SpecError(reason, Outcome.NOTHING_RUN, file=self.path)

    def refuse_evaluation(self) -> None:
        """What only a release may do. `plan` may ask for either, as it does neither."""
        if self.spec.source.reports is not None:
            rule = "holds no truth to compare with; an evaluation needs path"
            raise SpecError(rule, Outcome.NOTHING_RUN, file=self.path, field="source.reports")

    def plan_at(self, total: Fraction) -> Plan:
        """The plan of the same spec with another total; ValueError where there is none."""
        return SPECS[self.spec.kind].plan(self.spec, self.tables, total)


def resolve(spec: Path, path: str) -> Path:
    """Paths in a spec are relative to the spec."""
    # Path.resolve has an error of its own for a link to itself; the reader's is clearer.
    return Path(os.path.realpath(spec.parent / path))


_PLACES = ("path", "reports")
"""Keys of a spec that hold paths. An inbox is named apart: what identifies a release has had all of its path."""


def published(content: Any, places: Collection[str] = _PLACES) -> str:
    """A spec in JSON, its files by their names: where they lie is nobody's business, nor what a release is."""

    def nameless(part: Any) -> Any:
        if isinstance(part, dict):
            return {
                key: Path(value).name if key in places and isinstance(value, str) else nameless(value)
                for key, value in part.items()
            }
        return [nameless(one) for one in part] if isinstance(part, list) else part

    return json.dumps(nameless(content), ensure_ascii=False)


def load_spec(
    path: Path, source: Path | None = None, runner: RunnerOptions = None, *, evaluation: bool = False
) -> SpecFile:
    """Read and validate a spec whole; `source` and `runner` take the place of what it says of them.

    An evaluation may ask for what no release does.
    """
    content = read_content(path, source, runner)
    known = known_kind(content)
    if known is None:
        raise SpecError(KINDS_STATED, Outcome.NOTHING_RUN, file=path, value=quoted(content.get("kind")))
    if not known.model.model_fields["kind"].is_required():
        content.pop("kind", None)
    try:
        spec = known.model.model_validate(content)
    except ValidationError as error:
        raise broken_rules(path, error, content, known.model) from None
    _refuse_unusable(spec, path, evaluation=evaluation)
    files = [resolve(path, str(table.path)) for table in spec.public_tables().values()]
    read = tuple(stamp(file) for file in files if file.is_file())
    tables = read_public(spec, lambda name: resolve(path, name))
    try:
        plan = known.plan(spec, tables, None)
    except ValueError as error:
        raise SpecError.broken(error, Outcome.NOTHING_RUN, file=path) from None
    require_unchanged(read, Outcome.NOTHING_RUN)
    file = SpecFile(path=path, spec=spec, plan=plan, tables=tables, read=read)
    _refuse_roles(file)
    return file


def _refuse_unusable(spec: AnySpec, path: Path, *, evaluation: bool) -> None:
    """What the spec's own words cannot tell: files that are missing or the same, and what only an evaluation may read.

    That the table of users is missing is told by `plan` already, which reads nobody's choice.
    """
    if "sensitivity.scores" in spec.public_tables() and not evaluation:
        raise SpecError(
            "is for `pldp evaluate`: raw scores are personal data and would shape a published plan",
            Outcome.NOTHING_RUN,
            file=path,
            field="sensitivity.scores",
            remedy="Collect scores in a release of their own and declare the levels that `pldp levels` gives.",
        )
    for entry in entries_of(spec):
        if entry.users is not None and entry.source.path is not None:
            users = resolve(path, entry.users.path)
            if not names_many(users) and not users.is_file():
                raise SourceError(
                    "no such file of users", Outcome.NOTHING_RUN, file=users, remedy="Correct users.path in the spec."
                )


def _refuse_roles(file: SpecFile) -> None:
    """A column of a file that is read twice has one role: how many made a choice is public, a value is not."""
    read: list[tuple[Any, str | None, list[dict[str, str | None]]]] = []
    for number, table in enumerate(SPECS[file.spec.kind].reads(file.spec, file.plan, file.tables)):
        prefix = f"questions[{number}]." if len(entries_of(file.spec)) > 1 else ""
        for section, by_role in roles(table):
            named = [{f"{prefix}{field}": column for field, column in role.items()} for role in by_role]
            here = set() if section.path is None else files_at(file.resolve(section.path))
            for there, its_table, others in read:
                if here & there and its_table == section.table:
                    try:
                        check_roles(*({**one, **two} for one, two in zip(others, named, strict=True)))
                    except ValueError as error:
                        raise SpecError.broken(error, Outcome.NOTHING_RUN, file=file.path) from None
            read.append((here, section.table, named))


def read_content(path: Path, source: Path | None = None, runner: RunnerOptions = None) -> dict[str, Any]:
    """The file's keys and values, not yet looked at."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")  # a pipe would be waited for
        if status.st_size > _LARGEST:
            raise SpecError(
                f"a spec has at most {_LARGEST >> 20} MB", Outcome.NOTHING_RUN, file=path, remedy="Is this the data?"
            )
        content = plainyaml.load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError("no such spec", Outcome.NOTHING_RUN, file=path, remedy="Check the path.") from None
    except (OSError, UnicodeDecodeError):
        raise SpecError("the spec must be a readable UTF-8 text file", Outcome.NOTHING_RUN, file=path) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        parts = [getattr(error, part, None) for part in ("context", "problem")]
        rule = ", ".join(printable(part) for part in parts if part) or "a character that no text has"
        raise SpecError(
            f"the spec is not valid YAML: {rule}",
            Outcome.NOTHING_RUN,
            file=path,
            line=mark.line + 1 if mark else None,
            column=mark.column + 1 if mark else None,
            remedy="Check indentation and quotes.",
        ) from None
    if not isinstance(content, dict):
        raise SpecError(
            "the spec must be a mapping with name, source, attributes, budget, levels", Outcome.NOTHING_RUN, file=path
        )
    content = dict(content)
    if source is not None and "questions" in content and not isinstance(content.get("source"), dict):
        rule = "names one table, and the spec reads several"
        raise SpecError(rule, Outcome.NOTHING_RUN, file=path, field="--source", remedy="Change the spec.")
    if source is not None and isinstance(content.get("source"), dict):
        # A spec of clients' reports has a folder where others have a file.
        stated = content["source"]
        key = "reports" if {"reports", "inbox"} & stated.keys() and "path" not in stated else "path"
        content["source"] = _elsewhere({**stated, key: os.path.realpath(source)})
    if runner:
        stated = content.get("runner", {})
        kept = stated if isinstance(stated, dict) and "dask" not in runner else {}
        content["runner"] = {**kept, **runner}
    return content


def _elsewhere(section: dict[str, Any]) -> dict[str, Any]:
    """The section of a source that a file takes the place of: another format than is stated goes with its settings."""
    stated, path = section.get("format"), section.get("path")
    if stated is None or path is None or (stated != "postgres" and SUFFIXES.get(Path(path).suffix, stated) == stated):
        return section
    return {key: value for key, value in section.items() if key not in ("format", "table", "connection")}
