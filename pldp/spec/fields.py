"""What the models of spec and plan are made of: exact numbers, names and text as an author writes them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic_core import core_schema

from pldp.channels.exact import parse_ratio
from pldp.errors import BrokenRule, quoted

Ratio = Annotated[Fraction, BeforeValidator(parse_ratio), PlainSerializer(str)]
NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
Name = Annotated[str, Field(pattern=NAME)]
Text = Annotated[str, Field(min_length=1), AfterValidator(lambda text: _writable(text))]
Prose = Annotated[str, Field(min_length=1, max_length=5000), AfterValidator(lambda text: _writable(text))]
Whole = Annotated[int, BeforeValidator(lambda value: no_truth(value, "a whole number"))]
Value = Annotated[
    str,
    Field(min_length=1, max_length=200),
    AfterValidator(lambda text: _writable(text)),
    BeforeValidator(lambda value: _as_text(value)),
    WithJsonSchema({"type": ["string", "number"], "minLength": 1, "maxLength": 200}),
]


def _as_text(value: object) -> object:
    """YAML reads `yes` as a truth value and `1` as a number; data are text."""
    if isinstance(value, bool) or value is None:
        raise ValueError("must be text: put it in quotes")
    return str(value) if isinstance(value, int | float) else value


def _writable(text: str) -> str:
    """YAML's escapes can spell what no file name holds; half a character is refused by the length check before."""
    if "\0" in text:
        raise ValueError("must not hold the character \\0")
    return text


def no_truth(value: object, instead: str = "a number") -> object:
    """ValueError for true and false, which would count as 1 and 0."""
    if isinstance(value, bool):
        raise ValueError(f"must be {instead}")
    return value


class Model(BaseModel):
    """A part of the spec."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Frozen(BaseModel):
    """A part of the plan."""

    model_config = ConfigDict(extra="forbid", frozen=True, ignored_types=(cached_property,))


def each_or_all(value: Any) -> str:
    """The tag of a field that takes a section, or one value that stands for all of it."""
    return "each" if isinstance(value, dict | Model) else "all"


def kind_of(value: Any, default: str) -> str:
    """The kind that a section states, by which its model is chosen; empty where it is no text."""
    kind = value.get("kind", default) if isinstance(value, dict) else getattr(value, "kind", default)
    return kind if isinstance(kind, str) else ""


def check_complete(field: str, what: str, one: str, named: Collection[str], declared: Collection[str]) -> None:
    """A mapping of the spec gives `what` to each declared `one`, of the field `one`s, and to nothing else."""
    unknown, missing = sorted(set(named) - set(declared)), sorted(set(declared) - set(named))
    if unknown:
        raise BrokenRule(f"names {one}s that {one}s does not have: {', '.join(unknown[:5])}", field=field)
    if missing:
        raise BrokenRule(f"must give {what} to every {one}; there is none for {', '.join(missing[:5])}", field=field)


def check_different(field: str, values: Iterable[object]) -> None:
    """BrokenRule where one of the field's values stands twice, and which."""
    seen: set[object] = set()
    for value in values:
        if value in seen:
            raise BrokenRule("must differ from each other", field=field, value=f"{quoted(value)} more than once")
        seen.add(value)


@dataclass(frozen=True)
class OneOf:
    """Of a field that names something of a registry: its names are the registry's, for editors too."""

    names: tuple[str, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> core_schema.CoreSchema:
        return core_schema.no_info_after_validator_function(self._known, handler(source))

    def __get_pydantic_json_schema__(self, core: Any, handler: Any) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.names)}

    def _known(self, name: str) -> str:
        if name not in self.names:
            raise BrokenRule(f"must be one of {', '.join(self.names)}")
        return name
