"""What a declaration of a published table says. Names, types and comments are the analysts' interface.

A table or a column that was published once stays: it may get company, never another name, type or meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial

RELEASE = "release_id"
"""The column that every published table begins with: whose row it is."""


class Type(StrEnum):
    """The types of published columns, as analysts see them in DuckDB."""

    TEXT = "VARCHAR"
    TEXTS = "VARCHAR[]"
    REAL = "DOUBLE"
    WHOLE = "BIGINT"
    FLAG = "BOOLEAN"
    MOMENT = "TIMESTAMP"


@dataclass(frozen=True, slots=True)
class Column:
    """One published column; `comment` stands in the database and in the reference."""

    type: Type
    name: str
    comment: str
    optional: bool = False
    """Whether a row may leave it null."""
    since: str = ""
    """The version that added it to a table which was there already; rows of earlier versions have null."""
    primary: bool = False
    """Whether no two rows of the results may have the same value."""
    positive: bool = False
    """Whether every number of it is above zero, as a standard error is."""

    def __post_init__(self) -> None:
        if not self.comment:
            raise ValueError(f"column {self.name}: has no comment")

    @property
    def nullable(self) -> bool:
        return self.optional or bool(self.since)


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Columns that are an interval, and what it holds: one of these columns' numbers at least, cut to the bounds."""

    low: str = "ci_low"
    high: str = "ci_high"
    holds: tuple[str, ...] = ()
    """Empty where what it is about is not published."""
    bounds: tuple[float, float] | tuple[str, str] | None = None
    """Numbers, or the columns that have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One published table: its columns in order, `release_id` first, and what one row is about."""

    name: str
    grain: str
    """What one row is about, after "one row per"."""
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """The columns, beside the release, that tell rows apart."""
    intervals: tuple[Interval, ...] = ()

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if names[:1] != [RELEASE]:
            raise ValueError(f"table {self.name}: the first column must be {RELEASE}")
        if len(set(names)) < len(names):
            raise ValueError(f"table {self.name}: two columns have the same name")
        if strange := set(self.key) - set(names):
            raise ValueError(f"table {self.name}: the key names no column: {', '.join(sorted(strange))}")
        for interval in self.intervals:
            bounds = [bound for bound in interval.bounds or () if isinstance(bound, str)]
            if strange := {interval.low, interval.high, *interval.holds, *bounds} - set(names):
                raise ValueError(f"table {self.name}: an interval names no column: {', '.join(sorted(strange))}")

    @property
    def latest(self) -> str:
        """The view on the rows of the newest published release of every name."""
        return f"latest_{self.name}"

    @property
    def content(self) -> tuple[Column, ...]:
        """What a kind fills in: every column but the release's, which publishing adds."""
        return self.columns[1:]


text = partial(Column, Type.TEXT)
texts = partial(Column, Type.TEXTS)
real = partial(Column, Type.REAL)
error = partial(Column, Type.REAL, positive=True)
whole = partial(Column, Type.WHOLE)
flag = partial(Column, Type.FLAG)
moment = partial(Column, Type.MOMENT)

RELEASE_ID = text(RELEASE, "the release")
