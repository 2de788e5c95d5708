"""Numbers on a page: all means in one table with small charts, and a picture of each distribution asked for."""

from __future__ import annotations

from collections.abc import Sequence

from pldp.page import words
from pldp.page.blocks import (
    Bar,
    Block,
    Column,
    Figure,
    Pair,
    Paragraph,
    Section,
    Spread,
    Strip,
    Table,
    Text,
    code,
    figure_table,
    strong,
)
from pldp.page.published import KindPage, Published, Query, Row, grouped

RELIABLE = 3.0
"""Standard errors that a mean must lie above its lower bound, as a share must above 0."""

FLAG = "◦\u00a0"


def holds(page: Published) -> str:
    """How many means a release published, as its list of contents says it; empty without any."""
    number = len(page.rows("means"))
    return words.counted(number, "mean") if number else ""


def reliable(row: Row) -> bool:
    """Whether a mean stands out of its noise: it exceeds its lower bound by more than three standard errors.

    A share is a mean between 0 and 1; this is the rule that shares follow.
    """
    return bool(row["mean"] - row["lower"] > RELIABLE * row["standard_error"])


def results(page: Published) -> tuple[Section, ...]:
    """The section of published means and quantiles: one table with a small chart for each; none without means."""
    means = page.rows("means")
    if not means:
        return ()
    quantiles = grouped(page.rows("quantiles"), "attribute")
    bins = grouped(page.rows("bins"), "attribute")
    drowned = sum(not reliable(row) for row in means)
    methods = dict.fromkeys(row["method"] for row in means)
    explained: list[Text] = [(code(method), f" ({words.MEANS.get(method, words.UNKNOWN)})") for method in methods]
    blocks: list[Block] = [
        Paragraph(
            (
                f"Every number is an estimate from perturbed reports.{_sampled(page, means)} The thin lines are "
                f"{100 * page.confidence:g} % intervals; a chart spans the bounds that the "
                "spec declares, and a value beyond them counts as the bound.",
            )
        ),
        Paragraph(
            (
                "A mean is called reliable when it exceeds its lower bound by more than three standard errors. One "
                "that is hollow and marked ◦ is not: its noise drowns it.",
                f" Not reliable here: {drowned} of {len(means)}." if drowned else "",
            )
        ),
        Paragraph(("Means were estimated by ", *(run for each in explained for run in each), ".", _held(means))),
        _table(page, means, bins),
    ]
    figures = tuple(
        _spread(page, row, quantiles[row["attribute"]], bins.get(row["attribute"], []))
        for row in means
        if row["attribute"] in quantiles
    )
    if figures:
        blocks.append(Pair(figures))
    return (Section("numbers", "Numbers", tuple(blocks)),)


def _sampled(page: Published, means: Sequence[Row]) -> str:
    """That users reported on some numbers only, unless everybody did on all."""
    everybody = all(row["n_reports"] == page.n_users for row in means)
    return "" if everybody else " Each user reported on some of the numbers only, drawn by chance."


def _table(page: Published, means: Sequence[Row], bins: dict[str, list[Row]]) -> Table:
    titles = ("number", "between its bounds", "mean", "standard error", "interval", "reports", "reliable")
    columns = tuple(Column((title,), words=title == "between its bounds") for title in titles)
    return Table(
        "Numbers: all means",
        columns,
        tuple(_line(page, row, bins.get(row["attribute"], [])) for row in means),
        look="whole",
    )


def _line(page: Published, row: Row, bins: Sequence[Row]) -> tuple[Text | Strip, ...]:
    name, sound = page.wording.attribute(row["attribute"]), reliable(row)
    mean, error, low, high = (
        words.measured(row[field], row["standard_error"]) for field in ("mean", "standard_error", "ci_low", "ci_high")
    )
    strip = Strip(
        f"{name} on its bounds from {row['lower']:g} to {row['upper']:g}: mean {mean}, between {low} and {high}"
        f"{'' if sound else ', not reliable'}. The numbers stand beside it.",
        (row["lower"], row["upper"]),
        row["mean"],
        row["ci_low"],
        row["ci_high"],
        sound,
        _shares(bins),
    )
    return (
        (name if sound else FLAG + name,),
        strip,
        (strong(mean),),
        (error,),
        (f"{low} to {high}",),
        (f"{row['n_reports']:,}",),
        ("yes" if sound else "no",),
    )


def _shares(bins: Sequence[Row]) -> tuple[tuple[float, float, float], ...]:
    return tuple((row["bin_low"], row["bin_high"], row["frequency"]) for row in bins)


def _spread(page: Published, mean: Row, quantiles: Sequence[Row], bins: Sequence[Row]) -> Figure:
    """Mean and quantiles on the bounds, the distribution behind them."""
    name = page.wording.attribute(mean["attribute"])
    points = [("mean", mean["mean"], mean)]
    points += [(words.quantile_name(row["probability"]), row["quantile"], row) for row in quantiles]
    bars = tuple(
        Bar(what, value, row["ci_low"], row["ci_high"], words.measured(value, row["standard_error"]))
        for what, value, row in points
    )
    said = "; ".join(f"{bar.label} {bar.value:.6g}, between {bar.low:.6g} and {bar.high:.6g}" for bar in bars)
    behind = f" Behind it the shares of {len(bins)} equal bins." if bins else ""
    lines = tuple(
        (
            (what,),
            *((words.measured(each, row["standard_error"]),) for each in (value, row["standard_error"])),
            (_interval(row),),
            (f"{row['n_reports']:,}",),
        )
        for what, value, row in points
    )
    titles = ("estimate of", "value", "standard error", "interval", "reports")
    spread = Spread(
        f"Dot chart of {name} on its bounds from {mean['lower']:g} to {mean['upper']:g}: {said}.{behind} The table "
        "below has all numbers.",
        (mean["lower"], mean["upper"]),
        bars,
        _shares(bins),
    )
    table = figure_table(f"Numbers of {name}", tuple(Column((title,)) for title in titles), lines)
    return Figure((strong(f"{name}."), " Its distribution, and where mean and quantiles lie."), spread, (table,))


def _held(rows: Sequence[Row]) -> str:
    """What the intervals hold for; rows of earlier versions do not say."""
    assumed = {row.get("dependence") for row in rows}
    if assumed == {"unknown"}:
        return " Their intervals hold however people chose levels and what matters to them."
    if assumed == {"1"}:
        return " Their intervals hold if people chose levels, and what matters to them, without regard to their values."
    return ""


def _interval(row: Row) -> str:
    return " to ".join(words.measured(row[end], row["standard_error"]) for end in ("ci_low", "ci_high"))


def query(page: Published) -> Query | None:
    """A query to start from: all means; None where there are none."""
    if not page.rows("means"):
        return None
    return Query(("attribute", "mean", "standard_error", "ci_low", "ci_high"), "means")


def _nothing(page: Published) -> tuple[Block, ...]:
    """Numbers share promise and budgets with the histograms of a release."""
    return ()


PAGE = KindPage(holds, _nothing, results, _nothing, query)
