"""What the commands print of numbers."""

from __future__ import annotations

import polars as pl

from pldp.flows.tables import Table
from pldp.page import words


def means_table(means: pl.DataFrame) -> Table:
    table = Table(title="Means", title_justify="left")
    table.add_column("attribute")
    for column in ("mean", "± error", "interval", "bounds", "reports"):
        table.add_column(column, justify="right")
    table.add_column("method")
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
    table = Table(title="Quantiles", title_justify="left")
    table.add_column("attribute")
    for column in ("share below", "quantile", "± error", "interval", "reports"):
        table.add_column(column, justify="right")
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


def predicted_means(means: pl.DataFrame) -> Table:
    table = Table(title="Predicted standard error of means (◆ published)", title_justify="left")
    table.add_column("attribute")
    table.add_column("bounds", justify="right")
    for method in means["method"].unique(maintain_order=True):
        table.add_column(method, justify="right")
    for (attribute,), rows in means.group_by("attribute", maintain_order=True):
        cells = [
            f"{'◆ ' if row['published'] else ''}{words.figure(row['standard_error'], 3)}"
            for row in rows.iter_rows(named=True)
        ]
        table.add_row(
            str(attribute), f"{words.figure(rows['lower'][0], 6)} – {words.figure(rows['upper'][0], 6)}", *cells
        )
    return table


def sampling_table(sampling: pl.DataFrame) -> Table:
    table = Table(title="Numbers that a user reports on", title_justify="left")
    for column in ("level", "ε in all", "reports on", "ε of a report", "why"):
        table.add_column(column, justify="left" if column in {"level", "why"} else "right")
    for row in sampling.iter_rows(named=True):
        low, high = f"{row['lowest']:.4g}", f"{row['highest']:.4g}"
        spent = low if low == high else f"{low} – {high}"
        table.add_row(
            row["level"], f"{row['budget']:.4g}", f"{row['sampled']} of {row['questions']}", spent, row["why"]
        )
    return table


def mechanisms_table(mechanisms: pl.DataFrame) -> Table:
    table = Table(title="Mechanisms for numbers (noise of one report, range −1 to 1)", title_justify="left")
    for column in ("attribute", "of", "level", "ε", "mechanism", "why"):
        table.add_column(column, justify="right" if column == "ε" else "left")
    for row in mechanisms.iter_rows(named=True):
        table.add_row(
            row["attribute"], row["question"], row["level"], f"{row['budget']:.4g}", row["mechanism"], row["why"]
        )
    return table


def studied_means(studied: pl.DataFrame) -> Table:
    table = Table(title="Means against the truth, over the repetitions", title_justify="left")
    table.add_column("attribute")
    table.add_column("method")
    for column in ("repeats", "users", "error", "predicted", "ratio", "bias", "coverage"):
        table.add_column(column, justify="right")
    for row in studied.iter_rows(named=True):
        table.add_row(
            row["attribute"],
            row["method"],
            f"{row['repeats']:,}",
            f"{row['users']:,}",
            words.figure(row["rmse"]),
            words.figure(row["predicted"]),
            f"{row['rmse'] / row['predicted']:.3f}" if row["predicted"] else "",
            words.figure(row["bias"], 2),
            f"{row['coverage']:.1%}",
        )
    return table
