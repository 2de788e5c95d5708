"""Files beside a spec of items: the public list of items, and raw scores for evaluations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl

from pldp.errors import BrokenRule, Outcome, SourceError
from pldp.questions.items.levels import levels_from_scores
from pldp.questions.items.sensitivity import Scores
from pldp.questions.items.spec import MAX_ITEMS, ItemList
from pldp.tasks.sources.registry import source_at
from pldp.tasks.sources.whole import read_whole


def read_items(spec: ItemList, path: Path) -> tuple[str, ...]:
    """The declared items, in the order of the file."""
    rows = read_whole(source_at(path, spec, "items", Outcome.NOTHING_RUN), {"item": spec.item})
    items = rows["item"].to_list()
    if None in items:
        raise SourceError("is empty", Outcome.NOTHING_RUN, file=path, row=items.index(None) + 1, column=spec.item)
    if not 1 <= len(items) <= MAX_ITEMS:
        raise SourceError(
            f"must list 1 to {MAX_ITEMS:,} items", Outcome.NOTHING_RUN, file=path, value=f"{len(items):,}"
        )
    again = rows.filter(~pl.col("item").is_first_distinct())
    if not again.is_empty():
        place = int(again["position"][0])
        raise SourceError("the item is listed already", Outcome.NOTHING_RUN, file=path, row=place, column=spec.item)
    return tuple(items)


def scored_levels(spec: Scores, n_levels: int, path: Path, items: tuple[str, ...]) -> tuple[int, ...]:
    """Levels of the items by everybody's scores. Nothing of a score is said: rows and items only."""
    source = source_at(path, spec, "sensitivity.scores", Outcome.NOTHING_RUN)
    rows = read_whole(source, {"user": spec.user, "item": spec.item, "score": spec.score})
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
                f"the cell {rule}", Outcome.NOTHING_RUN, file=path, row=wrong["position"][0], column=column
            )
    users = rows["user"].rank("dense").to_numpy().astype(np.int64) - 1
    table = np.full((int(users.max()) + 1, len(items)), np.nan)
    table[users, rows["column"].to_numpy()] = rows["number"].to_numpy()
    try:
        return levels_from_scores(table, spec.scale(n_levels)).levels
    except BrokenRule as error:
        problem = error.problem
        item = "" if problem.column is None else f"item {items[int(problem.column)]!r}"
        raise SourceError.of(
            [replace(problem, file=str(path), row=None, column=None, field=item)], Outcome.NOTHING_RUN
        ) from None
