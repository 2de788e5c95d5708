"""What the commands print about aggregates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from flows.render import gates_table

if TYPE_CHECKING:
    from flows.aggregates import EvaluatedAggregates
    from flows.forecast_aggregates import AggregatesForecast

SHOWN_PROFILES = 6
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
            bar = "█" * max(0, round(_BAR * row["total"] / largest))
            share = "" if row["share"] is None else f"{row['share']:.1%} ± {row['share_error']:.1%}"
            interval = f"{row['ci_low']:,.0f} – {row['ci_high']:,.0f}"
            numbers = f"{row['total']:,.0f}", f"{row['standard_error']:,.0f}"
            table.add_row(escape(row["attribute"]), *numbers, interval, share, bar)
        tables.append(table)
    return tables


def budget_tables(rows: pl.DataFrame) -> list[Table]:
    """One table a provider: what each profile spends on each attribute, of what it allows."""
    tables = []
    for (provider,), part in rows.group_by("provider", maintain_order=True):
        profiles = part["level"].unique(maintain_order=True).to_list()
        shown = profiles[:SHOWN_PROFILES]
        more = f", {len(shown)} of {len(profiles)} profiles" if len(shown) < len(profiles) else ""
        table = Table(title=f"{provider}: ε of one item, spent of allowed{more}", title_justify="left")
        table.add_column("attribute")
        for profile in shown:
            table.add_column(profile, justify="right")
        for (attribute,), own in part.group_by("attribute", maintain_order=True):
            cells = {row["level"]: _spent(row) for row in own.iter_rows(named=True)}
            table.add_row(escape(str(attribute)), *(cells[profile] for profile in shown))
        tables.append(table)
    return tables


def _spent(row: dict[str, Any]) -> str:
    return f"{row['exact_epsilon']:.4f} of {row['nominal_epsilon']:.4f}"


def show_aggregates_forecast(out: Console, found: AggregatesForecast) -> None:
    plan = found.plan
    out.print(f"[bold]{plan.name}[/]: up to ε = {float(plan.worst_total):g} of one {plan.unit}, all providers together")
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
        cells = [f"{known[name][field]:,.4g}" for name in providers for field in ("standard_error", "one_user")]
        errors.add_row(escape(str(attribute)), *cells)
    out.print(errors)
    out.print(_losses(found.losses))


def show_aggregates_evaluation(out: Console, done: EvaluatedAggregates) -> None:
    out.print(f"[bold]{done.evaluation_id}[/] — {done.n_users:,} users; never published")
    for (provider,), part in done.cells.group_by("provider", maintain_order=True):
        table = Table(title=f"{provider}: against the truth", title_justify="left")
        table.add_column("attribute")
        for column in ("total", "truth", "± error", "z", "mean error of a report", "predicted"):
            table.add_column(column, justify="right")
        for row in part.iter_rows(named=True):
            table.add_row(
                escape(row["attribute"]),
                f"{row['total']:,.0f}",
                f"{row['truth']:,.0f}",
                f"{row['standard_error']:,.0f}",
                f"{row['z']:.2f}",
                f"{row['mean_error']:.4g}",
                f"{row['predicted_mean_error']:.4g}",
            )
        out.print(table)
    out.print(_losses(done.losses))
    out.print(gates_table([vars(verdict) for verdict in done.verdicts]))
    out.print(f"Kept in {done.folder / 'evaluation.duckdb'} (0700)", highlight=False, soft_wrap=True)


def aggregates_evaluation_json(done: EvaluatedAggregates) -> dict[str, Any]:
    return {
        "evaluation_id": done.evaluation_id,
        "n_users": done.n_users,
        "aggregates": done.cells.to_dicts(),
        "losses": done.losses.to_dicts(),
        "validations": [vars(verdict) for verdict in done.verdicts],
    }


def _losses(rows: pl.DataFrame) -> Table:
    """How good the spending is: the noise of one report, averaged over attributes."""
    shown = rows["profile"].unique(maintain_order=True).to_list()[:SHOWN_PROFILES]
    table = Table(title="Noise of one report, mean over attributes", title_justify="left")
    for column in ("provider", "profile", "spent by"):
        table.add_column(column)
    for column in ("MAE", "MSE", "MAEL", "KL"):
        table.add_column(column, justify="right")
    for row in rows.filter(pl.col("profile").is_in(shown)).iter_rows(named=True):
        losses = (f"{row[name]:.4g}" for name in ("mae", "mse", "mael", "kl"))
        table.add_row(row["provider"], row["profile"], row["way"], *losses)
    return table
