"""The page: a release, and all releases of a home, as static HTML that works offline.

It is made from what is published (results, spec, privacy statement) and from nothing else; the vault is not in reach.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import NormalDist
from typing import Any

import jinja2
import polars as pl
from markupsafe import Markup

from pldp.errors import PldpError, StageFailed
from tasks import charts, words
from tasks.aggregates.page import declared_total, declared_unit, render_aggregates
from tasks.home import Home, open_folder, replace
from tasks.items.page import render_items
from tasks.page_numbers import number_views
from tasks.results import PublishedRelease, read_release
from tasks.specfile import AGGREGATES, HISTOGRAMS, ITEMS
from tasks.trends import read_index

CHART_VALUES = 40
"""Values a chart shows; of more, the largest."""

TABLE_ROWS = 1000
"""Values a table shows; of more, the largest."""

CHARTED = 40
"""Attributes that get charts; the others get their tables."""

_ROW, _LEVEL_ROW = 24.0, 7.0


def build_page(home: Path, wanted: str) -> Path:
    """(Re)build the page of a release, and the index of them all. A page has no part in what is published."""
    found = read_release(home, wanted)
    pages = Home(home).pages
    path = pages / f"{found.release_id}.html"
    try:
        with _alone(pages):
            spec = read_spec(home, found.release_id)
            page = _render(found, spec).encode()
            # The page comes last: for a release that has one, nobody comes back to list it.
            replace(pages / "index.html", render_index(home, found.release_id).encode(), mode=0o644)
            replace(path, page, mode=0o644)
        return path
    except PldpError as error:
        reason = str(error)
    except OSError as error:
        reason = error.strerror or type(error).__name__
    except Exception as error:
        reason = type(error).__name__
    raise StageFailed(
        f"{path}: the page could not be built ({reason}). Results are as they were; "
        f"`pldp page {found.release_id} --home {home}` builds it again."
    )


def _render(found: PublishedRelease, spec: dict[str, Any] | None) -> str:
    """The page of a release of whatever kind."""
    kind = (spec or {}).get("kind", HISTOGRAMS)
    if kind == AGGREGATES:
        return render_aggregates(found, spec, templates=_templates())
    if kind == ITEMS:
        return render_items(found, spec, declared_total(spec), templates=_templates())
    return render_release(found, spec)


def render_release(found: PublishedRelease, spec: dict[str, Any] | None) -> str:
    """The page of one release. The same release gives the same bytes."""
    confidence = _get(spec, "intervals", "confidence") or 0.95
    return (
        _templates()
        .get_template("release.html.j2")
        .render(
            release={"release_id": found.release_id, **found.releases.to_dicts()[0]},
            published=found.status == "published",
            plan_matches=found.plan_matches,
            attributes=[
                _attribute(str(name), rows, found, spec, confidence, charted=place < CHARTED)
                for place, ((name,), rows) in enumerate(found.histograms.group_by("attribute", maintain_order=True))
            ],
            numbers=number_views(found, CHARTED),
            confidence=confidence,
            budgets=_budgets(found.budgets),
            gates=found.validations.to_dicts(),
            privacy=found.statement,
            hidden=(found.statement or {}).get("hidden_levels"),
            shares=found.level_shares.to_dicts(),
            statement=json.dumps(found.statement, indent=2, ensure_ascii=False),
            total=_get(spec, "budget", "total"),
            spec=None if spec is None else words.as_yaml(spec),
        )
    )


def render_index(home: Path, building: str = "") -> str:
    """The list of all releases, and how each name's results went from one to the next."""
    built = {building, *(path.stem for path in Home(home).pages.glob("*.html"))}

    def declared(release_id: str) -> tuple[str, str | None]:
        spec = read_spec(home, release_id)
        return declared_unit(spec), declared_total(spec)

    return _templates().get_template("index.html.j2").render(**read_index(home, declared), built=built)


def read_spec(home: Path, release_id: str) -> dict[str, Any] | None:
    path = Home(home).releases / release_id / "spec.json"
    return json.loads(path.read_text()) if path.exists() else None


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
    of_levels = found.level_estimates.filter(attribute=name).with_columns(
        ci_low=pl.col("frequency") - half * pl.col("standard_error"),
        ci_high=pl.col("frequency") + half * pl.col("standard_error"),
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
        quantiles=[] if found.quantiles.is_empty() else found.quantiles.filter(attribute=name).to_dicts(),
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
    known = found.budgets["level"].unique(maintain_order=True).to_list()
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


@lru_cache(maxsize=1)
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("tasks"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        name: getattr(words, name)
        for name in ("above", "certainty", "chance", "factor", "measured", "number", "percent", "protected", "whose")
    }
    environment.globals |= {"METHODS": words.METHODS, "POSTPROCESSES": words.POSTPROCESSES}
    return environment


def _wanted(spec: dict[str, Any] | None) -> str | None:
    """The method that a spec asks for, in words or by saying nothing."""
    hidden = _get(spec, "levels", "visibility") == "hidden"
    return None if spec is None else _get(spec, "combination", "method") or ("em" if hidden else "oc+")


def _get(spec: dict[str, Any] | None, section: str, field: str) -> Any:
    return ((spec or {}).get(section) or {}).get(field)


@contextmanager
def _alone(pages: Path) -> Iterator[None]:
    """One writer at a time, or an older index could replace a newer one."""
    open_folder(pages)
    folder = os.open(pages, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)
