"""The source file: which columns it has, how to read them as text, and how cells become positions in the plan."""

from __future__ import annotations

import csv
import gzip
import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from pldp.errors import SourceError
from pldp.spec import Category, Spec
from pldp.spec_numbers import Number
from tasks import source_numbers
from tasks.query import identifier, statement, text

NOTHING = "Nothing was perturbed."
_NO_MISSING, _NO_OTHER = -1, -2
"""Positions of cells that the spec has no value for."""
_HASHES = 1 << 64


@dataclass(frozen=True)
class SourceFile:
    """A spec's source. `levels` runs from the strictest to the weakest, as in the plan."""

    spec: Spec
    path: Path
    levels: tuple[str, ...]

    @property
    def format(self) -> str:
        return self.spec.source.format or ("parquet" if self.path.suffix in {".parquet", ".pq"} else "csv")

    @cached_property
    def categories(self) -> tuple[Category, ...]:
        return tuple(attribute for attribute in self.spec.attributes if isinstance(attribute, Category))

    @cached_property
    def asked(self) -> tuple[Category | Number, ...]:
        """What cells are read for, in the order of their names in the statements."""
        return (*self.categories, *self.spec.number_attributes)

    @cached_property
    def importance_columns(self) -> tuple[str, ...]:
        """The source's columns that say what matters to a user, one a numeric attribute, or none."""
        columns = self.spec.numbers.importance if self.spec.numbers is not None else None
        return tuple(columns[a.name] for a in self.spec.number_attributes) if isinstance(columns, dict) else ()

    @cached_property
    def level_columns(self) -> tuple[str, ...]:
        """The source's columns that hold choices: one for all, one a category, or none."""
        column = self.spec.levels.column
        if isinstance(column, dict):
            return tuple(column[category.name] for category in self.categories)
        return () if column is None else (column,)

    @property
    def width(self) -> int:
        """How many columns of the file are read."""
        return len(self.asked) + len(self.importance_columns) + len(self.level_columns) + 1

    def domains(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The types that cells are cast to: a name, and the values in the order of their positions."""
        for i, category in enumerate(self.categories):
            yield f"domain_{i}", category.values
        yield "level_domain", self.levels

    def people(self) -> tuple[str, dict[str, object]]:
        """The statement that fills the vault from the file, and its parameters (without the keys)."""
        positions = self._value_positions() + self._weights() + self._level_positions()
        columns = [f"{self._value(i)} AS value_{i}" for i in range(len(self.spec.published))]
        columns += [f"{self._code(i)} AS number_{i}" for i in range(len(self.spec.number_attributes))]
        columns += [f"weight_{i}" for i in range(len(self.importance_columns))]
        columns += [f"{level}::UTINYINT AS level_{i}" for i, level in enumerate(self._levels())]
        select, parameters = self._select()
        lists = {"positions": ", ".join(positions), "columns": ", ".join(columns)}
        return statement("12_ingest_people", source=select, **lists), parameters

    def first_unplaced(self) -> tuple[str, dict[str, object]]:
        """The statement that finds the first row with a cell that the spec has no value for."""
        names = ", ".join(f"cell_{i}_position" for i in range(len(self.asked)))
        select, parameters = self._select()
        positions = ", ".join(self._value_positions())
        return statement("17_ingest_first_unplaced", source=select, positions=positions, names=names), parameters

    @property
    def unplaced(self) -> str:
        """The condition on a user who has a cell that the spec has no value for."""
        names = [f"value_{i}" for i in range(len(self.spec.published))]
        names += [f"number_{i}" for i in range(len(self.spec.number_attributes))]
        return " OR ".join(f"{name} IS NULL" for name in names)

    def undeclared(self, row: Sequence[int]) -> SourceError:
        """The error for that row: where it is and what to do, never what it holds."""
        for attribute, position in zip(self.asked, row[1:], strict=True):
            if position < 0:
                rule = (
                    "holds no number, and no missing value is declared: add `missing: <a number within bounds>`"
                    if isinstance(attribute, Number)
                    else "is empty, and no missing value is declared: add `missing: <one of values>`"
                    if position == _NO_MISSING
                    else "holds a value that is not declared: add it to values, or add `other: <one of values>`"
                )
                return SourceError(
                    f"{self.path}, readable row {row[0]}, column {attribute.column or attribute.name}: "
                    f"the cell {rule} to attribute {attribute.name}. {NOTHING}"
                )
        raise ValueError("every cell of the row is declared")

    def _select(self) -> tuple[str, dict[str, object]]:
        """The file's needed cells as text, whatever its format."""
        known = self._columns()
        source, options = self.spec.source, self.spec.source.csv
        user = self._cell(source.user_id, known) if source.user_id else "CAST(row_number() OVER () AS VARCHAR)"
        cells = [f"{user} AS user_id"]
        cells += [f"{self._cell(a.column or a.name, known)} AS cell_{i}" for i, a in enumerate(self.asked)]
        cells += [f"{self._cell(column, known)} AS matters_{i}" for i, column in enumerate(self.importance_columns)]
        cells += [f"{self._cell(column, known)} AS choice_{i}" for i, column in enumerate(self.level_columns)]
        listed = ", ".join(cells)
        if self.format == "parquet":
            return statement("11_ingest_parquet", cells=listed), {"path": _literal(self.path)}
        struct = ", ".join(f"{text(name)}: 'VARCHAR'" for name in known)
        return statement("11_ingest_csv", cells=listed, columns="{" + struct + "}"), {
            "path": _literal(self.path),
            "delimiter": options.delimiter,
            "quote": options.quote,
            "header": options.header,
            "comment": options.comment,
        }

    def _value_positions(self) -> list[str]:
        return [
            f"{source_numbers.code(f'cell_{i}', asked)} AS cell_{i}_position"
            if isinstance(asked, Number)
            else _position(f"cell_{i}", f"domain_{i}", *_fallbacks(asked))
            for i, asked in enumerate(self.asked)
        ]

    def _weights(self) -> list[str]:
        truth = self.spec.numbers is None or not self.spec.numbers.weights
        columns = range(len(self.importance_columns))
        return [f"{source_numbers.weight(f'matters_{i}', truth=truth)} AS weight_{i}" for i in columns]

    def _code(self, number: int) -> str:
        name = f"cell_{len(self.categories) + number}_position"
        return f"CASE WHEN {name} >= 0 THEN {name}::UINTEGER END"

    def _level_positions(self) -> list[str]:
        choices = self.spec.levels
        if choices.assigned is not None:
            # One uniform number a user, cut at the stated shares.
            shares = accumulate(choices.assigned.get(level, Fraction(0)) for level in self.levels)
            cases = [f"WHEN drawn < {int(share * _HASHES)} THEN {i}" for i, share in enumerate(shares)][:-1]
            drawn = "(md5_number($level_key || user_id) >> 64)::UBIGINT"
            return [f"{drawn} AS drawn", f"CASE {' '.join(cases)} ELSE {len(cases)} END AS choice_0_position"]
        unstated = self.levels.index(choices.missing or choices.strictest)
        columns = range(len(self.level_columns))
        return [_position(f"choice_{i}", "level_domain", unstated, unstated) for i in columns]

    def _value(self, published: int) -> str:
        """An attribute's position: that of its category, or of the combination, the last part running fastest."""
        parts = self.spec.parts(self.spec.published[published])
        names = [f"cell_{self.categories.index(part)}_position" for part in parts]
        combined = names[0]
        for name, part in zip(names[1:], parts[1:], strict=True):
            combined = f"({combined}) * {len(part.values)} + {name}"
        return f"CASE WHEN least({', '.join(names)}) >= 0 THEN ({combined})::USMALLINT END"

    def _levels(self) -> list[str]:
        """The level that rules each attribute; a cross-tab tells of all its parts, so the strictest of theirs."""
        if not isinstance(self.spec.levels.column, dict):
            return ["choice_0_position" if self.level_columns or self.spec.levels.assigned else "0"]
        return [
            f"least({', '.join(f'choice_{self.categories.index(part)}_position' for part in self.spec.parts(a))})"
            for a in self.spec.published
        ]

    def _cell(self, column: str, known: tuple[str, ...]) -> str:
        if column not in known:
            raise SourceError(
                f"{self.path}: there is no column {column!r}, which the spec names. "
                f"Correct the spec, or source.csv where the header is misread. {NOTHING}"
            )
        cell = f"CAST({identifier(column)} AS VARCHAR)"
        trimmed = f"trim({cell})" if self.format == "csv" and self.spec.source.csv.trim else cell
        return f"nullif({trimmed}, '')"

    def _columns(self) -> tuple[str, ...]:
        """The file's column names. They are never shown: under a wrong setting they may be somebody's row."""
        options = self.spec.source.csv
        try:
            if self.format == "parquet":
                names = pq.read_schema(self.path).names
            elif options.columns:
                names = list(options.columns)
            else:
                names = self._header()
        except (OSError, UnicodeDecodeError, csv.Error, pa.ArrowException, EOFError):
            names = []
        # DuckDB takes no notice of case.
        if not names or len({name.lower() for name in names}) != len(names):
            raise SourceError(
                f"{self.path}: cannot be read as {self.format} with a header of different column names. "
                f"Check that the file is whole, source.format and source.csv. {NOTHING}"
            )
        return tuple(names)

    def _header(self) -> list[str]:
        options = self.spec.source.csv
        with _open_text(self.path) as handle:
            lines = (line for line in handle if line.strip() and not _is_comment(line, options.comment))
            # Characters that cannot occur stand for no quote, and for a delimiter longer than the module takes.
            delimiter = options.delimiter if len(options.delimiter) == 1 else "\x1f"
            split = (line.replace(options.delimiter, delimiter) for line in lines)
            rows = csv.reader(split, delimiter=delimiter, quotechar=options.quote or "\0")
            # Spreadsheets leave columns without a name; a spec cannot ask for them.
            return [name.strip() or f"unnamed {i}" for i, name in enumerate(next(rows, []))]


@contextmanager
def _open_text(path: Path) -> Iterator[io.TextIOBase]:
    """A text file from its header on; a broken byte in a row below is for the reader to quarantine, not for us."""
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8-sig", errors="replace", newline="") as zipped:
            yield zipped
    else:
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as plain:
            yield plain


def _literal(path: Path) -> str:
    """A path that the database takes as it stands: `people[1].csv` is one file, not a pattern for people1.csv."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))


def _is_comment(line: str, comment: str) -> bool:
    return bool(comment) and line.startswith(comment)


def _fallbacks(category: Category) -> tuple[int, int]:
    missing = _NO_MISSING if category.missing is None else category.values.index(category.missing)
    other = _NO_OTHER if category.other is None else category.values.index(category.other)
    return missing, other


def _position(cell: str, domain: str, missing: int, other: int) -> str:
    return (
        f"CASE WHEN {cell} IS NULL THEN {missing} "
        f"ELSE coalesce(CAST(enum_code(TRY_CAST({cell} AS {domain})) AS INTEGER), {other}) END AS {cell}_position"
    )
