"""A table of what people hold as the database reads it, and how a bucket of it becomes columns of the vault."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import duckdb
import numpy as np
import pyarrow as pa
from duckdb import CaseExpression as Case
from duckdb import CoalesceOperator as Coalesce
from duckdb import ConstantExpression as Constant
from duckdb import FunctionExpression as Function
from numpy.typing import NDArray

from pldp.errors import Outcome, Problem, SourceError
from pldp.questions.question import offsets
from pldp.questions.source import Columns, Held, HeldError, HoldingsTable
from pldp.tasks.buckets import Bucket, Seen
from pldp.tasks.pieces import COUNTED, Dealt, Keys
from pldp.tasks.positions import EMPTY, UNDECLARED, Positions, column, filled, unstated
from pldp.tasks.query import statement
from pldp.tasks.sources.source import USER, Source
from pldp.tasks.tags import Tags

MOST = 1_000_000_000
"""The most of an item that a row may count."""

ITEM, COUNT, CHOICE, WHY, UNKNOWN, NO_COUNT = "item", "n", "choice", "why", "unknown", "no_count"
"""Columns of rows: the item's position, null where the row names none that counts; how many; the position of the
choice; why none is stated; whether the item is not declared, and the count no count."""


@dataclass(frozen=True, kw_only=True)
class FileRows:
    """A file and the columns of it that are read; None where the spec names none."""

    name: str
    file: Source
    table: HoldingsTable
    user: str | None
    item: str | None = None
    count: str | None = None
    choice: str | None = None
    ordered: bool = False

    @property
    def most_left_out(self) -> Fraction:
        return self.table.source.max_left_out

    @property
    def columns(self) -> tuple[str | None, ...]:
        """Every column of the file that is read."""
        return self.user, self.item, self.count, self.choice

    def raw(self, connection: duckdb.DuckDBPyConnection, *, numbered: bool = False) -> duckdb.DuckDBPyRelation:
        """Users with the item's position, the count, the choice's position (null where none is stated), why none is,
        and which rules the row breaks. An empty item is none, neither a declared one nor another."""
        connection.execute(statement("10_cell_count"))
        named = {USER: self.user, "text": self.item, "amount": self.count, "stated": self.choice}
        cells = self.file.cells(connection, named, numbered=numbered)
        rules = Positions(connection)
        item, code = filled(column("text")), rules.raw(self.table.items, column("text"))
        placed = cells.select(
            *([column("row")] if numbered else []),
            column(USER),
            item.alias("text"),
            code.cast("UINTEGER").alias("code"),
            (Function("cell_count", item, column("amount")) if self.count else Constant(1).cast("BIGINT")).alias(COUNT),
            rules.raw(self.table.choices, column("stated")).cast("USMALLINT").alias(CHOICE),
            column("stated"),
        )
        unknown = column("text").isnotnull() & column("code").isnull()
        # The rule of a count has no sign.
        counted = column(COUNT).isnotnull() & (column(COUNT) <= Constant(MOST))
        return placed.select(
            *([column("row")] if numbered else []),
            column(USER),
            Case(unknown, Constant(self.table.items.other).cast("UINTEGER")).otherwise(column("code")).alias(ITEM),
            column(COUNT),
            column(CHOICE),
            unstated(column("stated"), column(CHOICE)).alias(WHY),
            unknown.alias(UNKNOWN),
            (~counted).alias(NO_COUNT),
        )

    def pieces(self, connection: duckdb.DuckDBPyConnection, keys: Keys) -> duckdb.DuckDBPyRelation:
        """Users and their rows as they are dealt, positions from 1 on, 0 where there is none; what a file does not have
        is not carried along. Why choices are not stated and which rules rows break is counted."""
        one = Constant(1)
        kept = [
            (Coalesce(column(ITEM).cast("UINTEGER") + one, Constant(0)).cast("UINTEGER").alias(ITEM), self.item),
            (Coalesce(column(COUNT), Constant(0)).alias(COUNT), self.count),
            (Coalesce(column(CHOICE) + one, Constant(0)).cast("USMALLINT").alias(CHOICE), self.choice),
        ]
        return self.raw(connection).select(
            Tags(keys.order).handed(column(USER)).alias(USER),
            *(cell for cell, there in kept if there is not None),
            *(column(name).cast("UTINYINT").alias(f"{COUNTED}{name}") for name in (WHY, UNKNOWN, NO_COUNT)),
        )

    def first(self, connection: duckdb.DuckDBPyConnection, fault: str) -> int:
        """The first readable row of a user that breaks this rule."""
        rows = self.raw(connection, numbered=True).filter(column(USER).isnotnull() & column(fault))
        return int(rows.aggregate([Function("min", column("row"))]).fetchall()[0][0])


@dataclass(frozen=True, kw_only=True)
class Holdings(HoldingsTable):
    """A table of what people hold, its file, and the file of users if there is one."""

    file: Source
    users_file: Source | None = None
    name: str = "held"

    @property
    def rows(self) -> FileRows:
        source = self.source
        return FileRows(
            name=self.name,
            file=self.file,
            table=self,
            user=source.user,
            item=source.item,
            count=self.count,
            choice=self.stated,
        )

    @property
    def takers(self) -> FileRows | None:
        if self.users_file is None:
            return None
        name = f"{self.name}-users"
        return FileRows(name=name, file=self.users_file, table=self, user=self.users_id, choice=self.users_choice)

    @property
    def dealt(self) -> tuple[FileRows, ...]:
        """Its files whose rows are dealt."""
        return (self.rows,) if self.takers is None else (self.rows, self.takers)

    @property
    def choosing(self) -> FileRows:
        """Where choices stand, if anywhere."""
        return self.rows if self.takers is None or self.takers.choice is None else self.takers

    def settle(self, bucket: Bucket) -> tuple[Mapping[str, pa.Array], Seen]:
        """What the bucket's people chose and hold, and which rule that breaks."""
        chosen = self._chosen(bucket)
        if chosen is None:
            return {}, Seen(frozenset({self.torn}))
        try:
            return arrays({self.choice_field: chosen, **self.hold(self._held(bucket))}), Seen()
        except HeldError as error:
            problem = Problem.at(str(error), file=self.file.name, column=self.source.item if error.item else None)
        return {}, Seen(frozenset({problem}))

    @property
    def torn(self) -> Problem:
        """What is said of somebody who states two choices."""
        return Problem.at(
            f"a user states two different {self.choice}s, and only one can be kept; a row without a declared one "
            "states the default",
            file=self.choosing.file.name,
            column=self.choosing.choice,
            remedy="Give every user one.",
        )

    def _chosen(self, bucket: Bucket) -> NDArray[np.uint16] | None:
        """Everybody's choice, None where somebody states two; a row without a declared one states the default."""
        chosen = np.full(bucket.n_users, self.choices.default, dtype=np.uint16)
        if self.choosing.choice is None:
            return chosen
        rows, users = bucket.rows[self.choosing.name], bucket.users[self.choosing.name]
        stated = np.where(rows[CHOICE] == 0, self.choices.default + 1, rows[CHOICE]) - 1
        chosen[users] = stated
        return chosen if np.array_equal(chosen[users], stated) else None

    def _held(self, bucket: Bucket) -> Held:
        """Rows that name an item which counts, user by user."""
        rows, users = bucket.rows[self.name], bucket.users[self.name]
        named = np.flatnonzero(rows[ITEM])
        named = named[np.argsort(users[named], kind="stable")]
        counts = rows[COUNT][named].astype(np.int64) if self.count else None
        return Held(bucket.n_users, users[named], rows[ITEM][named].astype(np.int64) - 1, counts)

    def unstated_cells(self, dealt: Sequence[Dealt]) -> Iterator[tuple[str, int, int, str]]:
        """The column of choices with how many cells state none for which reason, and what these count as."""
        if self.choosing.choice is not None:
            counts = dealt[self.dealt.index(self.choosing)].counted[0]
            for reason in (EMPTY, UNDECLARED):
                yield self.choosing.choice, reason, counts[reason], self.choices.levels[self.choices.default]

    def refuse_rows(self, connection: duckdb.DuckDBPyConnection, dealt: Sequence[Dealt]) -> None:
        """The source is looked at again, in its own order, to say where."""
        rows, (_, unknown, no_count) = self.rows, dealt[0].counted
        for fault, n, said, rule in (
            (UNKNOWN, unknown[1], rows.item, self.undeclared),
            (NO_COUNT, no_count[1], rows.count, f"the count must be a whole number from 0 to {MOST:,}"),
        ):
            if n and rule is not None:
                name, row = rows.file.place(rows.first(connection, fault))
                raise SourceError(rule, Outcome.NOTHING_PERTURBED, file=name, row=row, column=said)

    def refuse_users(self, connection: duckdb.DuckDBPyConnection, keys: Keys, seen: Seen) -> None:
        """Say which rule somebody's rows break together."""
        for problem in sorted(seen.problems, key=str):
            raise SourceError.of([problem], Outcome.NOTHING_PERTURBED)


def arrays(columns: Columns) -> dict[str, pa.Array]:
    """Columns for a file: values with bounds beside them are lists."""
    lists = {name: offsets(name) for name in columns if offsets(name) in columns}
    plain = {name: pa.array(values) for name, values in columns.items() if name not in (*lists, *lists.values())}
    return plain | {
        name: pa.LargeListArray.from_arrays(pa.array(columns[bounds]), pa.array(columns[name]))
        for name, bounds in lists.items()
    }
