"""Frames of the published tables: columns in, checked against the declaration, cast and put in order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import polars as pl

from pldp.tables.common import VALIDATIONS
from pldp.tables.declaration import RELEASE, Column, Table, Type

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict

_TYPES: dict[Type, pl.DataType] = {
    Type.TEXT: pl.String(),
    Type.TEXTS: pl.List(pl.String),
    Type.REAL: pl.Float64(),
    Type.WHOLE: pl.Int64(),
    Type.FLAG: pl.Boolean(),
    Type.MOMENT: pl.Datetime("us"),
}


def schema(columns: Iterable[Column]) -> dict[str, pl.DataType]:
    """The Polars types of declared columns, in order."""
    return {column.name: _TYPES[column.type] for column in columns}


def frame(table: Table, columns: Mapping[str, Any]) -> pl.DataFrame:
    """The rows of a table, without their release, from its columns: sequences, arrays, or one value for all rows.

    No columns at all are no rows, and columns that may be null can be left out. ValueError where a name is unknown or
    missing, or cells are of another type; none of them quotes a cell.
    """
    wanted = schema(table.content)
    if not columns:
        return pl.DataFrame(schema=wanted)
    if strange := set(columns) - set(wanted):
        raise ValueError(f"table {table.name} has no column {', '.join(sorted(strange))}")
    if missing := {column.name for column in table.content if not column.nullable} - set(columns):
        raise ValueError(f"table {table.name} lacks its column {', '.join(sorted(missing))}")
    with suppress(TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):  # which quote cells
        return _ordered(pl.DataFrame(dict(columns), schema_overrides={name: wanted[name] for name in columns}), wanted)
    raise ValueError(f"table {table.name}: columns differ in length, or cells are not of their column's type")


def completed(table: Table, rows: pl.DataFrame) -> pl.DataFrame:
    """Rows read from results of any version, as the declaration has them: what came later is null."""
    return _ordered(rows, schema(table.columns))


def of_release(rows: pl.DataFrame, release_id: str) -> pl.DataFrame:
    """The same rows with the release that they belong to."""
    return rows.select(pl.lit(release_id).alias(RELEASE), pl.all())


def _ordered(rows: pl.DataFrame, wanted: Mapping[str, pl.DataType]) -> pl.DataFrame:
    there = set(rows.columns)
    nothing = pl.Series([None] * rows.height)
    return pl.DataFrame({name: (rows[name] if name in there else nothing).cast(kind) for name, kind in wanted.items()})


def validation_rows(verdicts: Iterable[Verdict]) -> pl.DataFrame:
    """What the gates said, one row each."""
    said = list(verdicts)
    return frame(
        VALIDATIONS, {column.name: [getattr(one, column.name) for one in said] for column in VALIDATIONS.content}
    )
