"""Reading a spec file: its errors in the words of the file, and its identity."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from pldp.errors import SourceError, SpecError
from pldp.questions.plan import Plan
from pldp.questions.specs import PEOPLE, SPECS, AnySpec
from pldp.tasks import plainyaml
from pldp.tasks.public import read_public
from pldp.tasks.specerrors import NOTHING, broken_rules, printable, short
from pldp.tasks.stamps import Stamp, require_unchanged, stamp

Given = dict[str, str | int | None] | None
"""What a command line says of the runner, under the keys of the spec; a place to run (`dask`) replaces the section."""
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

    @property
    def public(self) -> str:
        """The spec as it is published, in JSON."""
        return published(self.spec.model_dump(mode="json"))

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
        return [self.resolve(path) for path in self.spec.files()]

    @property
    def source(self) -> Path:
        """The file of raw rows, or the folder of clients' reports."""
        return self.inputs[0]

    @property
    def users(self) -> Path | None:
        return None if self.spec.users is None else self.resolve(self.spec.users.path)

    def refuse_release(self) -> None:
        """What only an evaluation may do."""
        for reason in (self.spec.refusal, *(question.refusal for question in self.plan.questions)):
            if reason is not None:
                raise SpecError(f"{self.path}: {reason}. {NOTHING}")

    def refuse_evaluation(self) -> None:
        """What only a release may do. `plan` may ask for either, as it does neither."""
        if self.spec.source.reports is not None:
            raise SpecError(
                f"{self.path}: source.reports holds no truth to compare with; an evaluation needs path. {NOTHING}"
            )

    def plan_at(self, total: Fraction) -> Plan:
        """The plan of the same spec with another total; ValueError where there is none."""
        return SPECS[self.spec.kind].plan(self.spec, self.tables, total)


def resolve(spec: Path, path: str) -> Path:
    """Paths in a spec are relative to the spec."""
    # Path.resolve has an error of its own for a link to itself; the reader's is clearer.
    return Path(os.path.realpath(spec.parent / path))


def published(content: Any) -> str:
    """A spec in JSON, its files by their names: where they lie is nobody's business.

    So moving a file does not make another release of the spec.
    """

    def nameless(part: Any) -> Any:
        if isinstance(part, dict):
            return {
                key: Path(value).name if key in ("path", "reports") and isinstance(value, str) else nameless(value)
                for key, value in part.items()
            }
        return [nameless(one) for one in part] if isinstance(part, list) else part

    return json.dumps(nameless(content), ensure_ascii=False)


def load_spec(path: Path, source: Path | None = None, runner: Given = None, *, evaluation: bool = False) -> SpecFile:
    """Read and validate a spec whole; `source` and `runner` take the place of what it says of them.

    An evaluation may ask for what no release does.
    """
    content = read_content(path, source, runner)
    kind = content.get("kind", PEOPLE)
    known = SPECS.get(kind) if isinstance(kind, str) else None
    if known is None:
        raise SpecError(f"{path}: kind must be {', '.join(SPECS)} (got {short(repr(kind))}). {NOTHING}")
    if kind == PEOPLE:
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
        raise SpecError(f"{path}: {error}. {NOTHING}") from None
    require_unchanged(read, NOTHING)
    return SpecFile(path=path, spec=spec, plan=plan, tables=tables, read=read)


def _refuse_unusable(spec: AnySpec, path: Path, *, evaluation: bool) -> None:
    """What the spec's own words cannot tell: files that are missing or the same, and what only an evaluation may read.

    That the table of users is missing is told by `plan` already, which reads nobody's choice.
    """
    if "sensitivity.scores" in spec.public_tables() and not evaluation:
        raise SpecError(
            f"{path}: sensitivity.scores is for `pldp evaluate`: raw scores are personal data and would shape a "
            "published plan. Collect scores in a release of their own and declare the levels that `pldp levels` "
            f"gives. {NOTHING}"
        )
    if spec.users is None or spec.source.path is None:
        return
    users, rows = resolve(path, spec.users.path), resolve(path, spec.source.path)
    if not users.is_file():
        raise SourceError(f"{users}: no such file of users. Correct users.path in the spec. {NOTHING}")
    if rows.exists() and rows.samefile(users):
        try:
            spec.check_one_file()
        except ValueError as error:
            raise SpecError(f"{path}: {error}. {NOTHING}") from None


def read_content(path: Path, source: Path | None = None, runner: Given = None) -> dict[str, Any]:
    """The file's keys and values, not yet looked at."""
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "not a regular file")  # a pipe would be waited for
        if found.st_size > _LARGEST:
            raise SpecError(f"{path}: a spec has at most {_LARGEST >> 20} MB. Is this the data? {NOTHING}")
        content = plainyaml.load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(f"{path}: no such spec. Check the path. {NOTHING}") from None
    except (OSError, UnicodeDecodeError):
        raise SpecError(f"{path}: the spec must be a readable UTF-8 text file. {NOTHING}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" near line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        told = [getattr(error, part, None) for part in ("context", "problem")]
        rule = ", ".join(printable(part) for part in told if part) or "a character that no text has"
        raise SpecError(
            f"{path}: the spec is not valid YAML{where}: {rule}. Check indentation and quotes. {NOTHING}"
        ) from None
    if not isinstance(content, dict):
        raise SpecError(f"{path}: the spec must be a mapping with name, source, attributes, budget, levels. {NOTHING}")
    content = dict(content)
    if source is not None and isinstance(content.get("source"), dict):
        # A spec of clients' reports has a folder where others have a file.
        key = "reports" if "reports" in content["source"] and "path" not in content["source"] else "path"
        content["source"] = {**content["source"], key: os.path.realpath(source)}
    if runner:
        stated = content.get("runner", {})
        kept = stated if isinstance(stated, dict) and "dask" not in runner else {}
        content["runner"] = {**kept, **runner}
    return content
