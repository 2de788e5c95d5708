"""A CSV file as a source: its column names, its lines by their bytes, and how the database reads it."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import duckdb

from pldp.errors import Outcome, SourceError
from pldp.spec.source import Csv, Located
from pldp.tasks.sources.csvfaults import CsvFault
from pldp.tasks.sources.csvlines import CsvLines, read_lines
from pldp.tasks.sources.file import File, literals

REJECTS = 1000
"""Rows that the reader gives reasons for, at most."""
BUFFER = 4_000_000
"""Bytes that the reader holds; a longer record would be lost (csvfaults.LONGEST)."""

_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}


@dataclass(frozen=True)
class CsvFile(File):
    """Cells are text; nothing is guessed. It is one part: where a row begins is known from the file's start only."""

    csv: Csv
    format = "csv"
    rejects = True

    @classmethod
    def of(cls, field: str, outcome: Outcome, path: Path, stated: Located) -> Self:
        return cls(field, outcome, path, stated.csv)

    @property
    def trim(self) -> bool:
        return self.csv.trim

    @property
    def misread(self) -> str:
        return f"{self.field}.csv where the header is misread"

    def columns(self) -> tuple[str, ...]:
        self.require_regular()
        try:
            names = list(self.csv.columns) if self.csv.columns else self._header()
        except (OSError, UnicodeDecodeError, csv.Error, EOFError):
            names = []
        return self.usable(names)

    def shape(self) -> tuple[str, ...]:
        return self.columns()

    def read(self, connection: duckdb.DuckDBPyConnection, files: Sequence[Self]) -> duckdb.DuckDBPyRelation:
        """Rows that do not parse stay in reject_errors."""
        return connection.read_csv(
            literals(files),  # type: ignore[arg-type]  # lists are taken
            columns=dict.fromkeys(self.columns(), "VARCHAR"),
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

    def count(self, named: Iterable[str | None]) -> int:
        """In a file of a single column a blank line is a row."""
        lines = self.lines(named)
        return lines.records + (lines.blanks if len(self.columns()) == 1 else 0)

    def lines(self, named: Iterable[str | None] = ()) -> CsvLines:
        """What the file has, by its bytes; refuses one of which the database would lose rows."""
        try:
            return read_lines(self.path, self.csv)
        except CsvFault as found:
            fault = found
        except (OSError, EOFError, zlib.error):
            raise self.unreadable() from None
        column = None if fault.cell is None else self._shown_column(fault.cell, named)
        remedy = fault.remedy(self.field)
        raise SourceError(fault.rule, self.outcome, file=self.name, line=fault.line, column=column, remedy=remedy)

    def _shown_column(self, place: int, named: Iterable[str | None]) -> str:
        known = self.columns()
        return known[place] if place < len(known) and known[place] in set(named) else str(place + 1)

    def header(self, known: tuple[str, ...], named: set[str]) -> list[str]:
        """The header that was seen. A first line in which no column of the spec stands may be somebody's row: not
        shown."""
        likely = self._likely_delimiter(known)
        parts = [part.strip() for name in known for part in ([name] if likely is None else re.split(r"[,;\t|]", name))]
        if not named & set(parts):
            rule = f"if it is no header, say `header: false` and `columns` under {self.field}.csv"
            return [f"the first line has {len(parts)} cells and no column of the spec; {rule}"]
        shown = super().header(known, named)
        return shown if likely is None else [*shown, f"the header looks like one column; {likely}"]

    def _likely_delimiter(self, known: tuple[str, ...]) -> str | None:
        """What to say of the delimiter to whoever has the whole header in one column."""
        if len(known) != 1:
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
