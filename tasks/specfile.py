"""Reading a spec file: its errors in the words of the file, and its identity."""

from __future__ import annotations

import difflib
import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError

from pldp.errors import SpecError
from pldp.questions.histograms.plan import Plan
from pldp.questions.histograms.resolve import make_plan
from pldp.spec.release import Spec
from pldp.tasks import plainyaml

NOTHING = "Nothing was run."
HISTOGRAMS, AGGREGATES, ITEMS = KINDS = ("histograms", "aggregates", "items")
"""Kinds of releases."""
Given = dict[str, str | int | None] | None
"""What a command line says of the runner, under the keys of the spec; a place to run (`dask`) replaces the section."""
_QUOTED = 80
_LARGEST = 16 << 20
"""Bytes of a spec: somebody who names the data by mistake is told at once."""
_LINES = 20
"""Broken rules told at once."""
_WORDS = {
    "model_type": "must be a mapping of keys to values",
    "model_attributes_type": "must be a mapping of keys to values",
    "dict_type": "must be a mapping of keys to values",
    "tuple_type": "must be a list",
    "invalid_key": "every key must be text",
    "string_unicode": "must be text that UTF-8 can write",
}
"""Rules that the library states in its own language."""


@dataclass(frozen=True)
class FiledSpec:
    """A valid spec of whatever kind: what identifies it, and where its paths start."""

    path: Path

    @property
    def public(self) -> str:
        """The spec as it is published, in JSON; it is also what identifies the spec."""
        raise NotImplementedError

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.public.encode()).hexdigest()

    def resolve(self, path: str) -> Path:
        return resolve(self.path, path)


@dataclass(frozen=True)
class SpecFile(FiledSpec):
    """A spec of histograms and the plan it resolves to."""

    spec: Spec
    plan: Plan

    @property
    def public(self) -> str:
        content = self.spec.model_dump(mode="json")
        return published(content, content["source"], content["combination"]["reference"])

    @property
    def source(self) -> Path:
        """The file of raw rows, or the folder of clients' reports."""
        return self.resolve(self.spec.source.path or self.spec.source.reports or "")


def resolve(spec: Path, path: str) -> Path:
    """Paths in a spec are relative to the spec."""
    # Path.resolve has an error of its own for a link to itself; the reader's is clearer.
    return Path(os.path.realpath(spec.parent / path))


def published(content: dict[str, Any], *holders: dict[str, Any] | None) -> str:
    """A spec in JSON, the files of `holders` by their names: where they lie is nobody's business.

    So moving a file does not make another release of the spec.
    """
    for holder in holders:
        for key in ("path", "reports"):
            if holder is not None and holder.get(key) is not None:
                holder[key] = Path(holder[key]).name
    return json.dumps(content, ensure_ascii=False)


def load_spec(path: Path, source: Path | None = None, runner: Given = None) -> SpecFile:
    """Read and validate a spec whole; `source` and `runner` take the place of what it says of them."""
    content = read_content(path, source, runner)
    kind = content.pop("kind", HISTOGRAMS)
    if kind != HISTOGRAMS:
        others = f"specs of kind {AGGREGATES} or {ITEMS} are for `pldp release`, `plan` and `evaluate`, not scheduled"
        known = f"kind must be {HISTOGRAMS} here; {others}" if kind in KINDS else f"kind must be {', '.join(KINDS)}"
        raise SpecError(f"{path}: {known} (got {_short(repr(kind))}). {NOTHING}")
    try:
        spec = Spec.model_validate(content)
        plan = make_plan(spec)
    except ValidationError as error:
        raise broken_rules(path, error, content, Spec) from None
    except ValueError as error:
        raise SpecError(f"{path}: {error}. {NOTHING}") from None
    return SpecFile(path=path, spec=spec, plan=plan)


def kind_of(path: Path) -> str:
    """Which kind of release a spec asks for; histograms unless it says so."""
    return str(read_content(path).get("kind", HISTOGRAMS))


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
        rule = ", ".join(_printable(part) for part in told if part) or "a character that no text has"
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


def broken_rules(path: Path, error: ValidationError, content: dict[str, Any], root: type[BaseModel]) -> SpecError:
    """Every broken rule in the words of the file; `root` is the model that the file was read as."""
    lines = [_explain(problem, content, root) for problem in error.errors()]
    # A broken element also empties its list; the reader needs only the first cause.
    found = list(dict.fromkeys(line for line in lines if "after validation" not in line)) or lines
    more = [f"… and {len(found) - _LINES} more"] if len(found) > _LINES else []
    return SpecError("\n".join(f"{path}: {line}" for line in found[:_LINES] + more) + f"\n{NOTHING}")


def _explain(problem: Any, content: dict[str, Any], root: type[BaseModel]) -> str:
    steps = _steps(problem, content)
    field = "".join(f"[{step}]" if isinstance(step, int) else f".{_printable(step)}" for step in steps).lstrip(".")
    rule = _WORDS.get(problem["type"], problem["msg"].removeprefix("Value error, "))
    if problem["type"] == "extra_forbidden":
        known = _known_keys(steps[:-1], content, root)
        near = difflib.get_close_matches(str(steps[-1])[:_QUOTED], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(sorted(known))}"
        return f"{field} is not a key of the spec; {hint}"
    if problem["type"] == "missing":
        return f"{field} is required"
    got = problem["input"]
    if not field:
        return rule  # a rule across keys names them itself
    if isinstance(got, dict | list | tuple | BaseModel):
        return f"{field}: {_lower(rule)}"
    return f"{field}: {_lower(rule)} (got {_short(repr(got))})"


def _steps(problem: Any, content: Any) -> list[Any]:
    """Where in the file: pydantic also names the kinds it tried on the way, which no author wrote."""
    steps: list[Any] = []
    for step in problem["loc"]:
        inside = step in content if isinstance(content, dict) else isinstance(content, list) and isinstance(step, int)
        if inside:
            content = content[step]
            steps.append(step)
    last = problem["loc"][-1:]
    return [*steps, *last] if problem["type"] == "missing" and steps[-1:] != list(last) else steps


def _printable(name: object) -> str:
    """A key as it stands there, unless it would write over the terminal."""
    shown = str(name)
    return _short(shown if shown.isprintable() else repr(shown))


def _short(shown: str) -> str:
    return shown if len(shown) <= _QUOTED else shown[:_QUOTED] + "…"


def _lower(rule: str) -> str:
    return rule[:1].lower() + rule[1:]


def _known_keys(steps: list[Any], content: Any, root: type[BaseModel]) -> list[str]:
    """The keys a spec may have at this place, found by walking the model beside the content."""
    model, options = root, [root]
    for step in steps:
        content = content[step] if isinstance(content, dict | list) else None
        if step in model.model_fields:  # the place in a list is none
            options = list(_models(model.model_fields[step].annotation))
        model = max(options, key=lambda option: _fits(option, content), default=model)
    return list(model.model_fields)


def _fits(model: type[BaseModel], content: Any) -> tuple[bool, int]:
    """Of several that a place allows the author meant the one of this kind, else the one with most of these keys."""
    keys = content if isinstance(content, dict) else {}
    kinds = get_args(model.model_fields["kind"].annotation) if "kind" in model.model_fields else ()
    return keys.get("kind") in kinds, len(set(keys) & set(model.model_fields))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models that an annotation allows, however deep in it."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _models(part)
