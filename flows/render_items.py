"""What the commands print about frequent items."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pldp.flows.tables import Bar, Table, titled
from pldp.tasks.terminal import styled

SHOWN_SETS = 10
SHOWN_RULES = 10
_BAR = 20


def itemset_tables(itemsets: pl.DataFrame, rules: pl.DataFrame) -> Iterator[Table]:
    """One table a length, the most supported first; then the surest rules."""
    for (length,), rows in itemsets.group_by("length", maintain_order=True):
        frequent = int((rows["probability_frequent"] >= 0.5).sum())
        what = "Items" if length == 1 else f"Sets of {length}"
        title = f"{what}: {rows.height:,}, of which {frequent:,} more likely frequent than not"
        table = titled(title, ("items",), ("support", "± error", "interval", "frequent"), "")
        top = rows.sort("support", descending=True).head(SHOWN_SETS)
        largest = max(float(top["support"][0]), 1e-12)
        for row in top.iter_rows(named=True):
            bar = Bar(row["support"] / largest, _BAR)
            interval = f"{row['ci_low']:.2%} – {row['ci_high']:.2%}"
            least = "at least " if row.get("understatement") else ""
            numbers = f"{least}{row['support']:.2%}", f"{row['standard_error']:.2%}"
            table.add_row(_names(row["items"]), *numbers, interval, f"{row['probability_frequent']:.0%}", bar)
        if rows.height > top.height:
            table.add_row(styled(f"… {rows.height - top.height} more", "dim"), "", "", "", "", "")
        yield table
    if not rules.is_empty():
        yield _rules(rules)


def _rules(rules: pl.DataFrame) -> Table:
    title = f"{rules.height:,} rules"
    table = titled(title, ("who has", "has too"), ("confidence", "± error", "support", "lift"))
    # The surest first: by the lower end of the interval, which noise lifts less.
    for row in rules.sort("ci_low", descending=True).head(SHOWN_RULES).iter_rows(named=True):
        lift = "" if row["lift"] is None else f"{row['lift']:.2f}"
        numbers = f"{row['confidence']:.1%}", f"{row['standard_error']:.1%}", f"{row['support']:.2%}"
        table.add_row(_names(row["antecedent"]), _names(row["consequent"]), *numbers, lift)
    return table


def _names(items: list[str]) -> str:
    return " + ".join(items)
