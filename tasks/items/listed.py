"""Files beside a spec of items: the public list of items, and raw scores for evaluations."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

from pldp.errors import SourceError
from pldp.questions.items.levels import levels_from_scores
from pldp.questions.items.spec import MAX_ITEMS, ItemList, Scores
from pldp.spec.source import Table
from pldp.tasks.query import connect_memory, statement
from pldp.tasks.specerrors import NOTHING
from pldp.tasks.textfile import TextFile

_COLUMN = re.compile(r"value number (\d+)")
_ROW = re.compile(r"scores row \d+, ")


def read_items(spec: ItemList, path: Path) -> tuple[str, ...]:
    """The declared items, in the order of the file."""
    rows = _rows(spec, path, "items", {"item": spec.item})
    found = rows["item"].to_list()
    if None in found:
        raise SourceError(f"{path}, readable row {found.index(None) + 1}, column {spec.item}: is empty. {NOTHING}")
    if not 1 <= len(found) <= MAX_ITEMS:
        raise SourceError(f"{path}: must list 1 to {MAX_ITEMS:,} items (got {len(found):,}). {NOTHING}")
    again = rows.filter(~pl.col("item").is_first_distinct())
    if not again.is_empty():
        place = int(again["position"][0])
        raise SourceError(f"{path}, readable row {place}, column {spec.item}: the item is listed already. {NOTHING}")
    return tuple(found)


def scored_levels(spec: Scores, n_levels: int, path: Path, items: tuple[str, ...]) -> tuple[int, ...]:
    """Levels of the items by everybody's scores. Nothing of a score is said: rows and items only."""
    rows = _rows(spec, path, "sensitivity.scores", {"user": spec.user, "item": spec.item, "score": spec.score})
    known = pl.DataFrame({"item": items, "column": range(len(items))}, schema_overrides={"column": pl.Int64})
    rows = rows.join(known, on="item", how="left", maintain_order="left").with_columns(
        number=pl.col("score").cast(pl.Float64, strict=False)
    )
    for column, bad, rule in (
        (spec.user, pl.col("user").is_null(), "is empty: name the user"),
        (spec.item, pl.col("column").is_null(), "holds no declared item"),
        (spec.score, ~pl.col("number").is_finite().fill_null(False), "must be a number"),
        (spec.item, pl.struct("user", "item").is_first_distinct().not_(), "is scored twice by one user: keep one row"),
    ):
        wrong = rows.filter(bad)
        if not wrong.is_empty():
            raise SourceError(
                f"{path}, readable row {wrong['position'][0]}, column {column}: the cell {rule}. {NOTHING}"
            )
    users = rows["user"].rank("dense").to_numpy().astype(np.int64) - 1
    table = np.full((int(users.max()) + 1, len(items)), np.nan)
    table[users, rows["column"].to_numpy()] = rows["number"].to_numpy()
    try:
        return levels_from_scores(table, spec.scale(n_levels)).levels
    except ValueError as error:
        told = _ROW.sub("", _COLUMN.sub(lambda place: f"item {items[int(place[1])]!r}", str(error)))
        raise SourceError(f"{path}: {told}. {NOTHING}") from None


def _rows(spec: Table, path: Path, field: str, columns: Mapping[str, str]) -> pl.DataFrame:
    """Cells as text, numbered as they stand in the file."""
    if not path.is_file():
        raise SourceError(f"{path}: no such file. Correct {field}.path in the spec. {NOTHING}")
    file = TextFile(path, spec.format, spec.csv, field, NOTHING)
    select, parameters = file.select(columns)
    with connect_memory() as database:
        try:
            found = database.sql(statement("10_ingest_catalogue", source=select), params=parameters).pl()
            rejected = file.format == "csv" and database.execute(statement("10_ingest_rejected")).fetchall()[0][0]
        except duckdb.Error:  # whose message quotes rows
            rejected = True
    if rejected:
        raise file.unreadable()
    if found.is_empty():
        raise SourceError(f"{path}: must hold at least one row. {NOTHING}")
    return found
