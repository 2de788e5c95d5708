"""What the commands print of numbers."""

from __future__ import annotations

import polars as pl

from pldp.flows.tables import Table, titled
from pldp.page import words


def means_table(means: pl.DataFrame) -> Table:
    """A table of means with their errors, intervals and declared bounds, from rows of `means`."""
    table = titled("Means", ("attribute",), ("mean", "± error", "interval", "bounds", "reports"), "method")
    for row in means.iter_rows(named=True):
        table.add_row(
            row["attribute"],
            words.figure(row["mean"], 6),
            words.figure(row["standard_error"], 2),
            f"{words.figure(row['ci_low'], 6)} – {words.figure(row['ci_high'], 6)}",
            f"{words.figure(row['lower'], 6)} – {words.figure(row['upper'], 6)}",
            f"{row['n_reports']:,}",
            row["method"],
        )
    return table


def quantiles_table(quantiles: pl.DataFrame) -> Table:
    """A table of quantiles with their errors and intervals, from rows of `quantiles`."""
    table = titled("Quantiles", ("attribute",), ("share below", "quantile", "± error", "interval", "reports"))
    for row in quantiles.iter_rows(named=True):
        table.add_row(
            row["attribute"],
            f"{row['probability']:.4g}",
            words.figure(row["quantile"], 6),
            words.figure(row["standard_error"], 2),
            f"{words.figure(row['ci_low'], 6)} – {words.figure(row['ci_high'], 6)}",
            f"{row['n_reports']:,}",
        )
    return table
