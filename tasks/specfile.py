"""Reading a spec file: its errors in the words of the file, and its identity."""

from __future__ import annotations

import difflib
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError

from pldp.errors import SpecError
from pldp.plan import Plan, make_plan
from pldp.spec import Category, Crosstab, Spec

NOTHING = "Nothing was run."
_TAGS = {"category", "crosstab"}
_QUOTED = 80


@dataclass(frozen=True)
class SpecFile:
    """A valid spec, the plan it resolves to, and where its paths start."""

    path: Path
    spec: Spec
    plan: Plan

    @property
    def public(self) -> str:
        """The spec as it is published, in JSON: files by their names, for where they lie is nobody's business.

        It is also what identifies the spec, so that moving a file does not make another release of it.
        """
        content = self.spec.model_dump(mode="json")
        for holder in (content["source"], content["combination"]["reference"] or {}):
            for key in {"path", "reports"} & set(holder):
                holder[key] = None if holder[key] is None else Path(holder[key]).name
        return json.dumps(content, ensure_ascii=False)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.public.encode()).hexdigest()

    @property
    def source(self) -> Path:
        """The file of raw rows, or the folder of clients' reports."""
        return self.resolve(self.spec.source.path or self.spec.source.reports or "")

    def resolve(self, path: str) -> Path:
        """Paths in a spec are relative to the spec."""
        return (self.path.parent / path).resolve()


def load_spec(path: Path, source: Path | None = None) -> SpecFile:
    """Read and validate a spec whole; `source` takes the place of its source's path."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SpecError(f"{path}: no such spec. Check the path. {NOTHING}") from None
    except (OSError, UnicodeDecodeError):
        raise SpecError(f"{path}: the spec must be a readable UTF-8 text file. {NOTHING}") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" near line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        raise SpecError(f"{path}: the spec is not valid YAML{where}. Check indentation and quotes. {NOTHING}") from None
    if not isinstance(content, dict):
        raise SpecError(f"{path}: the spec must be a mapping with name, source, attributes, budget, levels. {NOTHING}")
    if source is not None and isinstance(content.get("source"), dict):
        content["source"] = {**content["source"], "path": str(source.resolve())}
    try:
        spec = Spec.model_validate(content)
        plan = make_plan(spec)
    except ValidationError as error:
        lines = [_explain(problem, content) for problem in error.errors()]
        # A broken element also empties its list; the reader needs only the first cause.
        found = [line for line in lines if "after validation" not in line] or lines
        raise SpecError("\n".join(f"{path}: {line}" for line in found) + f"\n{NOTHING}") from None
    except ValueError as error:
        raise SpecError(f"{path}: budget.total: {error}. {NOTHING}") from None
    return SpecFile(path=path, spec=spec, plan=plan)


def _explain(problem: Any, content: dict[str, Any]) -> str:
    steps = [step for step in problem["loc"] if step not in _TAGS]
    field = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).lstrip(".")
    rule = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "extra_forbidden":
        known = _known_keys(steps[:-1], content)
        near = difflib.get_close_matches(str(steps[-1]), known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(sorted(known))}"
        return f"{field} is not a key of the spec; {hint}"
    if problem["type"] == "missing":
        return f"{field} is required"
    got = problem["input"]
    if not field:
        return rule  # a rule across keys names them itself
    if isinstance(got, dict | list | tuple | BaseModel):
        return f"{field}: {_lower(rule)}"
    shown = repr(got) if len(repr(got)) <= _QUOTED else repr(got)[:_QUOTED] + "…"
    return f"{field}: {_lower(rule)} (got {shown})"


def _lower(rule: str) -> str:
    return rule[:1].lower() + rule[1:]


def _known_keys(steps: list[Any], content: Any) -> list[str]:
    """The keys a spec may have at this place, found by walking the model beside the content."""
    model: Any = Spec
    for step in steps:
        content = content[step] if isinstance(content, dict | list) else None
        if isinstance(step, int):
            kind = content.get("kind") if isinstance(content, dict) else None
            model = Crosstab if kind == "crosstab" else Category
        else:
            annotation = model.model_fields[step].annotation if step in model.model_fields else None
            options = [annotation, *getattr(annotation, "__args__", ())]
            model = next((o for o in options if isinstance(o, type) and issubclass(o, BaseModel)), model)
    return list(model.model_fields)
