"""A spec's broken rules in the words of the file: where, which rule, what was there, and what was meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pldp.errors import BrokenRule, Outcome, Problem, SpecError, quoted, short
from pldp.spec.fields import NAME

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
_PATTERNS = {
    NAME: "must be 1 to 64 letters (a to z), digits, `_`, `.` or `-`, the first a letter or digit; labels take any text"
}
"""Patterns in words."""


def broken_rules(path: Path, error: ValidationError, content: dict[str, Any], root: type[BaseModel]) -> SpecError:
    """Every broken rule in the words of the file; `root` is the model that the file was read as."""
    broken = error.errors()
    problems = _together([_problem(one, content, root) for one in broken if not _follows(one, broken)])
    more = [Problem(f"… and {len(problems) - _LINES} more")] if len(problems) > _LINES else []
    return SpecError.of([replace(one, file=str(path)) for one in problems[:_LINES] + more], Outcome.NOTHING_RUN)


def _together(problems: Sequence[Problem]) -> list[Problem]:
    """Each once; the forms that one value of a field might have had are one problem."""
    joined: dict[tuple[str, str | None], Problem] = {}
    for one in dict.fromkeys(problems):
        key = (one.field, one.value) if one.value is not None else (str(one), None)
        first = joined.setdefault(key, one)
        joined[key] = first if first is one else replace(first, rule=f"{first.rule}, or {one.rule}")
    return list(joined.values())


def _follows(problem: ErrorDetails, broken: Sequence[ErrorDetails]) -> bool:
    """A broken element also empties its list; the reader needs only the first cause."""
    depth = len(problem["loc"])
    inside = (len(one["loc"]) > depth and one["loc"][:depth] == problem["loc"] for one in broken)
    return problem["type"] == "too_short" and any(inside)


def _problem(problem: ErrorDetails, content: dict[str, Any], root: type[BaseModel]) -> Problem:
    steps = _steps(problem, content)
    field = "".join(f"[{step}]" if isinstance(step, int) else f".{printable(step)}" for step in steps).lstrip(".")
    if problem["type"] == "extra_forbidden":
        known = _known_keys(steps[:-1], content, root)
        near = difflib.get_close_matches(short(str(steps[-1])), known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"known keys: {', '.join(sorted(known))}"
        return Problem(f"is not a key of the spec; {hint}", field=field)
    if problem["type"] == "missing":
        return Problem("is required", field=field)
    cause = problem.get("ctx", {}).get("error")
    if isinstance(cause, BrokenRule):
        stated = cause.problem.inside(field)
    else:
        words = _PATTERNS.get(problem.get("ctx", {}).get("pattern", ""), problem["msg"])
        rule = _WORDS.get(problem["type"], words) if cause is None else str(cause)
        stated = Problem(rule[:1].lower() + rule[1:], field=field)
    got = problem["input"]
    if problem["type"] == "kind" and isinstance(got, dict):
        got = got.get("kind", got)
    # A rule across keys names them itself.
    if not field or stated.field != field or stated.value or isinstance(got, dict | list | tuple | BaseModel):
        return stated
    return replace(stated, value=quoted(got))


def _steps(problem: ErrorDetails, content: Any) -> list[Any]:
    """Where in the file: pydantic also names the kinds it tried on the way, which no author wrote."""
    steps: list[Any] = []
    for step in problem["loc"]:
        inside = step in content if isinstance(content, dict) else isinstance(content, list) and isinstance(step, int)
        if inside:
            content = content[step]
            steps.append(step)
    last = problem["loc"][-1:]
    return [*steps, *last] if problem["type"] == "missing" and steps[-1:] != list(last) else steps


def printable(name: object) -> str:
    """A key as it stands there, unless it would write over the terminal."""
    shown = str(name)
    return short(shown if shown.isprintable() else repr(shown))


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
