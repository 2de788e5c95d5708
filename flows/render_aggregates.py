"""What the commands print about aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pldp.flows.tables import Bar, Table

if TYPE_CHECKING:
    pass

SHOWN_PROFILES = 6
_SPREAD = ("least", "median", "most")
_BAR = 20


def totals_tables(rows: pl.DataFrame) -> list[Table]:
    """One table a provider, the largest total first."""
    tables = []
    for (provider,), part in rows.group_by("provider", maintain_order=True):
        table = Table(title=f"{provider}: totals of {part['n_users'][0]:,} users", title_justify="left")
        table.add_column("attribute")
        for column in ("total", "± error", "interval", "share"):
            table.add_column(column, justify="right")
        table.add_column("")
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


def budget_tables(rows: pl.DataFrame) -> list[Table]:
    """One table a provider: what each profile spends on each attribute, of what it allows; of many, the spread."""
    tables = []
    for (provider,), part in rows.group_by("provider", maintain_order=True):
        profiles = part["level"].unique(maintain_order=True).to_list()
        many = len(profiles) > SHOWN_PROFILES
        over = f", over {len(profiles):,} profiles" if many else ""
        title = f"{provider}: ε of one {part['unit'][0]}, spent of allowed{over}"
        table = Table("attribute", title=title, title_justify="left")
        for column in _SPREAD if many else profiles:
            table.add_column(column, justify="right")
        for (attribute,), own in part.group_by("attribute", maintain_order=True):
            pairs = own.select("exact_epsilon", "nominal_epsilon")
            if many:
                pairs = pl.concat([pairs.min(), pairs.median(), pairs.max()])
            cells = (f"{spent:.4f} of {allowed:.4f}" for spent, allowed in pairs.iter_rows())
            table.add_row(str(attribute), *cells)
        tables.append(table)
    return tables
