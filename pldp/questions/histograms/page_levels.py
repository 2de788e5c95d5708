"""The levels of histograms on a page: what each alone estimates, and how many chose a hidden one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist
from typing import Any

from pldp.page import words
from pldp.page.blocks import (
    Column,
    Dots,
    Figure,
    Paragraph,
    Point,
    Run,
    Section,
    Series,
    Table,
    Text,
    figure_table,
    soft,
    strong,
)
from pldp.page.published import Published, Row

CHART_VALUES = 40
"""Values a chart shows; of more, the largest."""

TABLE_ROWS = 1000
"""Values a table shows; of more, the largest."""


def value_cell(page: Published, attribute: str, value: str) -> Text:
    """A value by its label; the tables know it by its own name, which stands beside it."""
    label = page.wording.value(attribute, value)
    return (label,) if label == value else (label, " ", soft(value))


def levels_figure(
    page: Published, name: str, rows: list[Row], of_levels: Sequence[Row], digits: int, *, drawn: bool
) -> Figure:
    """Each level by itself, on a scale of its own: values in the order of the chart beside it."""
    cells = {(row["value"], row["level"]): row for row in of_levels}
    present = list(dict.fromkeys(row["level"] for row in of_levels))
    known = list(dict.fromkeys(row["level"] for row in page.rows("budgets"))) or present
    reports = {row["level"]: row["n_reports"] for row in of_levels}
    columns = [Column((level, " ", soft(f"({reports[level]:,} users)"))) for level in present]

    def cell(row: Mapping[str, Any] | None) -> Text:
        if row is None:
            return ("",)
        return (f"{words.percent(row['frequency'], digits)} ± {words.percent(row['standard_error'], digits)}",)

    shown = tuple(
        (value_cell(page, name, row["value"]), *(cell(cells.get((row["value"], level))) for level in present))
        for row in rows[:TABLE_ROWS]
    )
    return Figure(
        (
            strong("Each level alone."),
            " Share among the users who chose it, before post-processing: it can be negative. The scale is its own.",
        ),
        _level_dots(page, name, rows[:CHART_VALUES], cells, present, known, digits) if drawn else None,
        (
            figure_table(
                f"Numbers of {page.wording.attribute(name)}, by level",
                (Column(("value",)), *columns),
                shown,
                caption="Share ± standard error",
            ),
        ),
    )


def _level_dots(
    page: Published,
    name: str,
    rows: list[Row],
    cells: Mapping[tuple[str, str], Row],
    present: list[str],
    known: list[str],
    digits: int,
) -> Dots:
    half = NormalDist().inv_cdf(0.5 + page.confidence / 2)
    points = tuple(
        Point(
            place,
            number,
            row["frequency"],
            row["frequency"] - half * row["standard_error"],
            row["frequency"] + half * row["standard_error"],
            words.percent(row["frequency"], digits),
        )
        for place, shown in enumerate(rows)
        for number, level in enumerate(present)
        if (row := cells.get((shown["value"], level))) is not None
    )
    return Dots(
        f"Dot chart of {page.wording.attribute(name)}: shares of {words.counted(len(rows), 'value')} as each level "
        "alone estimates them, with "
        f"error bars. Levels: {', '.join(present)}. The table below has all numbers.",
        tuple(page.wording.value(name, row["value"]) for row in rows),
        tuple(Series(level, known.index(level) if level in known else place) for place, level in enumerate(present)),
        points,
    )


def level_shares(page: Published) -> tuple[Section, ...]:
    """The section of how many people chose each level, which only hidden levels have to estimate; none elsewhere."""
    shares, hidden = page.rows("level_shares"), page.said("hidden_levels")
    if not shares or not hidden:
        return ()
    by_attribute = bool(shares[0]["attribute"])
    columns: tuple[Column, ...] = (Column(("attribute",), words=True),) if by_attribute else ()
    columns += (Column(("level",), words=True), Column(("share",)), Column(("standard error",)))
    rows = tuple(
        (
            *(((page.wording.attribute(row["attribute"]),),) if by_attribute else ()),
            (row["level"],),
            (words.percent(row["share"]),),
            (words.percent(row["standard_error"]),),
        )
        for row in shares
    )
    text = Paragraph(
        (
            "Which level a user chose is hidden. Every user told it through a perturbed report of budget "
            f"ε = {words.above(hidden['epsilon_p'])}; these are the shares that such reports let one estimate, and "
            "they "
            "can be negative. All reports of one user together change the odds between two levels by a factor of at "
            "most e",
            Run("power", words.above(hidden["exact_leak"])),
            "; the spec allows e",
            Run("power", words.above(hidden["max_leak"])),
            ".",
        )
    )
    return (Section("shares", "Levels", (text, Table("Shares of the levels", columns, rows))),)
