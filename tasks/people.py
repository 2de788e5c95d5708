"""A table of people, described: which cells are read, by which rules they become positions, and what the vault keeps.

The description is neutral: whatever asks for cells of one row per person says so with it (tasks/source.py does it for
histograms and numbers), and one ingest reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import duckdb
from duckdb import CaseExpression as Case
from duckdb import ConstantExpression as Constant
from duckdb import Expression
from duckdb import FunctionExpression as Function

from pldp.errors import SourceError
from pldp.questions.cells import NO_MISSING, Choice, Declared, Importance, Product, Single
from pldp.tasks.pieces import SORT_KEY, UNSTATED
from pldp.tasks.positions import Positions, column, combine, matters, place, unstated
from pldp.tasks.query import over, statement
from pldp.tasks.textfile import USER, TextFile

NOTHING = "Nothing was perturbed."
BUCKET = "bucket"


@dataclass(frozen=True)
class Cell:
    """A column of the source and the rule of its cells. `name` is what the spec calls it."""

    name: str
    column: str
    rule: Single | Importance


@dataclass(frozen=True)
class Field:
    """A column of the vault, made of the positions of cells (`parts`, by their place), by a product if of several."""

    name: str
    type: str
    parts: tuple[int, ...]
    rule: Product | None = None


@dataclass(frozen=True)
class People:
    """One row per person. A level of several choices is the strictest of them, the first in the plan."""

    file: TextFile
    user: str | None
    """The column of user ids; None where every row is a person of its own."""
    cells: tuple[Cell, ...]
    fields: tuple[Field, ...]
    weights: tuple[Cell, ...] = ()
    choices: tuple[Cell, ...] = ()
    levels: tuple[tuple[int, ...], ...] = ((),)
    """For every level column of the vault the choices that rule it; of none, everybody has the first level."""
    assigned: tuple[int, ...] = ()
    """Where levels are drawn instead: uniform 64-bit numbers below the first have the first level, and so on."""
    unstated: str = ""
    """The level that a choice counts as which is empty or not declared."""
    most_left_out: Fraction = Fraction(1, 100)

    @property
    def read(self) -> tuple[Cell, ...]:
        return (*self.cells, *self.weights, *self.choices)

    @property
    def columns(self) -> tuple[str | None, ...]:
        """Every column of the source that is read."""
        return (self.user, *(cell.column for cell in self.read))

    def raw(
        self, connection: duckdb.DuckDBPyConnection, present: Iterable[int] | None = None, *, numbered: bool = False
    ) -> duckdb.DuckDBPyRelation:
        """Users with the text (cell_i) and code or number (raw_i) of every cell that is read, or of those `present`.

        `numbered` has the number of the readable row beside them.
        """
        wanted = range(len(self.read)) if present is None else present
        named = {f"cell_{i}": self.read[i].column for i in wanted}
        texts = self.file.cells(connection, {USER: self.user, **named}, numbered=numbered or self.user is None)
        rules = Positions(connection)
        user = column(USER) if self.user is not None else column("row").cast("VARCHAR")
        kept = [user.alias(USER), *([column("row")] if numbered else [])]
        codes = [rules.raw(self.read[i].rule, column(f"cell_{i}")).alias(f"raw_{i}") for i in wanted]
        return texts.select(*kept, *(column(name) for name in named), *codes)

    def pieces(
        self, connection: duckdb.DuckDBPyConnection, key: str, level_key: str | None, buckets: int
    ) -> duckdb.DuckDBPyRelation:
        """Rows as they are dealt: the key, the vault's columns, why choices are not stated, and the bucket."""
        levels = [self._level(ruled, level_key) for ruled in self.levels]
        why = [unstated(*self._cell(i)) for i in self._places(self.choices)]
        rows = self.raw(connection).select(
            sort_key(key, column(USER)).alias(SORT_KEY),
            *(self._field(field).cast(field.type).alias(field.name) for field in self.fields),
            *(self._weight(i).alias(f"weight_{at}") for at, i in enumerate(self._places(self.weights))),
            *(level.cast("UTINYINT").alias(f"level_{i}") for i, level in enumerate(levels)),
            *(reason.alias(f"{UNSTATED}{i}") for i, reason in enumerate(why)),
        )
        names = [column(name) for name in rows.columns]
        bucket = Case(column(SORT_KEY).isnull(), Constant(buckets)).otherwise(column(SORT_KEY) % Constant(buckets))
        return rows.select(*names, bucket.cast("UINTEGER").alias(BUCKET))

    def same_user(self, connection: duckdb.DuckDBPyConnection, key: str, keys: Sequence[int]) -> int:
        """How many rows too many there are of users with these keys, by their ids; two users may share a key."""
        wanted = column(SORT_KEY).isin(*(Constant(each).cast("UBIGINT") for each in keys))
        rows = self.raw(connection, ()).select(column(USER), sort_key(key, column(USER)).alias(SORT_KEY)).filter(wanted)
        return int(over(rows, "rows", statement("13_ingest_same_user")).fetchall()[0][0])

    def undeclared(self, connection: duckdb.DuckDBPyConnection) -> SourceError:
        """The error for the first row of a user with a cell that the spec has no value for; never what it holds."""
        cells = range(len(self.cells))
        placed = [self.placed(i, faults=True).cast("INTEGER").alias(f"at_{i}") for i in cells]
        rows = self.raw(connection, cells, numbered=True).select(column(USER), column("row"), *placed)
        faulty = reduce(lambda one, more: one | more, (column(f"at_{i}") < Constant(0) for i in cells))
        found = rows.filter(column(USER).isnotnull() & faulty).order("row").limit(1).fetchall()
        if not found:
            raise ValueError("a cell without a position was read, and is not found again")
        _, row, *positions = found[0]
        cell, at = next((cell, at) for cell, at in zip(self.cells, positions, strict=True) if at < 0)
        return SourceError(
            f"{self.file.place(row)}, column {cell.column}: the cell {fault(cell, at)} to attribute {cell.name}. "
            f"{NOTHING}"
        )

    def placed(self, i: int, *, faults: bool = False) -> Expression:
        """The position of a cell of `cells` or `choices`, over the rows of `raw`."""
        rule = self.read[i].rule
        if isinstance(rule, Importance):
            raise ValueError("a weight has no position")
        return place(rule, *self._cell(i), faults=faults)

    def _field(self, field: Field) -> Expression:
        placed = [self.placed(i) for i in field.parts]
        return placed[0] if field.rule is None else combine(field.rule, placed)

    def _weight(self, i: int) -> Expression:
        rule = self.read[i].rule
        if not isinstance(rule, Importance):
            raise ValueError("not a weight")
        return matters(rule, column(f"raw_{i}"))

    def _level(self, ruled: tuple[int, ...], level_key: str | None) -> Expression:
        if self.assigned and level_key is not None:
            drawn, last = sort_key(level_key, column(USER)), len(self.assigned)
            cuts = [(drawn < Constant(cut).cast("UBIGINT"), Constant(i)) for i, cut in enumerate(self.assigned)]
            return reduce(lambda case, cut: case.when(*cut), cuts[1:], Case(*cuts[0])).otherwise(Constant(last))
        chosen = [self.placed(self._places(self.choices)[i]) for i in ruled]
        return Constant(0) if not chosen else chosen[0] if len(chosen) == 1 else Function("least", *chosen)

    def _cell(self, i: int) -> tuple[Expression, Expression]:
        return column(f"cell_{i}"), column(f"raw_{i}")

    def _places(self, cells: tuple[Cell, ...]) -> range:
        """Where weights or choices stand among all cells."""
        first = len(self.cells) if cells is self.weights else len(self.cells) + len(self.weights)
        return range(first, first + len(cells))


def sort_key(key: str, user: Expression) -> Expression:
    """A keyed hash of the user id, of which the order of rows and who is in which partition follow; null of nobody."""
    return Function(">>", Function("md5_number", Function("||", Constant(key), user)), Constant(64)).cast("UBIGINT")


def fault(cell: Cell, at: int) -> str:
    """What is wrong with a cell of this position below 0, and what to add where."""
    if isinstance(cell.rule, Declared):
        if at == NO_MISSING:
            return "is empty, and no missing value is declared: add `missing: <one of values>`"
        return "holds a value that is not declared: add it to values, or add `other: <one of values>`"
    if isinstance(cell.rule, Choice | Importance):
        raise ValueError("a choice has always a position")
    return "holds no number, and no missing value is declared: add `missing: <a number within bounds>`"
