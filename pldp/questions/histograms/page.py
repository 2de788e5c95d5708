"""Histograms on a page: a chart per attribute with its intervals and figures, the levels beside it, and the budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from pldp.page import words
from pldp.page.blocks import (
    Bar,
    Bars,
    Block,
    Column,
    Figure,
    Folded,
    Pair,
    Paragraph,
    Run,
    Section,
    Table,
    Text,
    code,
    strong,
)
from pldp.page.published import KindPage, Published, Query, Row, grouped
from pldp.questions.histograms.page_budgets import budgets
from pldp.questions.histograms.page_grid import crosstab_grid
from pldp.questions.histograms.page_levels import CHART_VALUES, TABLE_ROWS, level_shares, levels_figure, value_cell
from pldp.questions.histograms.page_promise import promise

CHARTED = 40
"""Attributes that get charts; the others get their tables."""


def holds(page: Published) -> str:
    """How many histograms a release published, as its list of contents says it; empty without any."""
    number = len(grouped(page.rows("histograms"), "attribute"))
    return words.counted(number, "histogram") if number else ""


def results(page: Published) -> tuple[Section, ...]:
    """The sections of published histograms, one for each attribute, quantiles and levels within; none without any."""
    attributes = grouped(page.rows("histograms"), "attribute")
    if not attributes:
        return ()
    levels = grouped(page.rows("level_estimates"), "attribute")
    methods = {name: (rows[0]["method"], rows[0]["postprocess"]) for name, rows in attributes.items()}
    alike = len(set(methods.values())) == 1
    intro: list[Block] = [
        Paragraph(
            (
                f"Every number is an estimate from perturbed reports. The thin lines are {100 * page.confidence:g} % "
                "intervals. A value is called reliable when its estimate exceeds three standard errors; a bar that is "
                "dashed and marked ◦ is not: much of it may be noise.",
            )
        )
    ]
    if alike:
        intro.append(Paragraph(_method(page, *next(iter(methods.values())))))
    sections = tuple(
        _attribute(page, str(name), rows, levels.get(name, []), place, explained=not alike)
        for place, (name, rows) in enumerate(attributes.items())
    )
    return (Section("histograms", "Histograms", tuple(intro), sections), *level_shares(page))


def _method(page: Published, method: str, postprocess: str) -> Text:
    """How the published shares came about, every name explained where it stands."""
    hidden = page.said("hidden_levels")
    return (
        "Levels are hidden; the estimate is by " if hidden else "The estimates of the levels were combined by ",
        code(method),
        f" ({words.METHODS.get(method, words.UNKNOWN)}); with ",
        code(postprocess),
        f", {words.POSTPROCESSES.get(postprocess, words.UNKNOWN)}.",
    )


def _attribute(
    page: Published, name: str, rows: list[Row], of_levels: Sequence[Row], place: int, *, explained: bool
) -> Section:
    """Values stand as declared; of too many for a chart, the largest come first."""
    n_values, n_reports = len(rows), rows[0]["n_reports"]
    unreliable = sum(not row["reliable"] for row in rows)
    grid = crosstab_grid(page, name, rows) if place < CHARTED else None
    if n_values > CHART_VALUES and grid is None:
        rows = sorted(rows, key=lambda row: (-row["frequency"], row["value"]))
    count: Text = (f"{n_reports:,} reports over {words.counted(n_values, 'value')}",)
    count += (f", {unreliable:,} of them not reliable." if unreliable else ".",)
    blocks: list[Block] = [
        Paragraph((*count, " ", *_method(page, rows[0]["method"], rows[0]["postprocess"])) if explained else count)
    ]
    fallback = words.fallback(_wanted(page), rows[0]["method"])
    if fallback:
        blocks.append(Paragraph((strong("The fallback was taken."), f" {fallback}"), "note"))
    blocks += _quantiles(page, name)
    if n_values > CHART_VALUES and grid is None and place < CHARTED:
        blocks.append(Paragraph((f"The {CHART_VALUES} largest of {n_values:,} values are drawn.",), "soft"))
    if place >= CHARTED:
        blocks.append(
            Paragraph(("Only the first attributes of a release are drawn; the numbers are in the table.",), "soft")
        )
    digits = words.decimals(min(row["standard_error"] for row in rows))
    who = strong("All users." if page.said("hidden_levels") else "All levels combined.")
    said: Text = (f" Estimated share of all {page.n_users:,} users.",) if grid is None else grid[1]
    beside = len({row["level"] for row in of_levels})
    drawn = _bars(page, name, rows[:CHART_VALUES], digits, beside) if place < CHARTED else None
    combined = Figure((who, *said), grid[0] if grid else drawn, (_numbers(page, name, rows, digits, n_values),))
    figures = [combined]
    if of_levels:
        drawn_too = place < CHARTED and grid is None and beside > 1
        figures.append(levels_figure(page, name, rows, of_levels, digits, drawn=drawn_too))
    blocks.append(Pair(tuple(figures)) if grid is None else combined)
    if grid is not None and of_levels:
        blocks.append(figures[1])
    return Section(f"attribute-{place + 1}", page.wording.attribute(name), tuple(blocks))


def _bars(page: Published, name: str, rows: list[Row], digits: int, beside: int) -> Bars:
    label = page.wording.value
    bars = tuple(
        Bar(label(name, row["value"]), row["frequency"], row["ci_low"], row["ci_high"],
            words.percent(row["frequency"], digits), row["reliable"])
        for row in rows
    )  # fmt: skip
    top = max(rows, key=lambda row: row["frequency"])
    low, high = (words.percent(top[end], digits) for end in ("ci_low", "ci_high"))
    return Bars(
        f"Bar chart of {page.wording.attribute(name)}: estimated shares of {words.counted(len(rows), 'value')} with "
        "error bars. Largest: "
        f"{label(name, top['value'])} with {words.percent(top['frequency'], digits)}, between {low} and {high}. "
        "The table below has all numbers.",
        bars,
        beside=beside,
    )


def _numbers(page: Published, name: str, rows: list[Row], digits: int, n_values: int) -> Folded:
    def percent(share: float | None) -> Text:
        return ("" if share is None else words.percent(share, digits),)

    titles = (
        "value",
        "share",
        "standard error",
        "interval",
        "people",
        "before post-processing",
        "its standard error",
        "reliable",
    )
    shown = tuple(
        (
            value_cell(page, name, row["value"]),
            percent(row["frequency"]),
            percent(row["standard_error"]),
            (f"{words.percent(row['ci_low'], digits)} to {words.percent(row['ci_high'], digits)}",),
            (f"{row['count']:,.0f}",),
            percent(row["unbiased_frequency"]),
            percent(row["unbiased_standard_error"]),
            ("yes" if row["reliable"] else "no",),
        )
        for row in rows[:TABLE_ROWS]
    )
    table = Table(
        f"Numbers of {page.wording.attribute(name)}, combined", tuple(Column((title,)) for title in titles), shown
    )
    note = Paragraph(
        (
            f"The {len(shown):,} largest of {n_values:,} values; all of them are in ",
            Run("link", "the results", "results"),
            ".",
        )
    )
    return Folded((table.title,), (table, note) if len(shown) < n_values else (table,))


def _quantiles(page: Published, name: str) -> list[Block]:
    quantiles = [row for row in page.rows("quantiles") if row["attribute"] == name]
    if not quantiles:
        return []
    said = "; ".join(
        f"{words.quantile_name(row['probability'])} at {words.measured(row['quantile'], row['standard_error'])} ± "
        f"{words.measured(row['standard_error'], row['standard_error'])} "
        f"({' to '.join(words.measured(row[end], row['standard_error']) for end in ('ci_low', 'ci_high'))})"
        for row in quantiles
    )
    return [Paragraph((f"Its quantiles, values inside a bin spread evenly: {said}.",))]


def _wanted(page: Published) -> str | None:
    """The method that a spec asks for, in words or by saying nothing; None where the plan chose one."""
    if page.spec is None:
        return None
    usual: str | None = None if page.stated("levels", "visibility") == "hidden" else "guarded"
    if page.stated("levels", "dependence") == "unknown":
        usual = "sum"
    return page.stated("combination", "method") or usual


def query(page: Published) -> Query | None:
    """A query to start from: the first attribute's values, most frequent first; None without histograms."""
    rows = page.rows("histograms")
    if not rows:
        return None
    return Query(
        ("value", "frequency", "standard_error", "ci_low", "ci_high"),
        "histograms",
        (("attribute", rows[0]["attribute"]),),
        order="frequency DESC",
    )


def spends(spec: Mapping[str, Any]) -> tuple[str, float] | None:
    """Numbers beside histograms, or alone, spend of the same budget."""
    if "levels" not in spec or "itemsets" in spec:
        return None
    return "user", float(Fraction(spec["budget"]["total"]))


PAGE = KindPage(holds, promise, results, budgets, query, spends)
