"""The page of a release of histograms and numbers, from what is published and from nothing else."""

from __future__ import annotations

import json
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup

from pldp.tasks import charts, words
from pldp.tasks.page_numbers import number_views
from pldp.tasks.results import PublishedRelease

CHART_VALUES = 40
"""Values a chart shows; of more, the largest."""

TABLE_ROWS = 1000
"""Values a table shows; of more, the largest."""

CHARTED = 40
"""Attributes that get charts; the others get their tables."""

_ROW, _LEVEL_ROW = 24.0, 7.0


def render_histograms(found: PublishedRelease, spec: dict[str, Any] | None, *, templates: jinja2.Environment) -> str:
    """The page of one release. The same release gives the same bytes."""
    confidence = _get(spec, "intervals", "confidence") or 0.95
    return templates.get_template("release.html.j2").render(
        release={"release_id": found.release_id, **found.releases.to_dicts()[0]},
        published=found.status == "published",
        plan_matches=found.plan_matches,
        attributes=[
            _attribute(str(name), rows, found, spec, confidence, charted=place < CHARTED)
            for place, ((name,), rows) in enumerate(
                found.tables["histograms"].group_by("attribute", maintain_order=True)
            )
        ],
        numbers=number_views(found, CHARTED),
        confidence=confidence,
        budgets=_budgets(found.tables["budgets"]),
        gates=found.validations.to_dicts(),
        privacy=found.statement,
        hidden=(found.statement or {}).get("hidden_levels"),
        shares=found.tables["level_shares"].to_dicts(),
        statement=json.dumps(found.statement, indent=2, ensure_ascii=False),
        total=_get(spec, "budget", "total"),
        spec=None if spec is None else words.as_yaml(spec),
    )


@dataclass(frozen=True)
class AttributeView:
    """One attribute's part of the page."""

    name: str
    method: str
    postprocess: str
    fallback: str | None
    n_reports: int
    n_values: int
    unreliable: int
    decimals: int
    rows: list[dict[str, Any]]
    levels: list[dict[str, Any]]
    by_level: dict[tuple[str, str], dict[str, Any]]
    histogram: Markup | None
    level_chart: Markup | None
    charted: int
    quantiles: list[dict[str, Any]]


def _attribute(
    name: str,
    rows: pl.DataFrame,
    found: PublishedRelease,
    spec: dict[str, Any] | None,
    confidence: float,
    *,
    charted: bool,
) -> AttributeView:
    """Values stand as declared; of too many for a chart, the largest come first."""
    n_values, method = rows.height, str(rows["method"][0])
    digits = words.decimals(min(rows["standard_error"].to_list()))
    if n_values > CHART_VALUES:
        rows = rows.sort("frequency", "value", descending=[True, False])
    shown = rows.head(TABLE_ROWS).to_dicts()
    half = NormalDist().inv_cdf(0.5 + confidence / 2)
    of_levels = (
        found.tables["level_estimates"]
        .filter(attribute=name)
        .with_columns(
            ci_low=pl.col("frequency") - half * pl.col("standard_error"),
            ci_high=pl.col("frequency") + half * pl.col("standard_error"),
        )
    )
    by_level = {(row["value"], row["level"]): row for row in of_levels.iter_rows(named=True)}
    levels = of_levels.unique(["level"], keep="first", maintain_order=True).to_dicts()
    return AttributeView(
        name=name,
        method=method,
        postprocess=str(rows["postprocess"][0]),
        fallback=words.fallback(_wanted(spec), method),
        n_reports=int(rows["n_reports"][0]),
        n_values=n_values,
        unreliable=n_values - int(rows["reliable"].sum()),
        decimals=digits,
        rows=shown,
        levels=levels,
        by_level=by_level,
        histogram=_histogram(name, shown[:CHART_VALUES], digits, len(levels)) if charted else None,
        level_chart=_level_chart(name, found, shown[:CHART_VALUES], levels, by_level) if charted and levels else None,
        charted=min(n_values, CHART_VALUES),
        quantiles=found.tables["quantiles"].filter(attribute=name).to_dicts(),
    )


def _histogram(name: str, rows: list[dict[str, Any]], digits: int, levels: int) -> Markup:
    top = max(rows, key=lambda row: row["frequency"])
    low, high = (words.percent(top[end], digits) for end in ("ci_low", "ci_high"))
    alternative = (
        f"Bar chart of {name}: estimated shares of {len(rows)} values with error bars. Largest: {top['value']} with "
        f"{words.percent(top['frequency'], digits)}, between {low} and {high}. The table below has all numbers."
    )
    span = (min(0.0, *(row["frequency"] for row in rows)), max(max(row["ci_high"], row["frequency"]) for row in rows))
    return charts.histogram(rows, alternative, row_height=max(_ROW, _LEVEL_ROW * levels), span=span)


def _level_chart(
    name: str,
    found: PublishedRelease,
    rows: list[dict[str, Any]],
    levels: list[dict[str, Any]],
    by_level: dict[tuple[str, str], dict[str, Any]],
) -> Markup:
    named = [level["level"] for level in levels]
    known = found.tables["budgets"]["level"].unique(maintain_order=True).to_list()
    points = [by_level[row["value"], level] for row in rows for level in named if (row["value"], level) in by_level]
    alternative = (
        f"Dot chart of {name}: shares of {len(rows)} values as each level alone estimates them, with error bars. "
        f"Levels: {', '.join(named)}. The table below has all numbers."
    )
    span = (min(0.0, *(point["ci_low"] for point in points)), max(point["ci_high"] for point in points))
    return charts.level_estimates(
        points, named, known, alternative, row_height=max(_ROW, _LEVEL_ROW * len(levels)), span=span
    )


def _budgets(rows: pl.DataFrame) -> dict[str, Any] | None:
    if rows.is_empty():
        return None
    largest = rows.group_by("attribute").agg(pl.max("nominal_epsilon")).sort("nominal_epsilon", descending=True)
    drawn = largest["attribute"].head(CHARTED).to_list()
    shown = rows.filter(pl.col("attribute").is_in(drawn)).rename({"nominal_epsilon": "epsilon"})
    levels = rows["level"].unique(maintain_order=True).to_list()
    top = rows.sort("nominal_epsilon", descending=True).row(0, named=True)
    alternative = (
        f"Bar chart of the budget ε that a user spends on each of {len(drawn)} attributes, by level. Largest: "
        f"{top['attribute']} at level {top['level']} with {top['nominal_epsilon']:.4g}. All numbers are below."
    )
    picture = charts.budgets(shown.select("attribute", "level", "epsilon").to_dicts(), levels, alternative)
    return {"chart": picture, "rows": rows.to_dicts(), "drawn": len(drawn), "attributes": largest.height}


def _wanted(spec: dict[str, Any] | None) -> str | None:
    """The method that a spec asks for, in words or by saying nothing."""
    hidden = _get(spec, "levels", "visibility") == "hidden"
    return None if spec is None else _get(spec, "combination", "method") or ("em" if hidden else "oc+")


def _get(spec: dict[str, Any] | None, section: str, field: str) -> Any:
    return ((spec or {}).get(section) or {}).get(field)
