"""What a spec says for readers: a title, a description, and labels. It is published text, and no part of a release.

A label changes nothing that is drawn, so changing it makes no other release: a spec's wording is stored beside what
identifies the spec, and a page takes it from there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any

from pydantic import Field

from pldp.errors import BrokenRule, quoted
from pldp.spec.fields import Prose, Value

Label = Annotated[Value | None, Field(exclude=True)]
Description = Annotated[Prose | None, Field(exclude=True)]
Labels = Annotated[dict[Value, Value] | None, Field(exclude=True)]
"""Fields of specs: excluded from what is stored as the spec, which identifies it."""


@dataclass(frozen=True)
class Wording:
    title: str | None = None
    description: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    """Labels of attributes."""
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Labels of values, by attribute; items have the attribute "" ."""

    def attribute(self, name: str) -> str:
        return self.attributes.get(name, name)

    def value(self, attribute: str, value: str) -> str:
        return self.values.get(attribute, {}).get(value, value)

    def as_json(self) -> dict[str, Any]:
        return {name: part for name, part in asdict(self).items() if part}

    @staticmethod
    def from_json(stored: Any) -> Wording:
        """Whatever of it is sound: a page does without the rest."""
        stored = stored if isinstance(stored, Mapping) else {}
        title, description = (str(stored[key]) if stored.get(key) else None for key in ("title", "description"))
        values = stored.get("values")
        return Wording(
            title,
            description,
            _texts(stored.get("attributes")),
            {str(name): _texts(labels) for name, labels in values.items()} if isinstance(values, Mapping) else {},
        )


def _texts(stored: Any) -> dict[str, str]:
    return {str(key): str(text) for key, text in stored.items()} if isinstance(stored, Mapping) else {}


def check_labels(labels: Mapping[str, str] | None, values: Iterable[str]) -> None:
    """A label is for a declared value, and no two values read alike."""
    known = list(values)
    unknown = [value for value in labels or {} if value not in set(known)]
    if unknown:
        raise BrokenRule("must be for declared values", field="labels", value=quoted(unknown[0]))
    shown = [(labels or {}).get(value, value) for value in known]
    if len(set(shown)) != len(shown):
        twice = next(label for label in shown if shown.count(label) > 1)
        raise BrokenRule(
            f"must differ from each other and from values without one (got {twice!r} twice)", field="labels"
        )
