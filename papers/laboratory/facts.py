"""What the papers print: one small table a paper, with the place each number comes from."""

from __future__ import annotations

from importlib.resources import files

import polars as pl
import polars.selectors as cs

from pldp.papers.model import Fact

_SCHEMA = {
    "place": pl.String,
    "panel": pl.String,
    "series": pl.String,
    "x": pl.String,
    "printed": pl.Float64,
    "half_width": pl.Float64,
    "repeats": pl.Int64,
    "source": pl.String,
}


def read_facts(paper: str) -> tuple[Fact, ...]:
    """None where a paper has no table yet."""
    path = files("pldp.papers.laboratory") / "printed" / f"{paper}.csv"
    if not path.is_file():
        return ()
    rows = pl.read_csv(path.read_bytes(), schema_overrides=_SCHEMA).with_columns(cs.string().fill_null(""))
    return tuple(
        Fact(**row) for row in rows.select(*_SCHEMA, cs.by_name("claim", require_all=False)).iter_rows(named=True)
    )
