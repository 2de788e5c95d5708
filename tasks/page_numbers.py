"""The part of a page that shows numbers: every mean on its bounds, and quantiles where there are some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from pldp.tasks import charts
from pldp.tasks.results import PublishedRelease

METHODS = {
    "inverse-variance": "reports with less noise weigh more",
    "reports": "the mean over the reports of each level, levels weighed by their users",
    "scaled": "the sum of the reports, scaled by how rarely an attribute is drawn",
}


@dataclass(frozen=True)
class NumberView:
    """One numeric attribute's part of the page."""

    name: str
    mean: dict[str, Any]
    quantiles: list[dict[str, Any]]
    method: str
    chart: Markup | None


def number_views(found: PublishedRelease, charted: int) -> list[NumberView]:
    views = []
    for place, row in enumerate(found.tables["means"].iter_rows(named=True)):
        name = row["attribute"]
        own, bins = (found.tables[table].filter(attribute=name).to_dicts() for table in ("quantiles", "bins"))
        chart = _chart(name, row, own, bins) if place < charted else None
        method = METHODS.get(row["method"], "see the documentation of methods")
        views.append(NumberView(name, row, own, method, chart))
    return views


def _chart(name: str, mean: dict[str, Any], own: list[dict[str, Any]], bins: list[dict[str, Any]]) -> Markup:
    points = [{**mean, "what": "mean", "at": mean["mean"]}]
    points += [{**row, "what": f"{row['probability']:g} quantile", "at": row["quantile"]} for row in own]
    shown = [{field: point[field] for field in ("what", "at", "ci_low", "ci_high")} for point in points]
    said = "; ".join(f"{p['what']} {p['at']:.6g}, between {p['ci_low']:.6g} and {p['ci_high']:.6g}" for p in shown)
    alternative = f"Dot chart of {name} on its bounds from {mean['lower']:g} to {mean['upper']:g}: {said}."
    if bins:
        alternative += f" Behind it the shares of {len(bins)} equal bins."
    steps = [{field: row[field] for field in ("bin_low", "bin_high", "frequency")} for row in bins]
    return charts.numbers(shown, steps, (mean["lower"], mean["upper"]), alternative)
