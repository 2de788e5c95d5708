"""What `plan` and `evaluate` print: the questions' tables, whatever their kind. Nothing here imports Prefect."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Console

from pldp.channels.exact import float_above
from pldp.flows.render_budgets import budget_tables
from pldp.flows.tables import Table
from pldp.page import words
from pldp.privacy.trust import in_a_line, trust_model
from pldp.tasks.terminal import styled

if TYPE_CHECKING:
    from pldp.flows.evaluate import Evaluated
    from pldp.flows.planned import Planned

MOST_ROWS = 40
"""Rows of a table on the terminal; `--json` has all."""


def show_plan(out: Console, planned: Planned) -> None:
    """Print what a spec will ask, promise and come to."""
    plan = planned.plan
    out.print(styled(plan.name, "bold"), f"plan {plan.sha256[:12]}", highlight=False)
    for unit in plan.units:
        spent = f"{words.whose(unit)} spends at most ε = {float_above(plan.worst_total(unit)):g}"
        out.print(spent, highlight=False, soft_wrap=True)
    out.print(f"Model: {in_a_line(trust_model(plan.perturbed_by).name)}", highlight=False, soft_wrap=True)
    show_lines(out, "Assumed", planned.assumptions)
    show_lines(out, "note", planned.notes)
    for table in budget_tables(planned.budgets):
        out.print(table)
    for kind, tables in planned.predictions.items():
        show_frames(out, tables, f"{kind}: ")
    target = planned.target
    if target is not None:
        reached = f"{target.standard_error:g} as the standard error of {' and of '.join(target.covers)}"
        budget = "no budget up to 1000" if target.budget is None else f"a budget of {target.budget:.4g}"
        users = "no number of users" if target.users is None else f"{target.users:,} users"
        out.print(f"To reach {reached}: {budget} with {plan.expected_users:,} users,", highlight=False, soft_wrap=True)
        out.print(f"or {users} at this budget. Largest now: {target.largest}.", highlight=False, soft_wrap=True)


def show_study(out: Console, done: Evaluated) -> None:
    """Print every table of an evaluation that has rows."""
    show_frames(out, done.tables)


def show_lines(out: Console, title: str, lines: tuple[str, ...]) -> None:
    """Print each sentence behind the same title."""
    for line in lines:
        out.print(f"{title}: {line}", highlight=False, soft_wrap=True, markup=False)


def show_frames(out: Console, frames: Mapping[str, pl.DataFrame], prefix: str = "") -> None:
    """Print frames as tables titled by their names behind `prefix`; empty ones not, long ones cut with a note."""
    for name, rows in frames.items():
        if rows.is_empty():
            continue
        rows = condensed(rows)
        out.print(frame_table(f"{prefix}{name.replace('_', ' ')}", rows))
        if rows.height > MOST_ROWS:
            out.print(f"… and {rows.height - MOST_ROWS:,} more rows: --json has all", highlight=False)


def condensed(rows: pl.DataFrame) -> pl.DataFrame:
    """The same rows; where a column names more things than are shown, medians over them."""
    texts = [name for name, dtype in rows.schema.items() if dtype == pl.String]
    many = max(texts, key=lambda name: rows[name].n_unique(), default="")
    if len(texts) < 2 or rows[many].n_unique() <= MOST_ROWS:
        return rows
    others = [name for name in texts if name != many]
    over = pl.lit(f"median of {rows[many].n_unique()}").alias(many)
    medians = rows.group_by(others, maintain_order=True).agg(pl.col(pl.Float64, pl.Int64).median())
    return medians.with_columns(over).select(name for name in rows.columns if name in {*others, many, *medians.columns})


def frame_table(title: str, rows: pl.DataFrame) -> Table:
    """Any small frame: numbers to four figures and on the right, columns that say nothing left out."""
    table = Table(title=title, title_justify="left")
    kept = [name for name in rows.columns if rows[name].null_count() < rows.height]
    for name in kept:
        number = rows[name].dtype.is_numeric()
        table.add_column(name.replace("_", " "), justify="right" if number else "left")
    for row in rows.head(MOST_ROWS).select(kept).iter_rows():
        table.add_row(*(cell_text(value) for value in row))
    return table


def cell_text(value: Any) -> str:
    """One cell of any type as a reader sees it: null empty, NaN a dash, numbers rounded, lists joined."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else ""
        case float():
            return "–" if math.isnan(value) else f"{value:.4g}"
        case int():
            return f"{value:,}"
        case list():
            return ", ".join(map(str, value))
        case _:
            return str(value)
