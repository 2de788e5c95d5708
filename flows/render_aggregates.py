"""What the commands print about aggregates."""

from __future__ import annotations

import polars as pl

from pldp.flows.tables import Bar, Table, titled

_BAR = 20


def totals_tables(rows: pl.DataFrame) -> list[Table]:
    """One table a provider, the largest total first."""
    tables = []
    for (provider,), part in rows.group_by("provider", maintain_order=True):
        title = f"{provider}: totals of {part['n_users'][0]:,} users"
        table = titled(title, ("attribute",), ("total", "± error", "interval", "share"), "")
        ordered = part.sort("total", descending=True)
        largest = max(float(ordered["total"][0]), 1e-12)
        for row in ordered.iter_rows(named=True):
            bar = Bar(row["total"] / largest, _BAR)
            share = "" if row["share"] is None else f"{row['share']:.1%} ± {row['share_error']:.1%}"
            interval = f"{row['ci_low']:,.0f} – {row['ci_high']:,.0f}"
            numbers = f"{row['total']:,.0f}", f"{row['standard_error']:,.0f}"
            table.add_row(row["attribute"], *numbers, interval, share, bar)
        tables.append(table)
    return tables
