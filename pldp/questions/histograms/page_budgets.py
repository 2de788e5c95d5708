"""What a person spends, on a page: attributes and levels of histograms and numbers, which share one budget."""

from __future__ import annotations

from pldp.page import words
from pldp.page.blocks import (
    Block,
    Column,
    Figure,
    GroupedBars,
    Listing,
    Paragraph,
    Point,
    Series,
    Text,
    code,
    figure_table,
    strong,
)
from pldp.page.published import Published, Row, grouped

CHARTED = 40
"""Attributes that are drawn, those of the largest budgets."""


MANY = 12
"""Attributes that each have a row of the chart; of more, those with equal budgets share one."""


def budgets(page: Published) -> tuple[Block, ...]:
    """What each level spends on each attribute: the largest drawn, all of them as a table. Numbers are shown with
    them."""
    asked = {attribute["attribute"] for attribute in page.said("attributes") or ()}
    rows = [row for row in page.rows("budgets") if not asked or row["attribute"] in asked]  # other kinds have rows too
    if not rows or not (page.rows("histograms") or page.rows("means")):
        return ()
    hidden = page.said("hidden_levels")
    levels = list(dict.fromkeys(row["level"] for row in rows))
    attributes = grouped(rows, "attribute")
    alike = _alike(page, attributes)
    drawn = sorted(alike, key=lambda name: -max(row["nominal_epsilon"] for row in alike[name]))[:CHARTED]
    note = f" The {len(drawn)} largest of {len(alike)} are drawn." if len(drawn) < len(alike) else ""
    titles = ("attribute", "level", "nominal ε", "exact ε", "mechanism", "share of total")
    columns = tuple(Column((title,), words=title in ("level", "mechanism")) for title in titles)
    columns += (Column(("tells about the level" if hidden else "users",)),)
    table = figure_table(
        "Numbers of the budgets",
        columns,
        tuple(_line(page, row, bool(hidden)) for row in rows),
        caption="The exact ε is the worst case of the probabilities that were used, rounded up: never above the "
        "nominal one.",
    )
    chart = _chart([name for name in alike if name in drawn], alike, levels)
    spoken = words.mechanisms(row["mechanism"] for row in rows)
    return (
        Paragraph(
            (
                "What one user spends on each attribute, by the level this user chose. A smaller budget protects "
                "more and "
                "tells the analyst less.",
            )
        ),
        Figure((strong("Budget ε by attribute and level."), note), chart, (table,)),
        *((Listing(tuple((code(name), f": {meaning}.") for name, meaning in spoken)),) if spoken else ()),
    )


def _line(page: Published, row: Row, hidden: bool) -> tuple[Text, ...]:
    last = f"{row['level_leak']:.9g}" if hidden else "" if row["n_users"] is None else f"{row['n_users']:,}"
    return (
        (page.wording.attribute(row["attribute"]),),
        (row["level"],),
        (f"{row['nominal_epsilon']:.9g}",),
        (f"{row['exact_epsilon']:.9g}",),
        (row["mechanism"],),
        (words.percent(row["share"]),),
        (last,),
    )


def _alike(page: Published, attributes: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """Rows by what a chart calls them: of many attributes, those with the same budgets stand together."""
    label = page.wording.attribute
    if len(attributes) <= MANY:
        return {label(name): rows for name, rows in attributes.items()}
    groups: dict[tuple[tuple[str, float], ...], list[str]] = {}
    for name, rows in attributes.items():
        groups.setdefault(tuple((row["level"], row["nominal_epsilon"]) for row in rows), []).append(name)
    return {
        label(names[0]) if len(names) == 1 else f"{label(names[0])} and {len(names) - 1} more": attributes[names[0]]
        for names in groups.values()
    }


def _chart(names: list[str], attributes: dict[str, list[Row]], levels: list[str]) -> GroupedBars:
    points = tuple(
        Point(
            place,
            levels.index(row["level"]),
            *(row["nominal_epsilon"],) * 3,
            words.above(row["nominal_epsilon"]),
        )
        for place, name in enumerate(names)
        for row in attributes[name]
    )
    named = ((name, row) for name, rows in attributes.items() for row in rows)
    top, largest = max(named, key=lambda pair: pair[1]["nominal_epsilon"])
    return GroupedBars(
        "Bar chart of the budget ε that a user spends on each attribute, by level. Largest: "
        f"{top} at level {largest['level']} with {largest['nominal_epsilon']:.4g}. All numbers are below.",
        tuple(names),
        tuple(Series(level, place) for place, level in enumerate(levels)),
        points,
        axis="budget ε",
    )
