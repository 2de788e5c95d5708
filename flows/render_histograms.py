"""What the commands print about histograms and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import polars as pl
from rich.console import Console

from pldp.flows.render_numbers import mechanisms_table, predicted_means, sampling_table, studied_means
from pldp.flows.tables import Bar, Table
from pldp.page import words
from pldp.privacy.trust import trust_model
from pldp.tasks.terminal import styled

if TYPE_CHECKING:
    from pldp.flows.evaluate import Evaluated
    from pldp.flows.forecast import Forecast

SHOWN_VALUES = 8
_BAR = 24


def histogram_tables(histograms: pl.DataFrame) -> Iterator[Table]:
    """One an attribute."""
    if not histograms.is_empty():
        for (attribute,), rows in histograms.group_by("attribute", maintain_order=True):
            yield _histogram(str(attribute), rows)


def _histogram(attribute: str, rows: pl.DataFrame) -> Table:
    method, post = rows["method"][0], rows["postprocess"][0]
    table = Table(title=f"{attribute}: {method}, {post}, {rows['n_reports'][0]:,} reports", title_justify="left")
    table.add_column("value")
    for column in ("share", "± error", "interval"):
        table.add_column(column, justify="right")
    table.add_column("")
    top = rows.sort("frequency", descending=True).head(SHOWN_VALUES)
    largest = max(float(top["frequency"][0]), 1e-12)
    for row in top.iter_rows(named=True):
        interval = f"{row['ci_low']:.2%} – {row['ci_high']:.2%}"
        faint = "" if row["reliable"] else "dim"
        share, error = f"{row['frequency']:.2%}", f"{row['standard_error']:.2%}"
        table.add_row(styled(row["value"], faint), share, error, interval, Bar(row["frequency"] / largest, _BAR, faint))
    if rows.height > top.height:
        table.add_row(styled(f"… {rows.height - top.height} more", "dim"), "", "", "", "")
    return table


def shares_table(rows: pl.DataFrame) -> Table:
    table = Table(title="Hidden levels: how many chose each", title_justify="left")
    for column in ("attribute", "level"):
        table.add_column(column)
    for column in ("share", "± error"):
        table.add_column(column, justify="right")
    for row in rows.iter_rows(named=True):
        table.add_row(row["attribute"] or "all", row["level"], f"{row['share']:.2%}", f"{row['standard_error']:.2%}")
    return table


def budgets_table(rows: pl.DataFrame) -> Table:
    table = Table(title="Budgets", title_justify="left")
    table.add_column("attribute")
    for level in rows["level"].unique(maintain_order=True):
        table.add_column(f"ε {level}", justify="right")
    table.add_column("share of total", justify="right")
    hidden = rows["level_leak"].null_count() < rows.height
    if hidden:
        table.add_column("tells about the level", justify="right")
    for (attribute,), part in rows.group_by("attribute", maintain_order=True):
        cells = [f"{row['nominal_epsilon']:.4f} {row['mechanism']}" for row in part.iter_rows(named=True)]
        leak = [f"{part['level_leak'][0]:.3f}"] if hidden else []
        table.add_row(str(attribute), *cells, f"{part['share'][0]:.1%}", *leak)
    return table


def show_forecast(out: Console, found: Forecast) -> None:
    out.print(styled(found.plan.name, "bold") + f": total budget {float(found.plan.total):g} a {found.plan.unit}")
    out.print(f"  model: {trust_model(found.plan.perturbed_by).name}", highlight=False)
    for assumption in found.assumptions:
        out.print(f"  assumed: {assumption}", highlight=False)
    out.print(budgets_table(found.budgets))
    if not found.errors.is_empty():
        _show_histograms(out, found)
    if not found.means.is_empty():
        out.print(sampling_table(found.sampling))
        out.print(predicted_means(found.means))
        out.print(mechanisms_table(found.mechanisms))
    if found.target is not None:
        _show_target(out, found)


def _show_histograms(out: Console, found: Forecast) -> None:
    errors = Table(title="Predicted standard error (root mean square over values)", title_justify="left")
    errors.add_column("attribute")
    errors.add_column("values", justify="right")
    methods = found.errors["method"].unique(maintain_order=True).to_list()
    for method in methods:
        errors.add_column(method, justify="right")
    for (attribute,), rows in found.errors.group_by("attribute", maintain_order=True):
        known = dict(zip(rows["method"], rows["standard_error"], strict=True))
        cells = [f"{known[method]:.3%}" if method in known else "" for method in methods]
        errors.add_row(str(attribute), str(rows["values"][0]), *cells)
    out.print(errors)
    out.print(_protocols(found.choices))
    costs = Table(title="What each level's choice costs the analyst", title_justify="left")
    for column in ("attribute", "level", "its own error", "if everybody chose it", "information a user"):
        costs.add_column(column, justify="left" if column in {"attribute", "level"} else "right")
    for row in found.costs.iter_rows(named=True):
        costs.add_row(
            row["attribute"],
            row["level"],
            f"{row['standard_error']:.3%}",
            f"{row['everyone']:.3%}",
            f"{row['information']:.0%}",
        )
    out.print(costs)


def _protocols(rows: pl.DataFrame) -> Table:
    """Why each protocol was chosen; where levels are hidden also what it tells about them."""
    hidden = rows["level_leak"].null_count() < rows.height
    table = Table(title="Protocols (◆ chosen; noise of one report)", title_justify="left")
    columns = ("attribute", "all levels" if hidden else "level", "protocol", "noise", "bytes")
    for column in (*columns, *(["tells about the level"] if hidden else []), "why"):
        table.add_column(column, justify="right" if column in {"noise", "bytes"} else "left")
    for row in rows.iter_rows(named=True):
        if row["chosen"] or hidden:
            leak = ["without bound" if row["level_leak"] is None else f"{row['level_leak']:.3f}"] if hidden else []
            mark = "◆ " if row["chosen"] else "  "
            noise, size = words.figure(row["variance"]), str(row["report_bytes"])
            where = (row["attribute"], row["level"] or "", mark + row["mechanism"])
            table.add_row(*where, noise, size, *leak, row["why"] or "")
    return table


def _show_target(out: Console, found: Forecast) -> None:
    target = found.target
    if target is None:
        return
    users, total = found.plan.expected_users, float(found.plan.total)
    budget = "no budget up to 1000" if target.budget is None else f"a total budget of {target.budget:.4g}"
    asked = found.plan.numbers is not None and any(q.kind == "distribution" for q in found.plan.numbers.questions)
    unsearched = " Quantiles have no predicted error: they were not searched for." if asked else ""
    people = "no number of users" if target.users is None else f"{target.users:,} users"
    out.print(
        f"A standard error of {target.standard_error:g} on {' and '.join(target.covers)} takes {budget} with "
        f"{users:,} users, or {people} at a budget of {total:g}. The spec as it stands reaches "
        f"{found.worst_error:.4g} ({target.largest}).{unsearched}",
        highlight=False,
    )


def show_histogram_study(out: Console, done: Evaluated) -> None:
    for (attribute,), rows in done.tables["methods"].group_by("attribute", maintain_order=True):
        table = Table(title=f"{attribute}: against the truth, over the repetitions", title_justify="left")
        table.add_column("method", no_wrap=True)
        for column in ("repeats", "error", "predicted", "ratio", "coverage", "largest error", "NSE"):
            table.add_column(column, justify="right")
        for row in rows.iter_rows(named=True):
            predicted = row["predicted"]
            table.add_row(
                row["method"],
                f"{row['repeats']:,}",
                f"{row['rmse']:.3%}",
                "" if predicted is None else f"{predicted:.3%}",
                "" if predicted is None else f"{row['rmse'] / predicted:.3f}",
                "" if row["coverage"] is None else f"{row['coverage']:.1%}",
                f"{row['maximum_error']:.3%}",
                words.figure(row["nse"]),
            )
        out.print(table)
        out.print(
            f"The unbiasedness test fired in {rows['unbiasedness_rate'][0]:.2%} of the repetitions, "
            f"the homogeneity test in {rows['disagreement_rate'][0]:.2%} (never where levels are hidden).",
            highlight=False,
        )
    if not done.tables["means"].is_empty():
        out.print(studied_means(done.tables["means"]))
