"""Rows that arrive as Arrow batches, made a relation of the database that can be read as often as a query likes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

import duckdb
import pyarrow as pa

_numbers = count()


@dataclass(frozen=True)
class Stream:
    """What the database takes for a table: every scan of it calls `batches` anew."""

    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]

    def __arrow_c_schema__(self) -> Any:
        return self.schema.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def relation(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        """By a name of its own, so that a statement can stand for it too; nothing is read before it is asked for."""
        name = f"stream_{next(_numbers)}"
        connection.register(name, self)
        return connection.view(name)
