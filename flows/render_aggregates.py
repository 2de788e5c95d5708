"""What the commands print about aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
from rich.console import Console

from pldp.flows.tables import Bar, Table
from pldp.page import words
from pldp.privacy.trust import OPERATED
from pldp.tasks.terminal import styled

if TYPE_CHECKING:
    from pldp.flows.evaluate import Evaluated
    from pldp.flows.forecast_aggregates import AggregatesForecast

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


def show_aggregates_forecast(out: Console, found: AggregatesForecast) -> None:
    plan = found.plan
    spent = f"up to ε = {float(plan.worst_total):g} of one {plan.unit}, all providers together"
    out.print(styled(plan.name, "bold") + f": {spent}")
    out.print(f"  model: {OPERATED.name}", highlight=False)
    for line in (*(f"assumed: {text}" for text in found.assumptions), *(f"note: {text}" for text in found.notes)):
        out.print(f"  {line}", highlight=False, markup=False)
    for table in budget_tables(found.budgets):
        out.print(table)
    errors = Table(title="Predicted standard error", title_justify="left")
    errors.add_column("attribute")
    providers = [provider.name for provider in plan.providers]
    for provider in providers:
        errors.add_column(f"{provider}: total", justify="right")
        errors.add_column("one user", justify="right")
    for (attribute,), part in found.errors.group_by("attribute", maintain_order=True):
        known = {row["provider"]: row for row in part.iter_rows(named=True)}
        cells = [words.figure(known[name][field]) for name in providers for field in ("standard_error", "one_user")]
        errors.add_row(str(attribute), *cells)
    out.print(errors)
    out.print(_losses(found.losses))


def show_aggregates_study(out: Console, done: Evaluated) -> None:
    for (provider,), part in done.tables["aggregates"].group_by("provider", maintain_order=True):
        table = Table(title=f"{provider}: against the truth", title_justify="left")
        table.add_column("attribute")
        for column in ("total", "truth", "± error", "z", "mean error of a report", "predicted"):
            table.add_column(column, justify="right")
        for row in part.iter_rows(named=True):
            table.add_row(
                row["attribute"],
                f"{row['total']:,.0f}",
                f"{row['truth']:,.0f}",
                f"{row['standard_error']:,.0f}",
                f"{row['z']:.2f}",
                words.figure(row["mean_error"]),
                words.figure(row["predicted_mean_error"]),
            )
        out.print(table)
    out.print(_losses(done.tables["losses"]))


def _losses(rows: pl.DataFrame) -> Table:
    """How good the spending is: the noise of one report, averaged over attributes; of many profiles, the median."""
    measures = ("mae", "mse", "mael", "kl")
    if (profiles := rows["profile"].n_unique()) > SHOWN_PROFILES:
        by_way = rows.group_by("provider", "way", maintain_order=True).agg(pl.col(measures).median())
        rows = by_way.with_columns(profile=pl.lit(f"median of {profiles:,}"))
    table = Table(title="Noise of one report, mean over attributes", title_justify="left")
    for column in ("provider", "profile", "spent by"):
        table.add_column(column)
    for column in ("MAE", "MSE", "MAEL", "KL"):
        table.add_column(column, justify="right")
    for row in rows.iter_rows(named=True):
        losses = (words.figure(row[name]) for name in measures)
        table.add_row(row["provider"], row["profile"], row["way"], *losses)
    return table
