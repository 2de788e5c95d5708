"""What the commands print about frequent items."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Console

from pldp.flows.tables import Bar, Table
from pldp.privacy.trust import OPERATED
from pldp.tasks.terminal import styled

if TYPE_CHECKING:
    from pldp.flows.evaluate import Evaluated
    from pldp.flows.forecast_items import ItemsForecast

SHOWN_SETS = 10
SHOWN_RULES = 10
_BAR = 20


def itemset_tables(itemsets: pl.DataFrame, rules: pl.DataFrame) -> Iterator[Table]:
    """One table a length, the most supported first; then the surest rules."""
    for (length,), rows in itemsets.group_by("length", maintain_order=True):
        frequent = int((rows["probability_frequent"] >= 0.5).sum())
        what = "Items" if length == 1 else f"Sets of {length}"
        title = f"{what}: {rows.height:,}, of which {frequent:,} more likely frequent than not"
        table = Table(title=title, title_justify="left")
        table.add_column("items")
        for column in ("support", "± error", "interval", "frequent"):
            table.add_column(column, justify="right")
        table.add_column("")
        top = rows.sort("support", descending=True).head(SHOWN_SETS)
        largest = max(float(top["support"][0]), 1e-12)
        for row in top.iter_rows(named=True):
            bar = Bar(row["support"] / largest, _BAR)
            interval = f"{row['ci_low']:.2%} – {row['ci_high']:.2%}"
            numbers = f"{row['support']:.2%}", f"{row['standard_error']:.2%}"
            table.add_row(_names(row["items"]), *numbers, interval, f"{row['probability_frequent']:.0%}", bar)
        if rows.height > top.height:
            table.add_row(styled(f"… {rows.height - top.height} more", "dim"), "", "", "", "", "")
        yield table
    if not rules.is_empty():
        yield _rules(rules)


def _rules(rules: pl.DataFrame) -> Table:
    table = Table(title=f"{rules.height:,} rules", title_justify="left")
    for column in ("who has", "has too"):
        table.add_column(column)
    for column in ("confidence", "± error", "support", "lift"):
        table.add_column(column, justify="right")
    # The surest first: by the lower end of the interval, which noise lifts less.
    for row in rules.sort("ci_low", descending=True).head(SHOWN_RULES).iter_rows(named=True):
        lift = "" if row["lift"] is None else f"{row['lift']:.2f}"
        numbers = f"{row['confidence']:.1%}", f"{row['standard_error']:.1%}", f"{row['support']:.2%}"
        table.add_row(_names(row["antecedent"]), _names(row["consequent"]), *numbers, lift)
    return table


def _names(items: list[str]) -> str:
    return " + ".join(items)


def show_items_forecast(out: Console, found: ItemsForecast) -> None:
    plan = found.plan
    why = f"protocol {plan.protocol}: {plan.why}"
    spent = f"up to ε = {float(plan.worst_total):g} a {plan.unit}"
    out.print(styled(plan.name, "bold") + f": {spent}; {why}", highlight=False)
    out.print(f"  model: {OPERATED.name}", highlight=False)
    lines = (*(f"assumed: {text}" for text in found.assumptions), *(f"note: {text}" for text in found.notes))
    for line in lines:
        out.print(f"  {line}", highlight=False, markup=False)
    levels = Table(title="What a whole row spends", title_justify="left")
    levels.add_column("level")
    for column in ("given", "exact ε", "bound", "report"):
        levels.add_column(column, justify="right")
    for row in found.levels.iter_rows(named=True):
        levels.add_row(
            row["level"], f"{row['given']:.4g}", _epsilon(row["exact_epsilon"]), f"{row['bound']:.4g}", row["mechanism"]
        )
    out.print(levels)
    if not found.sensitivities.is_empty():
        out.print(_sensitivity_table(found.sensitivities))
    errors = Table(title=f"Predicted standard error at a support of {plan.minimum_support:.2%}", title_justify="left")
    errors.add_column("sets of", justify="right")
    for column in ("typical", "noisiest items"):
        errors.add_column(column, justify="right")
    for row in found.errors.iter_rows(named=True):
        errors.add_row(str(row["length"]), f"{row['standard_error']:.3%}", f"{row['worst']:.3%}")
    out.print(errors)
    if not found.items.is_empty():
        out.print(_item_table(found.items))


def _sensitivity_table(rows: pl.DataFrame) -> Table:
    """One row per sensitivity, one pair of columns per level."""
    levels = rows["level"].unique(maintain_order=True).to_list()
    table = Table(
        title="What each sensitivity gets (odds: how many times likelier a report can be if one item were another way)",
        title_justify="left",
    )
    for column in ("sensitivity", "items", *(f"{what} {level}" for level in levels for what in ("ε", "odds"))):
        table.add_column(column, justify="right")
    for (sensitivity, items), part in rows.group_by("sensitivity", "items", maintain_order=True):
        cells = []
        for row in part.iter_rows(named=True):
            cells += [_epsilon(row["exact_epsilon"]), "any" if row["odds"] is None else f"{row['odds']:.3g}"]
        table.add_row(str(sensitivity), str(items), *cells)
    return table


def _item_table(rows: pl.DataFrame) -> Table:
    levels = [column for column in rows.columns if column not in ("item", "sensitivity")]
    table = Table(title="Exact ε of one item", title_justify="left")
    table.add_column("item")
    if "sensitivity" in rows.columns:
        table.add_column("sensitivity", justify="right")
    for level in levels:
        table.add_column(level, justify="right")
    for row in rows.head(SHOWN_SETS).iter_rows(named=True):
        own = [str(row["sensitivity"])] if "sensitivity" in row else []
        table.add_row(row["item"], *own, *(_epsilon(row[level]) for level in levels))
    if rows.height > SHOWN_SETS:
        table.add_row(styled(f"… {rows.height - SHOWN_SETS} more", "dim"), *([""] * (len(table.columns) - 1)))
    return table


def _epsilon(value: float | None) -> str:
    return "infinite" if value is None else f"{value:.4f}"


def show_items_study(out: Console, done: Evaluated) -> None:
    itemsets: pl.DataFrame = done.tables["itemsets"]
    table = Table(title="Against the truth", title_justify="left")
    table.add_column("items")
    for column in ("support", "truth", "± error", "z", "frequent", "truly"):
        table.add_column(column, justify="right")
    for (_,), rows in itemsets.group_by("length", maintain_order=True):
        for row in rows.sort("support", descending=True).head(SHOWN_SETS).iter_rows(named=True):
            table.add_row(_names(row["items"]), *_against(row))
    out.print(table)
    if not done.tables["identity"].is_empty():
        out.print(_identity(done.tables["identity"]))
    if not done.tables["privacy"].is_empty():
        out.print(_privacy(done.tables["privacy"]))


def _against(row: dict[str, Any]) -> tuple[str, ...]:
    z = "" if row["z"] is None or row["z"] != row["z"] else f"{row['z']:.2f}"
    numbers = f"{row['support']:.2%}", f"{row['truth']:.2%}", f"{row['standard_error']:.2%}"
    return (*numbers, z, f"{row['probability_frequent']:.0%}", "yes" if row["truly_frequent"] else "no")


def _identity(rows: pl.DataFrame) -> Table:
    """θ⁺ and θ⁻ (aprr Definition 7), one column a minimum support."""
    minima = rows["minimum"].unique(maintain_order=True).to_list()
    table = Table(
        title=f"Frequent sets made up / missed, by the truly frequent ones; {rows['repeats'][0]} repetitions",
        title_justify="left",
    )
    table.add_column("method")
    for minimum in minima:
        table.add_column(f"{minimum:.3g}", justify="right")
    for (method,), part in rows.group_by("method", maintain_order=True):
        cells = {row["minimum"]: f"{row['made_up']:.3f} / {row['missed']:.3f}" for row in part.iter_rows(named=True)}
        table.add_row(str(method), *(cells.get(minimum, "") for minimum in minima))
    return table


def _privacy(rows: pl.DataFrame) -> Table:
    table = Table(title="aprr's degrees of privacy (Eq. 6–11), beside the exact ε of a row", title_justify="left")
    table.add_column("method")
    table.add_column("probabilities")
    for column in ("least", "most", "average", "overall", "exact ε"):
        table.add_column(column, justify="right")
    for row in rows.iter_rows(named=True):
        degrees = (f"{row[name]:.1%}" for name in ("least", "most", "average", "overall"))
        table.add_row(row["method"], row["probabilities"], *degrees, _epsilon(row["exact_epsilon"]))
    return table
