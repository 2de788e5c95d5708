"""A table of a DuckDB file as a source, or a view of its own tables.

The file is opened to read only, by a connection that reads no other file and loads no extension: a view in a file that
somebody handed over may read whatever the operator can.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import duckdb
import pyarrow as pa

from pldp.errors import Outcome, SourceError
from pldp.spec.source import Located, TableName
from pldp.tasks.inbox import printable
from pldp.tasks.query import connect_memory, identifier, statement, text
from pldp.tasks.sources.source import Source
from pldp.tasks.sources.stream import Stream

_BATCH = 1 << 16
"""Rows of a batch."""


@dataclass(frozen=True)
class DuckdbTable(Source):
    path: Path
    table: TableName

    @classmethod
    def of(cls, field: str, outcome: Outcome, path: Path, stated: Located) -> Self:
        return cls(field, outcome, path, TableName.of(stated.table or ""))

    @property
    def name(self) -> str:
        return f"{printable(self.path)}, table {self.table}"

    def columns(self) -> tuple[str, ...]:
        with self._opened() as rows:
            return tuple(rows.columns)

    def rows(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        with self._opened() as rows:
            schema = rows.limit(0).to_arrow_table().schema
        return Stream(schema, self._batches).relation(connection)

    def count(self, named: Iterable[str | None]) -> int:
        with self._opened() as rows:
            return int(rows.aggregate("count(*)").fetchall()[0][0])

    def unreadable(self) -> SourceError:
        return SourceError(
            "cannot be read to its end", self.outcome, file=self.name, remedy="Check that the file is whole."
        )

    def _batches(self) -> Iterator[pa.RecordBatch]:
        with self._opened() as rows:
            yield from rows.to_arrow_reader(_BATCH)

    @contextmanager
    def _opened(self) -> Iterator[duckdb.DuckDBPyRelation]:
        """The table's rows, in a connection that reads nothing but its file."""
        self._require_whole()
        with connect_memory() as database:
            try:
                database.execute(statement("10_ingest_attach", path=text(str(self.path))))
                database.execute(statement("10_ingest_use"))
                database.execute(statement("10_ingest_confine"))
            except duckdb.Error as error:
                raise self._closed(error) from None
            yield self._relation(database)

    def _relation(self, database: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        try:
            return database.table(f"given.{identifier(self.table.schema or 'main')}.{identifier(self.table.name)}")
        except duckdb.PermissionException:
            rule = "is a view that reads outside its file, which a source may not. Write its rows to a table"
        except duckdb.Error:
            rule = f"there is no such table, or a view that cannot be read. Correct {self.field}.table"
        raise SourceError(rule, self.outcome, file=self.name)

    def _require_whole(self) -> None:
        """What is not yet in the file itself would be part of the rows, and no part of the release's identity."""
        rule = None
        try:
            if not stat.S_ISREG(self.path.stat().st_mode):
                rule = "is no regular file. Name a DuckDB file"
        except OSError as error:
            rule = f"cannot be read ({error.strerror}). {self.elsewhere.removesuffix('.')}"
        if rule is None and self.path.with_name(self.path.name + ".wal").exists():
            rule = "has a write-ahead log beside it. Close whatever writes to it, or CHECKPOINT it, and run again"
        if rule is not None:
            raise SourceError(rule, self.outcome, file=printable(self.path))

    def _closed(self, error: duckdb.Error) -> SourceError:
        held = "Could not set lock" in str(error)
        rule = (
            "somebody has it open for writing: close it, or give a copy"
            if held
            else (f"check {self.field}.format; it may be damaged, encrypted, or of a newer version")
        )
        return SourceError(f"cannot be opened as a DuckDB file: {rule}", self.outcome, file=printable(self.path))
