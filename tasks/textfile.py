"""A CSV or Parquet file as rows of text: its column names, and the statement that reads some of them."""

from __future__ import annotations

import csv
import gzip
import io
import os
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from duckdb import ColumnExpression, ConstantExpression, Expression, FunctionExpression

from pldp.errors import SourceError
from pldp.spec.source import Csv
from pldp.tasks.csvlines import CsvFault, CsvLines, read_lines
from pldp.tasks.positions import filled
from pldp.tasks.query import literal, over, statement

USER = "user_id"
"""The name of ours for who a row is of."""
REJECTS = 1000
"""Rows that the reader gives reasons for, at most."""
BUFFER = 4_000_000
"""Bytes that the reader holds; a longer record would be lost (csvlines.LONGEST)."""

_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}


@dataclass(frozen=True)
class TextFile:
    """`field` is the section of the spec that names the file, `nothing` what a refusal says at its end."""

    path: Path
    stated: str | None
    csv: Csv
    field: str
    nothing: str

    @property
    def format(self) -> str:
        return self.stated or ("parquet" if self.path.suffix in {".parquet", ".pq"} else "csv")

    def cells(
        self, connection: duckdb.DuckDBPyConnection, wanted: Mapping[str, str | None], *, numbered: bool = False
    ) -> duckdb.DuckDBPyRelation:
        """Cells as text under names of ours; a column that the spec does not name is null, and so is an empty user id.

        `numbered` rows have their number (`row`), from 1 as they stand in the file.
        """
        known = self.columns()
        cells = self._rows(connection, known).select(*self.named(wanted, known))
        return over(cells, "cells", statement("11_ingest_numbered")) if numbered else cells

    def named(self, wanted: Mapping[str, str | None], known: tuple[str, ...]) -> list[Expression]:
        """Cells of rows whose columns are known, under names of ours."""
        return [self._cell(name, column, known).alias(name) for name, column in wanted.items()]

    def records_with(self, columns: Iterable[str | None]) -> int:
        """How many rows the database must find in a file that has these columns."""
        wanted = tuple(columns)
        self.named({str(i): column for i, column in enumerate(wanted)}, self.columns())
        lines = self.lines(wanted)
        return self.rows() if lines is None else self.records(lines)

    def _rows(self, connection: duckdb.DuckDBPyConnection, known: tuple[str, ...]) -> duckdb.DuckDBPyRelation:
        """The file as it is; rows of a CSV file that do not parse stay in reject_errors. A folder that is named
        level=low says nothing of the people in it."""
        if self.format == "parquet":
            return connection.read_parquet(literal(self.path), hive_partitioning=False)
        return connection.read_csv(
            literal(self.path),
            columns=dict.fromkeys(known, "VARCHAR"),
            auto_detect=False,
            delimiter=self.csv.delimiter,
            quotechar=self.csv.quote,
            escapechar=self.csv.quote,
            header=self.csv.header,
            comment=self.csv.comment,
            na_values="",
            hive_partitioning=False,
            ignore_errors=True,
            store_rejects=True,
            rejects_limit=REJECTS,
            buffer_size=BUFFER,
        )

    def select(self, wanted: Mapping[str, str | None]) -> tuple[str, dict[str, object]]:
        """The statement that reads these cells, empty ones null."""
        with duckdb.connect(config={"temp_directory": ""}) as scratch:
            cells = self.cells(scratch, wanted)
            full = [filled(ColumnExpression(name)).alias(name) for name in cells.columns]
            return cells.select(*full).sql_query(), {}

    def lines(self, named: Iterable[str | None] = ()) -> CsvLines | None:
        """What a CSV file has, by its bytes; refuses one of which the database would lose rows. None for Parquet.

        `named` are the columns that the spec names; others are told by their place.
        """
        if self.format != "csv":
            return None
        try:
            return read_lines(self.path, self.csv)
        except CsvFault as fault:
            found = fault
        except (OSError, EOFError, zlib.error):
            found = None
        if found is None:
            raise self.unreadable()
        cell = "" if found.cell is None else f", column {self._shown_column(found.cell, named)}"
        raise SourceError(
            f"{self.path}, line {found.line}{cell}: {found.rule}. {found.remedy(self.field)} {self.nothing}"
        )

    def _shown_column(self, place: int, named: Iterable[str | None]) -> str:
        known = self.columns()
        return known[place] if place < len(known) and known[place] in set(named) else str(place + 1)

    def records(self, lines: CsvLines) -> int:
        """How many rows the database must find; in a file of a single column a blank line is one."""
        return lines.records + (lines.blanks if len(self.columns()) == 1 else 0)

    def rows(self) -> int:
        """How many rows a Parquet file says that it has."""
        try:
            return int(pq.read_metadata(self.path).num_rows)
        except (OSError, UnicodeDecodeError, pa.ArrowException):
            pass
        raise self.unreadable()

    def unreadable(self) -> SourceError:
        """What is said instead of a reader's own words, which quote rows."""
        ends = ", that all its lines end alike" if self.format == "csv" else ""
        return SourceError(
            f"{self.path}: cannot be read to its end as {self.format}. Check that the file is whole{ends}, "
            f"{self.field}.format and {self.field}.csv. {self.nothing}"
        )

    def place(self, row: int) -> str:
        """Where a row stands, for an error."""
        return f"{self.path}, readable row {row}"

    def _cell(self, name: str, column: str | None, known: tuple[str, ...]) -> Expression:
        if column is None:
            return ConstantExpression(None).cast("VARCHAR")
        if column not in known:
            raise SourceError(
                f"{self.path}: there is no column {column!r}, which the spec names. "
                f"Correct the spec, or {self.field}.csv where the header is misread. {self.nothing}"
            )
        cell = ColumnExpression(column).cast("VARCHAR")
        if self.format == "csv" and self.csv.trim:
            cell = FunctionExpression("trim", cell)
        return filled(cell) if name == USER else cell

    def columns(self) -> tuple[str, ...]:
        """The file's column names. They are never shown: under a wrong setting they may be somebody's row."""
        if os.path.exists(self.path) and not os.path.isfile(self.path):  # neither raises for a path that cannot be
            raise self.unreadable()  # a pipe would be waited for, a device has no end
        try:
            if self.format == "parquet":
                names = pq.read_schema(self.path).names
            else:
                names = list(self.csv.columns) if self.csv.columns else self._header()
        except (OSError, UnicodeDecodeError, csv.Error, pa.ArrowException, EOFError):
            names = []
        # DuckDB takes no notice of case.
        if not names or len({name.lower() for name in names}) != len(names):
            raise SourceError(
                f"{self.path}: cannot be read as {self.format} with a header of different column names. "
                f"Check that the file is whole, {self.field}.format and {self.field}.csv. {self.nothing}"
            )
        return tuple(names)

    def likely_delimiter(self, known: tuple[str, ...]) -> str | None:
        """What to say of the delimiter to whoever has the whole header in one column."""
        if self.format != "csv" or len(known) != 1:
            return None
        cuts = {sign: known[0].count(sign) for sign in _DELIMITERS if sign != self.csv.delimiter}
        sign = max(cuts, key=lambda each: cuts[each])
        if not cuts[sign]:
            return None
        stated = f"`delimiter: {sign!r}` under {self.field}.csv".replace("'", '"')
        return f"the delimiter is likely {_DELIMITERS[sign]}: say {stated}"

    def _header(self) -> list[str]:
        with _open_text(self.path) as handle:
            comment = self.csv.comment
            lines = (line for line in handle if line.strip() and not (comment and line.startswith(comment)))
            # Characters that cannot occur stand for no quote, and for a delimiter longer than the module takes.
            delimiter = self.csv.delimiter if len(self.csv.delimiter) == 1 else "\x1f"
            split = (line.replace(self.csv.delimiter, delimiter) for line in lines)
            rows = csv.reader(split, delimiter=delimiter, quotechar=self.csv.quote or "\0")
            # Spreadsheets leave columns without a name; a spec cannot ask for them.
            return [name.strip() or f"unnamed {i}" for i, name in enumerate(next(rows, []))]


@contextmanager
def _open_text(path: Path) -> Iterator[io.TextIOBase]:
    """A text file from its header on; a broken byte in a row below is told where its line is known."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as zipped:
            yield zipped
    else:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as plain:
            yield plain
