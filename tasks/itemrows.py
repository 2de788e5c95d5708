"""Rows that say who has which item, and who chose what: the cells of such a file, ready for the statements."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import duckdb
import polars as pl
from duckdb import ConstantExpression as Constant
from duckdb import FunctionExpression as Function

from pldp.questions.cells import Choice
from pldp.tasks.positions import Positions, column, filled, unstated
from pldp.tasks.query import statement
from pldp.tasks.textfile import USER, TextFile


@dataclass(frozen=True)
class ItemRows:
    """A file and the columns of it that are read; None where the spec names none."""

    file: TextFile
    user: str | None
    item: str | None = None
    count: str | None = None
    choice: str | None = None

    @property
    def columns(self) -> tuple[str | None, ...]:
        """Every column of the file that is read."""
        return self.user, self.item, self.count, self.choice

    def select(self, connection: duckdb.DuckDBPyConnection, choices: tuple[str, ...]) -> str:
        """The statement that reads user_id, item (null where empty), n (a whole number, null where it is none), profile
        (a position among the choices, null where none of them is stated) and why none is (`unstated`)."""
        connection.execute(statement("10_cell_count"))
        named = {USER: self.user, "item": self.item, "amount": self.count, "choice": self.choice}
        cells = self.file.cells(connection, named)
        code = Positions(connection).raw(Choice(choices, 0), column("choice"))
        item = filled(column("item"))
        n = Function("cell_count", item, column("amount")) if self.count is not None else Constant(1).cast("BIGINT")
        return cells.select(
            column(USER),
            item.alias("item"),
            n.alias("n"),
            code.cast("USMALLINT").alias("profile"),
            unstated(column("choice"), code).alias("unstated"),
        ).sql_query()


@dataclass(frozen=True)
class Holdings:
    """What the files are, and what their cells may hold."""

    rows: ItemRows
    refuse_unknown: bool
    items: pl.Series
    """Declared names, in the order of their positions."""
    choices: tuple[str, ...]
    default: int
    choice: str
    """What a choice is called: a profile, a level."""
    most_left_out: Fraction
    """The share of a file's rows that may be left out."""
    users: ItemRows | None = None
    other: int | None = None
    """The position of an item that is not declared; None where there is none."""
    one: bool = False
    """Whether every user has exactly one item: `missing`, where no row names one."""
    missing: int | None = None

    @property
    def stated(self) -> ItemRows:
        """Where choices stand."""
        return self.rows if self.users is None or self.users.choice is None else self.users

    declared: str = "declared"
    """Where an item is that is known."""
