"""A table of a PostgreSQL server as a source, read through ADBC.

Who and where the server is stands in the environment, never in the spec: in libpq's own variables (PGHOST, PGUSER,
PGPASSWORD, PGSERVICE, …), or in the variable that the spec names, which holds an address. The spec gives the names of
a table and of columns; they are all that goes into a query, in quotes. What the driver says is never shown: it may hold
a part of the address.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Self

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from pldp.errors import Outcome, SourceError
from pldp.spec.source import Located, TableName
from pldp.tasks.query import identifier, statement
from pldp.tasks.sources.parquetfile import ParquetFile
from pldp.tasks.sources.source import Source
from pldp.tasks.sources.stream import Stream

if TYPE_CHECKING:
    from adbc_driver_manager.dbapi import Cursor

DEFAULT = "postgresql://"
"""An address that leaves everything to libpq's variables."""
_RULES = {
    "42P01": "there is no such table for this login. Correct {field}.table, schema and case included",
    "3F000": "there is no such schema. Correct {field}.table",
    "42501": "this login may not read the table. Let the server's owner grant SELECT on it",
}
"""What the server's states mean; others are a connection that broke."""


@dataclass(frozen=True)
class PostgresTable(Source):
    table: TableName
    variable: str | None
    """The variable of the environment that holds the server's address."""
    only: tuple[str, ...] | None = None
    """The columns that are read; all where none are said."""

    @classmethod
    def of(cls, section: str, outcome: Outcome, path: Path, stated: Located) -> Source:
        """At a path that is an export of it, that."""
        table = TableName.of(stated.table or "")
        if path.is_file():
            return Exported(section, outcome, path, table=table)
        return cls(section, outcome, table, stated.connection)

    @property
    def name(self) -> str:
        return f"PostgreSQL table {self.table}"

    @property
    def misread(self) -> str:
        return f"{self.field}.table"

    def columns(self) -> tuple[str, ...]:
        with self._reading(statement("10_ingest_postgres_columns", table=self._quoted)) as reader:
            return tuple(reader.schema.names)

    def cells(
        self, connection: duckdb.DuckDBPyConnection, wanted: Mapping[str, str | None], *, numbered: bool = False
    ) -> duckdb.DuckDBPyRelation:
        """Nobody fetches columns that the spec does not name."""
        return super(PostgresTable, self.with_only(wanted.values())).cells(connection, wanted, numbered=numbered)

    def with_only(self, columns: Iterable[str | None]) -> Self:
        known = self.columns()
        return replace(self, only=tuple(dict.fromkeys(column for column in columns if column in known and column)))

    def rows(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        names = self.only or self.columns()
        stream = Stream(pa.schema([(name, pa.string()) for name in names]), lambda: self._batches(names))
        return stream.relation(connection)

    def count(self, named: Iterable[str | None]) -> int:
        with self._reading(statement("10_ingest_postgres_count", table=self._quoted)) as reader:
            return int(reader.read_all().column(0)[0].as_py())

    def unreadable(self) -> SourceError:
        return self._broken(None)

    def export(self, path: Path, columns: Iterable[str | None]) -> None:
        """Write these columns of the table as it is at one moment, a batch at a time; nothing is left of half of it."""
        wanted = tuple(columns)
        self.named({str(i): column for i, column in enumerate(wanted)}, self.columns())
        names = self.with_only(wanted).only or self.columns()[:1]
        schema = pa.schema([(name, pa.string()) for name in names])
        try:
            with pq.ParquetWriter(path, schema) as writer:
                for batch in self._batches(names):
                    writer.write_batch(batch)
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    @property
    def _quoted(self) -> str:
        parts = (self.table.schema, self.table.name) if self.table.schema else (self.table.name,)
        return ".".join(map(identifier, parts))

    def _batches(self, names: tuple[str, ...]) -> Iterator[pa.RecordBatch]:
        columns = ", ".join(f"{identifier(name)}::text AS {identifier(name)}" for name in names)
        query = statement("10_ingest_postgres", columns=columns, table=self._quoted)
        with self._reading(query) as reader:
            yield from reader

    @contextmanager
    def _reading(self, query: str) -> Iterator[pa.RecordBatchReader]:
        """The rows of a query in a transaction of its own that can only read. Errors are ours from the first to the
        last row."""
        from adbc_driver_manager import Error

        try:
            with self._cursor() as cursor:
                cursor.execute(statement("10_ingest_postgres_snapshot"))
                cursor.execute(statement("10_ingest_postgres_ordered"))
                cursor.fetchall()
                cursor.execute(query)
                yield cursor.fetch_record_batch()
            return
        except (Error, pa.ArrowException, OSError) as error:
            failure = self._broken(getattr(error, "sqlstate", None))
        raise failure

    @contextmanager
    def _cursor(self) -> Iterator[Cursor]:
        from adbc_driver_manager import Error
        from adbc_driver_postgresql import dbapi  # type: ignore[import-untyped]  # it has no types

        address = DEFAULT if self.variable is None else os.environ.get(self.variable)
        if address is None:
            raise SourceError(
                f"the environment has no variable {self.variable}, which {self.field}.connection names",
                self.outcome,
                file=self.name,
                remedy="Set it to the server's address.",
            )
        try:
            connection = dbapi.connect(address)
        except Error:
            connection = None
        if connection is None:
            where = "PGHOST, PGPORT, PGDATABASE, PGUSER and PGPASSWORD" if self.variable is None else self.variable
            raise SourceError(
                "the server cannot be reached, or refuses the login",
                self.outcome,
                file=self.name,
                remedy=f"Check {where} in the environment, and that the server runs.",
            )
        with connection, connection.cursor() as cursor:
            yield cursor

    def _broken(self, state: str | None) -> SourceError:
        rule = _RULES.get(state or "", "the server broke off. Check that it runs, and run the command again")
        return SourceError(rule.format(field=self.field), self.outcome, file=self.name)


@dataclass(frozen=True)
class Exported(ParquetFile):
    """The rows of a table as they were at one moment; errors name the table."""

    table: TableName = field(kw_only=True)

    @property
    def name(self) -> str:
        return f"PostgreSQL table {self.table}"
