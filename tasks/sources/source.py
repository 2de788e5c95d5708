"""A source: a table somewhere outside, read as rows of text. What ingest and check know of it, whatever holds it.

A new kind of source is a module with a class of this interface and a line in registry.py.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import duckdb
from duckdb import ColumnExpression, ConstantExpression, Expression, FunctionExpression

from pldp.errors import Outcome, Problem, SourceError
from pldp.tasks.positions import filled
from pldp.tasks.query import over, statement

T = TypeVar("T")
USER = "user_id"
"""The name of ours for who a row is of."""
_SHOWN = 50
"""Column names that are shown."""


@dataclass(frozen=True)
class Source(ABC):
    """`field` is the section of the spec that names it, `outcome` what its refusal means for the data."""

    field: str
    outcome: Outcome

    @property
    @abstractmethod
    def name(self) -> str:
        """What errors call it."""

    def problem(self) -> Problem | None:
        """Why it cannot be looked at; None where it is there."""
        try:
            self.columns()
        except SourceError as error:
            return error.problems[0]
        return None

    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Its column names. They are never shown: under a wrong setting they may be somebody's row."""

    @abstractmethod
    def rows(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """The rows as they are, in their order if the connection keeps it."""

    @abstractmethod
    def count(self, named: Iterable[str | None]) -> int:
        """How many rows the database must find; refuses a source of which it would lose some.

        `named` are the columns that the spec names; others are told by their place.
        """

    @abstractmethod
    def unreadable(self) -> SourceError:
        """What is said instead of a reader's own words, which quote rows."""

    @property
    def rejects(self) -> bool:
        """Whether rows may not parse; the connection that read them has the reasons."""
        return False

    @property
    def trim(self) -> bool:
        """Whether blanks around a cell are no part of it."""
        return False

    @property
    def misread(self) -> str:
        """What else to correct where a column is missing, for an error."""
        return f"{self.field}.path"

    @property
    def elsewhere(self) -> str:
        """What to do about one that is not where it should be."""
        more = ", or give --source" if self.field == "source" else ""
        return f"Correct {self.field}.path in the spec{more}."

    def place(self, row: int) -> tuple[str, int]:
        """Where a readable row stands: the file, and its number in it."""
        return self.name, row

    def parts(self, most: int) -> tuple[Source, ...]:
        """Sources that hold its rows between them, so that several readers can share it; about as large as each other,
        and the same for whoever asks."""
        return (self,)

    def header(self, known: tuple[str, ...], named: set[str]) -> list[str]:
        """What to say of its columns to whoever names one that is not there."""
        more = f", … and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
        return [f"the header has these columns: {', '.join(known[:_SHOWN])}{more}"]

    def cells(
        self, connection: duckdb.DuckDBPyConnection, wanted: Mapping[str, str | None], *, numbered: bool = False
    ) -> duckdb.DuckDBPyRelation:
        """Cells as text under names of ours; a column that the spec does not name is null, and so is an empty user id.

        `numbered` rows have their number (`row`), from 1 as they stand in the source.
        """
        known = self.columns()
        cells = self.rows(connection).select(*self.named(wanted, known))
        return over(cells, "cells", statement("11_ingest_numbered")) if numbered else cells

    def named(self, wanted: Mapping[str, str | None], known: tuple[str, ...]) -> list[Expression]:
        """Cells of rows whose columns are known, under names of ours."""
        return [self._cell(name, column, known).alias(name) for name, column in wanted.items()]

    def texts(self, connection: duckdb.DuckDBPyConnection, wanted: Mapping[str, str | None]) -> duckdb.DuckDBPyRelation:
        """Cells as text, empty ones null."""
        cells = self.cells(connection, wanted)
        return cells.select(*(filled(ColumnExpression(name)).alias(name) for name in cells.columns))

    def count_with(self, columns: Iterable[str | None]) -> int:
        """How many rows the database must find in a source that has these columns."""
        wanted = tuple(columns)
        self.named({str(i): column for i, column in enumerate(wanted)}, self.columns())
        return self.count(wanted)

    def _cell(self, name: str, column: str | None, known: tuple[str, ...]) -> Expression:
        if column is None:
            return ConstantExpression(None).cast("VARCHAR")
        if column not in known:
            raise SourceError(
                f"there is no column {column!r}, which the spec names",
                self.outcome,
                file=self.name,
                remedy=f"Correct the spec, or {self.misread}.",
            )
        cell = ColumnExpression(column).cast("VARCHAR")
        if self.trim:
            cell = FunctionExpression("trim", cell)
        return filled(cell) if name == USER else cell


def cut(things: Sequence[T], most: int) -> list[Sequence[T]]:
    """Things in their order, in at most so many groups of about the same size."""
    n = min(most, len(things))
    return [things[len(things) * i // n : len(things) * (i + 1) // n] for i in range(n)]
