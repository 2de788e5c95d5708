"""What a declaration of a published table says. Names, types and comments are the analysts' interface.

A table or a column that was published once stays: it may get company, never another name, type or meaning.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One published column; `comment` stands in the database and in the reference."""

    name: str
    type: Type
    comment: str
    nullable: bool = False
    primary: bool = False
    """Whether no two rows of the results may have the same value."""
    since: str = ""
    """The version that added it to a table which was there already; rows of earlier versions have null."""

    def __post_init__(self) -> None:
        if self.since and not self.nullable:
            raise ValueError(f"column {self.name}: one that is added later must be nullable, for the rows before it")
        if not self.comment:
            raise ValueError(f"column {self.name}: has no comment")


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """One published table: its columns in order, `release_id` first, and what one row is about."""

    name: str
    grain: str
    """What one row is about, after "one row per"."""
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    """The columns, beside the release, that tell rows apart."""

    def __post_init__(self) -> None:
        names = [column.name for column in self.columns]
        if names[:1] != [RELEASE]:
            raise ValueError(f"table {self.name}: the first column must be {RELEASE}")
        if len(set(names)) < len(names):
            raise ValueError(f"table {self.name}: two columns have the same name")
        if strange := set(self.key) - set(names):
            raise ValueError(f"table {self.name}: the key names no column: {', '.join(sorted(strange))}")

    @property
    def latest(self) -> str:
        """The view on the rows of the newest published release of every name."""
        return f"latest_{self.name}"

    @property
    def content(self) -> tuple[Column, ...]:
        """What a kind fills in: every column but the release's, which publishing adds."""
        return self.columns[1:]


def text(name: str, comment: str, *, nullable: bool = False, since: str = "", primary: bool = False) -> Column:
    """A column of words."""
    return Column(name=name, type=Type.TEXT, comment=comment, nullable=nullable, since=since, primary=primary)


def texts(name: str, comment: str) -> Column:
    """A column of lists of words."""
    return Column(name=name, type=Type.TEXTS, comment=comment)


def real(name: str, comment: str, *, nullable: bool = False, since: str = "") -> Column:
    """A column of real numbers."""
    return Column(name=name, type=Type.REAL, comment=comment, nullable=nullable, since=since)


def whole(name: str, comment: str, *, nullable: bool = False, since: str = "") -> Column:
    """A column of whole numbers."""
    return Column(name=name, type=Type.WHOLE, comment=comment, nullable=nullable, since=since)


def flag(name: str, comment: str) -> Column:
    """A column of yes and no."""
    return Column(name=name, type=Type.FLAG, comment=comment)


def moment(name: str, comment: str) -> Column:
    """A column of moments, UTC."""
    return Column(name=name, type=Type.MOMENT, comment=comment)


RELEASE_ID = text(RELEASE, "the release")
