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


def budgets(page: Published) -> tuple[Block, ...]:
    rows = page.rows("budgets")
    if not rows or not (page.rows("histograms") or page.rows("means")):
        return ()
    hidden = page.promised.get("hidden_levels")
    levels = list(dict.fromkeys(row["level"] for row in rows))
    attributes = grouped(rows, "attribute")
    drawn = set(sorted(attributes, key=lambda name: -max(row["nominal_epsilon"] for row in attributes[name]))[:CHARTED])
    note = (
        f" The {len(drawn)} largest of {len(attributes)} attributes are drawn." if len(drawn) < len(attributes) else ""
    )
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
    chart = _chart(page, [name for name in attributes if name in drawn], attributes, levels)
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


def _chart(page: Published, names: list[str], attributes: dict[str, list[Row]], levels: list[str]) -> GroupedBars:
    points = tuple(
        Point(place, levels.index(row["level"]), row["nominal_epsilon"], row["nominal_epsilon"], row["nominal_epsilon"],
              words.above(row["nominal_epsilon"]))
        for place, name in enumerate(names)
        for row in attributes[name]
    )  # fmt: skip
    top = max((row for rows in attributes.values() for row in rows), key=lambda row: row["nominal_epsilon"])
    return GroupedBars(
        f"Bar chart of the budget ε that a user spends on each of {words.counted(len(names), 'attribute')}, by "
        "level. Largest: "
        f"{page.wording.attribute(top['attribute'])} at level {top['level']} with {top['nominal_epsilon']:.4g}. "
        "All numbers are below.",
        tuple(page.wording.attribute(name) for name in names),
        tuple(Series(level, place) for place, level in enumerate(levels)),
        points,
        axis="budget ε",
    )
