"""Frequent items on a page: sets by their length, the most supported first, and rules between them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pldp.page import words
from pldp.page.blocks import (
    Bar,
    Bars,
    Block,
    Column,
    Figure,
    Listing,
    Paragraph,
    Section,
    Table,
    code,
    figure_table,
    strong,
)
from pldp.page.promises import epsilon
from pldp.page.published import KindPage, Published, Query, Row, grouped
from pldp.questions.items.page_promise import TABLED, holds_one, promise
from pldp.tables.items import PLACE

CHARTED = 30
"""Sets of a length that are drawn, the most supported."""

JOINED = " + "
RELIABLE = 3.0


def holds(page: Published) -> str:
    """How many item sets (or values) a release published, as its list of contents says it; empty without any."""
    number = len(page.rows("itemsets"))
    return words.counted(number, "value" if holds_one(page) else "item set") if number else ""


def _joined(page: Published, items: list[str]) -> str:
    return JOINED.join(page.wording.value("", item) for item in items)


def results(page: Published) -> tuple[Section, ...]:
    """The sections of published sets by length, and of rules; none where the release has none."""
    lengths = grouped(page.rows("itemsets"), "length")
    if not lengths:
        return ()
    one = holds_one(page)
    minimum = page.stated("itemsets", "minimum_support") or 0.0
    intro = Paragraph(
        (
            f"The share of users who {'have each value' if one else 'hold all items of a set'}, estimated without "
            "bias, so "
            f"noise can make it negative. The thin lines are {100 * page.confidence:g} % intervals; a bar that is "
            "dashed and "
            "marked ◦ does not exceed three standard errors and is not reliable. ",
            strong("Frequent"),
            f" is the chance that the true share reaches {words.percent(minimum)}, given the estimate and how rare "
            "such sets are altogether.",
            *_lower_bounds(page),
        )
    )
    sections = tuple(_length(page, length, rows, one) for length, rows in lengths.items())
    return (Section("sets", "Values" if one else "Item sets", (intro,), sections), *_rules(page))


def _lower_bounds(page: Published) -> tuple[str, ...]:
    if not any(row.get("understatement") for row in page.rows("itemsets")):
        return ()
    return (
        " Shares that say “at least” are lower bounds but for noise: some users hold more than a report has places for "
        "and count for less. The upper ends of their intervals allow for the most that this can be.",
    )


def _length(page: Published, length: int, rows: list[Row], one: bool) -> Section:
    title = ("Values" if one else "Single items") if length == 1 else f"Sets of {length}"
    ordered = sorted(rows, key=lambda row: -row["support"])
    digits = words.decimals(min(row["standard_error"] for row in rows))
    drawn, top = ordered[:CHARTED], ordered[0]
    bars = tuple(
        Bar(_joined(page, row["items"]), row["support"], row["ci_low"], row["ci_high"],
            _support(row, digits), row["support"] > RELIABLE * row["standard_error"])
        for row in drawn
    )  # fmt: skip
    frequent = sum(row["probability_frequent"] >= 0.5 for row in rows)
    more = f" The {len(drawn)} most supported are drawn." if len(drawn) < len(rows) else ""
    caption = f"{len(rows):,} in all, {frequent:,} more likely frequent than not.{more}"
    chart = Bars(
        f"Bar chart of {title.lower()}: estimated supports of {len(drawn)} with error bars. Largest: "
        f"{_joined(page, top['items'])} with {words.percent(top['support'], digits)}, between "
        f"{words.percent(top['ci_low'], digits)} and {words.percent(top['ci_high'], digits)}. The table below has "
        "all numbers.",
        bars,
        axis="support",
    )
    lines = tuple(
        (
            (_joined(page, row["items"]),),
            (_support(row, digits),),
            (words.percent(row["standard_error"], digits),),
            (f"{words.percent(row['ci_low'], digits)} to {words.percent(row['ci_high'], digits)}",),
            (words.percent(row["probability_frequent"], 0),),
        )
        for row in ordered[:TABLED]
    )
    shortened = f", the first {len(lines)}" if len(lines) < len(rows) else ""
    titles = ("value" if one else "items", "support", "standard error", "interval", "frequent")
    table = figure_table(f"Numbers: {title.lower()}{shortened}", tuple(Column((each,)) for each in titles), lines)
    return Section(f"length-{length}", title, (Figure((caption,), chart, (table,)),))


def _support(row: Row, digits: int) -> str:
    """A lower bound is named so."""
    least = "at least " if row.get("understatement") else ""
    return least + words.percent(row["support"], digits)


def _rules(page: Published) -> tuple[Section, ...]:
    rows = sorted(page.rows("rules"), key=lambda row: -row["ci_low"])
    if not rows:
        return ()
    first = f"; these are the first {TABLED:,}" if len(rows) > TABLED else ""
    text = Paragraph(
        (
            f"Of those who have the left side, the share who have the right side too. {len(rows):,} rules in "
            f"all, the highest lower ends of their intervals first{first}. A lift "
            "above 1 says that the two go together more often than by chance.",
        )
    )
    titles = ("who has", "has too", "confidence", "standard error", "interval", "support", "lift")
    lines = tuple(
        (
            (_joined(page, row["antecedent"]),),
            (_joined(page, row["consequent"]),),
            (words.percent(row["confidence"]),),
            (words.percent(row["standard_error"]),),
            (f"{words.percent(row['ci_low'])} to {words.percent(row['ci_high'])}",),
            (words.percent(row["support"], 2),),
            ("" if row["lift"] is None else f"{row['lift']:.2f}",),
        )
        for row in rows[:TABLED]
    )
    columns = tuple(Column((title,), words=title == "has too") for title in titles)
    return (Section("rules", "Rules", (text, Table("Rules", columns, lines))),)


def budgets(page: Published) -> tuple[Block, ...]:
    """What each level spends on a row of items or on a value, as a table."""
    if not page.rows("itemsets"):
        return ()
    rows = [row for row in page.rows("budgets") if row["attribute"] == PLACE]  # other kinds have rows too
    what = "value" if holds_one(page) else "whole row of items"
    titles = ("level", "users", "mechanism", "nominal ε", "exact ε, at most")
    lines = tuple(
        (
            (row["level"],),
            (f"{row['n_users']:,}",),
            (row["mechanism"],),
            (words.above(row["nominal_epsilon"]),),
            (epsilon(row["exact_epsilon"]),),
        )
        for row in rows
    )
    spoken = words.mechanisms(row["mechanism"] for row in rows)
    return (
        Paragraph((f"What a user’s {what} spends at each level.",)),
        Table("Budgets", tuple(Column((title,), words=title == "mechanism") for title in titles), lines),
        *((Listing(tuple((code(name), f": {meaning}.") for name, meaning in spoken)),) if spoken else ()),
    )


def query(page: Published) -> Query | None:
    """A query to start from: sets by length, most supported first; None where there are none."""
    if not page.rows("itemsets"):
        return None
    return Query(
        ("items", "support", "standard_error", "probability_frequent"), "itemsets", order="length, support DESC"
    )


def spends(spec: Mapping[str, Any]) -> tuple[str, float] | None:
    """A bound stands above what a protocol is given."""
    if "itemsets" not in spec:
        return None
    return "user", float(Fraction(spec["budget"].get("bound") or spec["budget"]["total"]))


PAGE = KindPage(holds, promise, results, budgets, query, spends)
