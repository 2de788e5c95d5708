"""A table of people as the database reads it: cells become positions, and what is wrong with them is told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce

import duckdb
import numpy as np
import pyarrow as pa
from duckdb import CaseExpression as Case
from duckdb import ConstantExpression as Constant
from duckdb import Expression
from duckdb import FunctionExpression as Function

from pldp.errors import Outcome, Problem, SourceError
from pldp.questions.cells import NO_MISSING, Choice, Codes, Declared, Importance
from pldp.questions.source import Cell, Field, PeopleTable
from pldp.tasks.buckets import Bucket, Seen
from pldp.tasks.pieces import COUNTED, KEYS, Dealt, Keys
from pldp.tasks.positions import EMPTY, UNDECLARED, Positions, column, combine, matters, place, unstated
from pldp.tasks.sources.source import USER, Source
from pldp.tasks.tags import Tags


@dataclass(frozen=True, kw_only=True)
class People(PeopleTable):
    """A table of people and the file that it lies in."""

    file: Source
    name: str = "people"
    """Where its pieces lie."""

    @property
    def most_left_out(self) -> Fraction:
        return self.source.max_left_out

    @property
    def dealt(self) -> tuple[People]:
        """Its files whose rows are dealt."""
        return (self,)

    @property
    def ordered(self) -> bool:
        """Rows without an id are told apart by their places, which only an ordered pass knows."""
        return self.user is None

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

    def pieces(self, connection: duckdb.DuckDBPyConnection, keys: Keys) -> duckdb.DuckDBPyRelation:
        """Rows as they are dealt: the user, the vault's columns, and why choices are not stated."""
        levels = [self._level(ruled, keys.levels) for ruled in self.levels]
        why = [unstated(*self._cell(i)) for i in self._places(self.choices)]
        return self.raw(connection).select(
            Tags(keys.order).handed(column(USER)).alias(USER),
            *(self._field(field).cast(field.type).alias(field.name) for field in self.fields),
            *(self._weight(i).alias(f"weight_{at}") for at, i in enumerate(self._places(self.weights))),
            *(level.cast("UTINYINT").alias(f"level_{i}") for i, level in enumerate(levels)),
            *(reason.alias(f"{COUNTED}{i}") for i, reason in enumerate(why)),
        )

    def settle(self, bucket: Bucket) -> tuple[Mapping[str, pa.Array], Seen]:
        """The bucket's people, in the order of their keys, and keys that stand in two rows."""
        rows, twice = bucket.one_each(self.name)
        kept = [name for name in rows.dtype.names or () if name not in KEYS]
        if len(rows) != bucket.n_users:  # beside other tables, where both halves of the hash say that it is one user
            return {}, Seen(frozenset({Problem.at("a user stands in two rows", file=self.file.name)}), twice)
        return {name: pa.array(rows[name].copy()) for name in kept}, Seen(twice=twice)

    def unstated_cells(self, dealt: Sequence[Dealt]) -> Iterator[tuple[str, int, int, str]]:
        """Columns of choices with how many cells state none for which reason, and what these count as."""
        for choice, counts in zip(self.choices, dealt[0].counted, strict=True):
            for reason in (EMPTY, UNDECLARED):
                yield choice.column, reason, counts[reason], self.unstated

    def refuse_rows(self, connection: duckdb.DuckDBPyConnection, dealt: Sequence[Dealt]) -> None:
        """The source is looked at again, in its own order, to say where a cell has no position."""
        if dealt[0].unplaced:
            raise self.undeclared(connection)

    def refuse_users(self, connection: duckdb.DuckDBPyConnection, keys: Keys, seen: Seen) -> None:
        """Two rows with one key are one user's, but for a chance of 2^-64 a pair, so their ids are compared."""
        if seen.twice and self.same_user(connection, keys, seen.twice):
            raise SourceError(
                "a user id stands in more than one row, and such a user would spend twice",
                Outcome.NOTHING_PERTURBED,
                file=self.file.name,
                column=self.user,
                remedy="Keep one row a user.",
            )

    def same_user(self, connection: duckdb.DuckDBPyConnection, keys: Keys, twice: Sequence[int]) -> int:
        """How many rows too many there are of users with these keys, by their ids; two users may share a key."""
        tags, wanted = Tags(keys.order), np.array(twice, dtype=np.uint64)
        users = self.raw(connection, ()).select(column(USER), tags.handed(column(USER)).alias("handed"))
        rows, ids = 0, set[str]()
        for batch in users.filter(column(USER).isnotnull()).to_arrow_reader():
            same = batch.column(0).filter(pa.array(np.isin(tags.of(batch.column(1))[:, 0], wanted)))
            rows, ids = rows + len(same), ids | set(same.to_pylist())
        return rows - len(ids)

    def undeclared(self, connection: duckdb.DuckDBPyConnection) -> SourceError:
        """The error for the first row of a user with a cell that the spec has no value for; never what it holds."""
        cells = range(len(self.cells))
        placed = [self.placed(i, faults=True).cast("INTEGER").alias(f"at_{i}") for i in cells]
        rows = self.raw(connection, cells, numbered=True).select(column(USER), column("row"), *placed)
        faulty = reduce(lambda one, more: one | more, (column(f"at_{i}") < Constant(0) for i in cells))
        faults = rows.filter(column(USER).isnotnull() & faulty).order("row").limit(1).fetchall()
        if not faults:
            raise ValueError("a cell without a position was read, and is not found again")
        _, row, *positions = faults[0]
        cell, at = next((cell, at) for cell, at in zip(self.cells, positions, strict=True) if at < 0)
        file, row = self.file.place(row)
        rule = f"the cell {fault(cell, at)} to attribute {cell.name}"
        return SourceError(rule, Outcome.NOTHING_PERTURBED, file=file, row=row, column=cell.column)

    def placed(self, i: int, *, faults: bool = False) -> Expression:
        """The position of a cell of `cells` or `choices`, over the rows of `raw`."""
        rule = self.read[i].rule
        if isinstance(rule, Importance):
            raise ValueError("a weight has no position")
        return place(rule, *self._cell(i), faults=faults)

    def _field(self, field: Field) -> Expression:
        if isinstance(field.rule, Codes):
            return place(field.rule, *self._cell(field.parts[0]))
        placed = [self.placed(i) for i in field.parts]
        return placed[0] if field.rule is None else combine(field.rule, placed)

    def _weight(self, i: int) -> Expression:
        rule = self.read[i].rule
        if not isinstance(rule, Importance):
            raise ValueError("not a weight")
        return matters(rule, column(f"raw_{i}"))

    def _level(self, ruled: tuple[int, ...], level_key: str | None) -> Expression:
        if self.assigned and level_key is not None:
            drawn, last = _drawn(level_key, column(USER)), len(self.assigned)
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


def _drawn(key: str, user: Expression) -> Expression:
    """A number that is uniform below 2^64 to whoever has no key, the same of the same user; null of nobody."""
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
