"""Aggregates on a page: totals by provider, attributes in one order for all providers."""

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
    Listing,
    Pair,
    Paragraph,
    Section,
    Table,
    Text,
    code,
    figure_table,
    soft,
    strong,
)
from pldp.page.published import KindPage, Published, Query, Row, grouped
from pldp.questions.aggregates.page_promise import promise
from pldp.questions.aggregates.statement import LISTED_PROFILES

CHARTED = 12
"""Providers that get a chart; the others get their tables."""

SHOWN_PROFILES = 12
"""Profiles in the tables of budgets; all of them are in the results."""

RELIABLE = 3.0


def holds(page: Published) -> str:
    """How many providers a release published totals towards, as its list of contents says it; empty without any."""
    number = len(grouped(page.rows("aggregates"), "provider"))
    return f"aggregates towards {words.counted(number, 'provider')}" if number else ""


def attribute_order(rows: Sequence[Row]) -> list[str]:
    """Attributes by their totals as all providers together estimate them, the largest first: one order for all."""
    sums: dict[str, tuple[float, float]] = {}
    for row in rows:
        weight = 1 / max(row["standard_error"], 1e-300) ** 2
        total, weights = sums.get(row["attribute"], (0.0, 0.0))
        sums[row["attribute"]] = (total + weight * row["total"], weights + weight)
    return sorted(sums, key=lambda name: (-sums[name][0] / sums[name][1], name))


def results(page: Published) -> tuple[Section, ...]:
    """The sections of published totals, a part for each provider; none where the release has none."""
    rows = page.rows("aggregates")
    if not rows:
        return ()
    order = {name: place for place, name in enumerate(attribute_order(rows))}
    providers = grouped(rows, "provider")
    intro = Paragraph(
        (
            "What the items of all users add up to, attribute by attribute, as each provider’s own reports let one "
            "estimate "
            f"it. Attributes stand in one order for all providers. The thin lines are {100 * page.confidence:g} % "
            "intervals; a "
            "total can be negative where noise outweighs it, and a bar that is dashed and marked ◦ does not exceed "
            "three "
            "standard errors and is not reliable. A share is a total’s part of the sum of all totals, and missing "
            "where that "
            "sum is not clear of zero.",
        )
    )
    legend = any(not _reliable(row) for row in rows)
    figures = tuple(
        _provider(
            page,
            str(name),
            sorted(provider_rows, key=lambda row: order[row["attribute"]]),
            legend,
            drawn=place < CHARTED,
        )
        for place, (name, provider_rows) in enumerate(providers.items())
    )
    return (Section("totals", "Totals", (intro, Pair(figures))),)


def _reliable(row: Row) -> bool:
    return bool(row["total"] > RELIABLE * row["standard_error"])


def _provider(page: Published, name: str, rows: list[Row], legend: bool, *, drawn: bool) -> Figure:
    label = page.wording.attribute
    top = max(rows, key=lambda row: row["total"])
    chart = Bars(
        f"Bar chart of {name}: estimated totals of {words.counted(len(rows), 'attribute')} with error bars. Largest: "
        f"{label(top['attribute'])} with {top['total']:,.0f}, between {top['ci_low']:,.0f} and {top['ci_high']:,.0f}. "
        "The table below has all numbers.",
        tuple(
            Bar(label(row["attribute"]), row["total"], row["ci_low"], row["ci_high"], _whole(row["total"]),
                _reliable(row))
            for row in rows
        ),
        unit="number",
        axis="total",
        legend=legend,
    )  # fmt: skip
    titles = ("attribute", "total", "standard error", "interval", "share", "its standard error")
    lines = tuple(
        (
            (label(row["attribute"]),),
            (_tenth(row["total"]),),
            (_tenth(row["standard_error"]),),
            (f"{_tenth(row['ci_low'])} to {_tenth(row['ci_high'])}",),
            *(("" if row[field] is None else words.percent(row[field], 2),) for field in ("share", "share_error")),
        )
        for row in rows
    )
    table = figure_table(f"Numbers of {name}", tuple(Column((title,)) for title in titles), lines)
    caption: Text = (strong(f"{name}."), f" Estimated totals over {page.n_users:,} users.")
    return Figure(caption, chart if drawn else None, (table,))


def _whole(value: float) -> str:
    return f"{value:,.0f}".replace("-", "−")


def _tenth(value: float) -> str:
    return f"{value:,.1f}".replace("-", "−")


def budgets(page: Published) -> tuple[Block, ...]:
    """What each profile spends on each attribute towards each provider, drawn and as tables."""
    rows = [row for row in page.rows("budgets") if row["provider"] is not None]
    if not rows:
        return ()
    unit = rows[0]["unit"]
    spoken = words.mechanisms(row["mechanism"] for row in rows)
    views = tuple(
        _towards(page, str(name), provider_rows, unit, place)
        for place, (name, provider_rows) in enumerate(grouped(rows, "provider").items())
    )
    return (
        Paragraph(
            (
                f"What {words.protected(unit)} spends on each attribute, of what the user’s profile allows. A "
                "provider’s own ε "
                "bounds all attributes of an item together, so an attribute rarely gets all it may.",
            )
        ),
        *views,
        *((Listing(tuple((code(name), f": {meaning}.") for name, meaning in spoken)),) if spoken else ()),
    )


def _towards(page: Published, provider: str, rows: list[Row], unit: str, place: int) -> Folded:
    """One provider: the profiles that are shown, and what each spends on each attribute."""
    users = {row["level"]: row["n_users"] for row in rows}
    shown = list(users)[:SHOWN_PROFILES]
    cells = {(row["attribute"], row["level"]): row for row in rows}
    columns = tuple(Column((level, " ", soft(f"({users[level]:,} users)"))) for level in shown)
    lines = tuple(
        (
            (page.wording.attribute(attribute),),
            *(
                (f"{words.above(cell['exact_epsilon'])} of {words.above(cell['nominal_epsilon'])}",)
                for cell in (cells[attribute, level] for level in shown)
            ),
        )
        for attribute in dict.fromkeys(row["attribute"] for row in rows)
    )
    table = Table(
        f"Budgets towards {provider}",
        (Column(("attribute",)), *columns),
        lines,
        caption=f"Exact ε of one {unit}, rounded up, and the budget that bounds it",
    )
    more = f", the first {len(shown)} of {len(users)} profiles" if len(shown) < len(users) else ""
    return Folded((f"{provider}{more}",), (table,), opened=place == 0)


def query(page: Published) -> Query | None:
    """A query to start from: totals of the first provider, largest first; None where there are none."""
    rows = page.rows("aggregates")
    if not rows:
        return None
    return Query(
        ("attribute", "total", "standard_error", "ci_low", "ci_high"),
        "aggregates",
        (("provider", rows[0]["provider"]),),
        order="total DESC",
    )


def spends(spec: Mapping[str, Any]) -> tuple[str, float] | None:
    """All providers together."""
    if "providers" not in spec:
        return None
    total = sum((Fraction(provider["epsilon"]) for provider in spec["providers"].values()), Fraction(0))
    return ("occurrence" if spec.get("count") == "occurrence" else "item"), float(total)


def abridged(spec: dict[str, Any]) -> tuple[dict[str, Any], str]:
    """Of thousands of profiles the first ones."""
    profiles = spec.get("profiles")
    if not isinstance(profiles, dict) or len(profiles) <= LISTED_PROFILES:
        return spec, ""
    more = len(profiles) - LISTED_PROFILES
    note = f"# … and {more:,} more profiles, in the release's spec.json\n"
    return {**spec, "profiles": dict(list(profiles.items())[:LISTED_PROFILES])}, note


PAGE = KindPage(holds, promise, results, budgets, query, spends, abridged)
