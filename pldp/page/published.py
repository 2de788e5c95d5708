"""What a page is made of: rows of published tables, the stored spec, the privacy statement, and the spec's wording."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pldp.page.blocks import Block, Section
from pldp.spec.wording import Wording

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Published:
    """One release, as anybody may see it. A refused one has no rows but its gates."""

    release: Row
    tables: Mapping[str, Sequence[Row]]
    spec: Mapping[str, Any] | None
    statement: Mapping[str, Any] | None
    wording: Wording = field(default_factory=Wording)
    alone: bool = True
    """Whether its statement is about everything that the release asked."""

    def rows(self, table: str) -> Sequence[Row]:
        return self.tables.get(table, ())

    @property
    def n_users(self) -> int:
        return int(self.release["n_users"])

    @property
    def promised(self) -> Mapping[str, Any]:
        return self.statement or {}

    def promises(self) -> tuple[Published, ...]:
        """One per promise that the release makes, each with the part of the statement that is about it."""
        parts = self.promised.get("questions")
        return (self,) if parts is None else tuple(replace(self, statement=part, alone=False) for part in parts)

    def said(self, key: str) -> Any:
        """What the statement says under a key, or the part of it that says it; None where none does."""
        return next((part.promised[key] for part in self.promises() if part.promised.get(key) is not None), None)

    @property
    def confidence(self) -> float:
        return float(self.stated("intervals", "confidence") or 0.95)

    def stated(self, *keys: str) -> Any:
        """What the spec says under these keys, one inside the other; None where it says nothing."""
        for stated in (self.spec or {}, *(self.spec or {}).get("questions", ())):
            value: Any = stated
            for key in keys:
                value = value.get(key) if isinstance(value, Mapping) else None
            if value is not None:
                return value
        return None


def grouped(rows: Sequence[Row], *keys: str) -> dict[Any, list[Row]]:
    """Rows by the value of one column, or by the values of several; groups in the order of their first rows."""
    groups: dict[Any, list[Row]] = {}
    for row in rows:
        key = row[keys[0]] if len(keys) == 1 else tuple(row[name] for name in keys)
        groups.setdefault(key, []).append(row)
    return groups


@dataclass(frozen=True)
class Query:
    """How an analyst reads these results: columns of a table, of this release and where columns have these values."""

    columns: tuple[str, ...]
    table: str
    where: tuple[tuple[str, str], ...] = ()
    order: str = ""


@dataclass(frozen=True)
class KindPage:
    """What one kind of question has to say on a page. Each function gives nothing where the release has none of it."""

    holds: Callable[[Published], str]
    """A few words for the first line: "5 histograms"."""
    promise: Callable[[Published], tuple[Block, ...]]
    """What is promised to a person, in plain words; what all kinds have in common is said once, beside it."""
    results: Callable[[Published], tuple[Section, ...]]
    budgets: Callable[[Published], tuple[Block, ...]]
    query: Callable[[Published], Query | None]
    spends: Callable[[Mapping[str, Any]], tuple[str, float] | None] = lambda spec: None
    """Whom or what a stored spec protects, and how much of it a release may spend; for releases that do not say it."""
    abridged: Callable[[dict[str, Any]], tuple[dict[str, Any], str]] = lambda spec: (spec, "")
    """A stored spec short enough to be shown, and a note on what was left out."""
