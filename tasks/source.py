"""The source file: which columns it has, how to read them as text, and how cells become positions in the plan."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pldp.errors import SourceError
from pldp.randomness import Keystream
from pldp.spec import Category, Spec
from tasks.query import identifier, statement, text

NOTHING = "Nothing was perturbed."
_NO_MISSING, _NO_OTHER = -1, -2
"""Positions of cells that the spec has no value for."""


@dataclass(frozen=True)
class SourceFile:
    spec: Spec
    path: Path

    @property
    def format(self) -> str:
        return self.spec.source.format or ("parquet" if self.path.suffix in {".parquet", ".pq"} else "csv")

    @cached_property
    def categories(self) -> tuple[Category, ...]:
        return tuple(attribute for attribute in self.spec.attributes if isinstance(attribute, Category))

    @cached_property
    def level_columns(self) -> tuple[str, ...]:
        """The source's columns that hold choices: one for all, one a category, or none."""
        column = self.spec.levels.column
        if isinstance(column, dict):
            return tuple(column[category.name] for category in self.categories)
        return () if column is None else (column,)

    @property
    def level_fields(self) -> int:
        """Level columns of the vault: one for all attributes, or one each where users chose for each."""
        return len(self.spec.published) if isinstance(self.spec.levels.column, dict) else 1

    def query(self) -> tuple[str, dict[str, object]]:
        """The statement that reads the file as positions, and its parameters (without the key)."""
        known = self._columns()
        source, csv_options = self.spec.source, self.spec.source.csv
        user = self._cell(source.user_id, known) if source.user_id else "CAST(row_number() OVER () AS VARCHAR)"
        cells = [f"md5_number($key || {user}) AS user_hash"]
        cells += [f"{self._cell(c.column or c.name, known)} AS cell_{i}" for i, c in enumerate(self.categories)]
        cells += [f"{self._cell(column, known)} AS choice_{i}" for i, column in enumerate(self.level_columns)]
        codes = ["(user_hash >> 64)::UBIGINT AS sort_key", "(user_hash & 18446744073709551615)::UBIGINT AS twin"]
        codes += [_position(f"cell_{i}", f"domain_{i}", *_fallbacks(c)) for i, c in enumerate(self.categories)]
        strictest = list(self.spec.levels.choices).index(self.spec.levels.missing or self.spec.levels.strictest)
        codes += [
            _position(f"choice_{i}", "level_domain", strictest, strictest) for i in range(len(self.level_columns))
        ]
        lists = {"cells": ", ".join(cells), "codes": ", ".join(codes)}
        if self.format == "parquet":
            return statement("11_ingest_parquet", **lists), {"path": str(self.path)}
        struct = ", ".join(f"{text(name)}: 'VARCHAR'" for name in known)
        return statement("11_ingest_csv", **lists, columns="{" + struct + "}"), {
            "path": str(self.path),
            "delimiter": csv_options.delimiter,
            "quote": csv_options.quote,
            "header": csv_options.header,
            "comment": csv_options.comment,
        }

    def domains(self) -> Iterator[tuple[str, tuple[str, ...]]]:
        """The types that cells are cast to: a name, and the values in the order of their positions."""
        for i, category in enumerate(self.categories):
            yield f"domain_{i}", category.values
        yield "level_domain", tuple(self.spec.levels.choices)

    def require_declared(self, batch: pa.RecordBatch, before: int) -> None:
        """Refuse a cell that the spec has no value for, by row and column, never by what it holds."""
        for i, category in enumerate(self.categories):
            positions = batch.column(f"cell_{i}_position").to_numpy()
            bad = np.flatnonzero(positions < 0)
            if bad.size:
                rule = (
                    "is empty, and the attribute declares no missing value: add `missing: <one of values>`"
                    if positions[bad[0]] == _NO_MISSING
                    else "holds a value that is not declared: add it to values, or add `other: <one of values>`"
                )
                raise SourceError(
                    f"{self.path}, readable row {before + int(bad[0]) + 1}, column {category.column or category.name}: "
                    f"the cell {rule} to attribute {category.name}. {NOTHING}"
                )

    def encode(self, batch: pa.RecordBatch, stream: Keystream) -> pa.Table:
        """Users of a batch as the vault keeps them, in the order of their keys; rows without a user id drop out."""
        named = batch.column("sort_key").is_valid().to_numpy(zero_copy_only=False)
        batch = batch.filter(pa.array(named))
        order = np.argsort(batch.column("sort_key").to_numpy())
        columns: dict[str, NDArray[np.integer]] = {
            "sort_key": batch.column("sort_key").to_numpy(),
            "twin": batch.column("twin").to_numpy(),
        }
        positions = {c.name: batch.column(f"cell_{i}_position").to_numpy() for i, c in enumerate(self.categories)}
        for i, attribute in enumerate(self.spec.published):
            value = np.zeros(batch.num_rows, dtype=np.int64)
            for part in self.spec.parts(attribute):
                value = value * len(part.values) + positions[part.name]
            columns[f"value_{i}"] = value.astype(np.uint16)
        for i, level in enumerate(self._levels(batch, stream)):
            columns[f"level_{i}"] = level.astype(np.uint8)
        return pa.table({name: array[order] for name, array in columns.items()})

    def _levels(self, batch: pa.RecordBatch, stream: Keystream) -> list[NDArray[np.integer]]:
        choices = self.spec.levels
        if choices.assigned is not None:
            shares = accumulate(choices.assigned.get(level, Fraction(0)) for level in choices.choices)
            bounds = np.array([min(int(share * 2**64), 2**64 - 1) for share in shares][:-1], dtype=np.uint64)
            return [np.searchsorted(bounds, stream.copy(batch.num_rows), side="right")]
        chosen = [batch.column(f"choice_{i}_position").to_numpy() for i in range(len(self.level_columns))]
        if not isinstance(choices.column, dict):
            return chosen or [np.zeros(batch.num_rows, dtype=np.uint8)]
        # A cross-tab tells of all its parts, so the strictest of their levels holds.
        share = np.array([float(share) for share in choices.choices.values()])
        by_name = dict(zip((category.name for category in self.categories), chosen, strict=True))
        levels = []
        for attribute in self.spec.published:
            parts = np.stack([by_name[part.name] for part in self.spec.parts(attribute)])
            strictest = np.argmin(share[parts], axis=0)
            levels.append(np.take_along_axis(parts, strictest[None, :], axis=0)[0])
        return levels

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
                return tuple(pq.read_schema(self.path).names)
            if options.columns:
                return options.columns
            with _open_text(self.path) as handle:
                lines = (line for line in handle if line.strip() and not _is_comment(line, options.comment))
                # A quote that cannot occur stands for none.
                rows = csv.reader(lines, delimiter=options.delimiter[0], quotechar=options.quote or "\0")
                names = [name.strip() for name in next(rows, [])]
        except (OSError, UnicodeDecodeError, csv.Error, pa.ArrowException, EOFError):
            names = []
        if not names or len(set(names)) != len(names):
            raise SourceError(
                f"{self.path}: cannot be read as {self.format} with a header of different column names. "
                f"Check that the file is whole, source.format and source.csv. {NOTHING}"
            )
        return tuple(names)


@contextmanager
def _open_text(path: Path) -> Iterator[io.TextIOBase]:
    if path.suffix == ".gz":
        with gzip.open(path, "rt", encoding="utf-8-sig", newline="") as zipped:
            yield zipped
    else:
        with path.open(encoding="utf-8-sig", newline="") as plain:
            yield plain


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
