"""What the commands print about histograms and numbers."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pldp.flows.tables import Bar, Table, titled
from pldp.tasks.terminal import styled

SHOWN_VALUES = 8
_BAR = 24


def histogram_tables(histograms: pl.DataFrame) -> Iterator[Table]:
    """One an attribute."""
    if not histograms.is_empty():
        for (attribute,), rows in histograms.group_by("attribute", maintain_order=True):
            yield _histogram(str(attribute), rows)


def _histogram(attribute: str, rows: pl.DataFrame) -> Table:
    method, post = rows["method"][0], rows["postprocess"][0]
    title = f"{attribute}: {method}, {post}, {rows['n_reports'][0]:,} reports"
    table = titled(title, ("value",), ("share", "± error", "interval"), "")
    top = rows.sort("frequency", descending=True).head(SHOWN_VALUES)
    largest = max(float(top["frequency"][0]), 1e-12)
    beside = top.filter(~pl.col("frequency").is_between("ci_low", "ci_high")).height
    if beside:
        table.caption = (
            f"{post} moved {beside} of these out of their intervals, which are those of the shares before it "
            "(unbiased_frequency)"
        )
        table.caption_justify = "left"
    for row in top.iter_rows(named=True):
        interval = f"{row['ci_low']:.2%} – {row['ci_high']:.2%}"
        faint = "" if row["reliable"] else "dim"
        share, error = f"{row['frequency']:.2%}", f"{row['standard_error']:.2%}"
        table.add_row(styled(row["value"], faint), share, error, interval, Bar(row["frequency"] / largest, _BAR, faint))
    if rows.height > top.height:
        table.add_row(styled(f"… {rows.height - top.height} more", "dim"), "", "", "", "")
    return table


def shares_table(rows: pl.DataFrame) -> Table:
    """A table of how many people chose each level, from rows of `level_shares`, which only hidden levels have."""
    table = titled("Hidden levels: how many chose each", ("attribute", "level"), ("share", "± error"))
    for row in rows.iter_rows(named=True):
        table.add_row(row["attribute"] or "all", row["level"], f"{row['share']:.2%}", f"{row['standard_error']:.2%}")
    return table
