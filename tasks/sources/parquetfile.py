"""A Parquet file as a source; its row groups are its parts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Self

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from duckdb import ColumnExpression as Column
from duckdb import ConstantExpression as Constant

from pldp.errors import Outcome
from pldp.spec.source import Located
from pldp.tasks.sources.file import File, literals
from pldp.tasks.sources.source import Source, cut

NUMBER = "file_row_number"
"""What the database calls the number of a row in its file, from 0."""


@dataclass(frozen=True)
class ParquetFile(File):
    """Cells of any type are read as text."""

    format = "parquet"
    span: tuple[int, int] | None = None
    """The rows that are read, from the first up to before the last; all where none are said."""

    @classmethod
    def of(cls, field: str, outcome: Outcome, path: Path, stated: Located) -> Self:
        return cls(field, outcome, path)

    def columns(self) -> tuple[str, ...]:
        self.require_regular()
        try:
            names = pq.read_schema(self.path).names
        except (OSError, UnicodeDecodeError, pa.ArrowException):
            names = []
        return self.usable(names)

    def read(self, connection: duckdb.DuckDBPyConnection, files: Sequence[Self]) -> duckdb.DuckDBPyRelation:
        if self.span is None:
            return connection.read_parquet(literals(files), hive_partitioning=False)
        rows = connection.read_parquet(literals(files), hive_partitioning=False, file_row_number=True)
        first, last = self.span
        within = (Column(NUMBER) >= Constant(first)) & (Column(NUMBER) < Constant(last))
        return rows.filter(within).select(*map(Column, self.columns()))

    def parts(self, most: int) -> tuple[Source, ...]:
        """Runs of row groups, which the database finds by the numbers of their rows and reads alone."""
        if NUMBER in {name.lower() for name in self.columns()}:
            return (self,)
        metadata = pq.read_metadata(self.path)
        ends = [0, *accumulate(metadata.row_group(i).num_rows for i in range(metadata.num_row_groups))]
        groups = cut(range(metadata.num_row_groups), most)
        return tuple(replace(self, span=(ends[group[0]], ends[group[-1] + 1])) for group in groups) or (self,)

    def count(self, named: Iterable[str | None]) -> int:
        if self.span is not None:
            return self.span[1] - self.span[0]
        try:
            return int(pq.read_metadata(self.path).num_rows)
        except (OSError, UnicodeDecodeError, pa.ArrowException):
            pass
        raise self.unreadable()

    def shape(self) -> tuple[tuple[str, ...], ...]:
        """Types too: the first file's would be forced on the others, and 1.5 becomes 2."""
        self.require_regular()
        try:
            schema = pq.read_metadata(self.path).schema
            leaves = [schema.column(i) for i in range(len(schema.names))]
        except (OSError, UnicodeDecodeError, pa.ArrowException):
            raise self.unreadable() from None
        return tuple(sorted((leaf.path, leaf.physical_type, str(leaf.logical_type)) for leaf in leaves))
