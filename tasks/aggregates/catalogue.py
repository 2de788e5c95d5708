"""The public catalogue: its file, checked row by row, as the matrix that the mathematics wants."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import polars as pl

from pldp.errors import Outcome, SourceError
from pldp.questions.aggregates.catalogue import Catalogue, Units
from pldp.questions.aggregates.spec import CatalogueFile
from pldp.tasks.sources.registry import source_at
from pldp.tasks.sources.whole import read_whole
from pldp.tasks.stamps import Stamp, require_unchanged, stamp


@dataclass(frozen=True, eq=False)
class Listed:
    """A catalogue with the names of its items, as text, in the order of their first rows.

    Two are the same only if they are one: it is read once, and plans are remembered by it.
    """

    catalogue: Catalogue
    items: pl.Series
    units: Units
    """Item × attribute, in grid units: what one occurrence adds."""
    sha256: str
    stamp: Stamp
    """The file that it was read from, as it was."""


def read_catalogue(spec: CatalogueFile, path: Path, attributes: tuple[str, ...]) -> Listed:
    """Read once, however often a command asks: the same file of the same size and times is the same catalogue."""
    try:
        seen = stamp(path)
    except OSError as error:
        raise SourceError(
            f"the catalogue cannot be read ({error.strerror})",
            Outcome.NOTHING_RUN,
            file=path,
            remedy="Correct catalogue.path in the spec.",
        ) from None
    return _read(spec, path, attributes, seen)


@lru_cache(maxsize=4)
def _read(spec: CatalogueFile, path: Path, attributes: tuple[str, ...], seen: Stamp) -> Listed:
    wanted = {"item": spec.item, "attribute": spec.attribute, "weight": spec.weight}
    rows = read_whole(source_at(path, spec, "catalogue", Outcome.NOTHING_RUN), wanted)
    require_unchanged([seen], Outcome.NOTHING_RUN)
    where = pl.col("position")
    known = pl.Series(attributes, dtype=pl.String)
    _refuse(rows.filter(pl.col("item").is_null()), where, path, spec.item, "is empty: name the item")
    _refuse(
        rows.filter(pl.col("attribute").is_null()),
        where,
        path,
        spec.attribute,
        "is empty, so the item has no attribute: give it one or leave the item out",
    )
    unknown = rows.filter(~pl.col("attribute").is_in(known.implode()))
    rule = "holds an attribute that attributes does not have: declare it there, or leave its rows out"
    _refuse(unknown, where, path, spec.attribute, rule)
    again = rows.filter(pl.struct("item", "attribute").is_first_distinct().not_())
    _refuse(again, where, path, spec.attribute, "gives the item an attribute that it has already: keep one row a pair")
    weights = None
    if spec.weight is not None:
        number = pl.col("weight").cast(pl.Float64, strict=False)
        bad = rows.filter(~(number.is_finite() & (number >= 0)).fill_null(False))
        _refuse(bad, where, path, spec.weight, "must be a finite number ≥ 0")
        weights = rows.select(number)["weight"].to_numpy()
    items = rows["item"].unique(maintain_order=True)
    numbers = rows.join(pl.DataFrame({"item": items}).with_row_index("number"), on="item", maintain_order="left")
    codes = numbers["number"].to_numpy().astype(np.int64)
    columns = rows["attribute"].replace_strict(known, range(len(attributes)), return_dtype=pl.Int64).to_numpy()
    try:
        catalogue = Catalogue.from_triples(attributes, codes, columns, weights, n_items=len(items), grid=spec.grid)
        dense = np.zeros((len(items), len(attributes)), dtype=np.float64 if weights is not None else np.int64)
        dense[codes, columns] = 1 if weights is None else weights
        units = catalogue.units(dense)
    except ValueError as error:
        remedy = "Items are numbered from 0 by their first rows."
        raise SourceError.broken(error, Outcome.NOTHING_RUN, file=path, remedy=remedy) from None
    content = pl.DataFrame({"item": rows["item"], "attribute": rows["attribute"], "units": units[codes, columns]})
    digest = hashlib.sha256(content.sort("item", "attribute").write_csv().encode()).hexdigest()
    return Listed(catalogue, items, units, digest, seen)


def _refuse(bad: pl.DataFrame, where: pl.Expr, path: Path, column: str, rule: str) -> None:
    if not bad.is_empty():
        first = int(bad.select(where.min()).item())
        raise SourceError(f"the cell {rule}", Outcome.NOTHING_RUN, file=path, row=first, column=column)
