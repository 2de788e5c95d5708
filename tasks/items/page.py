"""The page of a release of frequent items, from what is published and from nothing else."""

from __future__ import annotations

import json
from typing import Any

import jinja2
import polars as pl

from pldp.tasks import charts, words
from pldp.tasks.results import PublishedRelease

CHARTED = 30
"""Sets of a length that are drawn, the most supported."""

TABLED = 500
"""Rows of a table; the results have all."""

JOINED = " + "
_ROW = 24.0


def render_items(
    found: PublishedRelease, spec: dict[str, Any] | None, total: str | None, *, templates: jinja2.Environment
) -> str:
    """The page of one release. The same release gives the same bytes."""
    asked = spec or {}
    one = asked.get("holds") == "one"
    privacy = found.statement or {}
    grouped = found.tables["itemsets"].group_by("length", maintain_order=True)
    surest = found.tables["rules"].sort("ci_low", descending=True, maintain_order=True)
    return templates.get_template("items.html.j2").render(
        release={"release_id": found.release_id, **found.releases.to_dicts()[0]},
        published=found.status == "published",
        plan_matches=found.plan_matches,
        one=one,
        lengths=[_length(int(str(length)), rows, one) for (length,), rows in grouped],
        rules=surest.head(TABLED).to_dicts(),
        n_rules=surest.height,
        minimum=(asked.get("itemsets") or {}).get("minimum_support", 0.0),
        confidence=(asked.get("intervals") or {}).get("confidence", 0.95),
        levels=found.tables["budgets"].to_dicts(),
        items=privacy.get("items", [])[:TABLED],
        n_items=len(privacy.get("items", [])),
        sensitive=bool(privacy.get("items")) and "sensitivity" in privacy["items"][0],
        gates=found.validations.to_dicts(),
        privacy=found.statement,
        statement=json.dumps(found.statement, indent=2, ensure_ascii=False),
        total=total,
        spec=None if spec is None else words.as_yaml(spec),
    )


def _length(length: int, rows: pl.DataFrame, one: bool) -> dict[str, Any]:
    ordered = rows.sort("support", descending=True, maintain_order=True)
    shown = [{**row, "value": JOINED.join(row["items"])} for row in ordered.head(TABLED).to_dicts()]
    title = ("Values" if one else "Single items") if length == 1 else f"Sets of {length}"
    drawn = [
        {**row, "frequency": row["support"], "reliable": row["support"] > 3 * row["standard_error"]}
        for row in shown[:CHARTED]
    ]
    top = shown[0]
    alternative = (
        f"Bar chart of {title.lower()}: estimated supports of {len(drawn)} with error bars. Largest: {top['value']} "
        f"with {words.percent(top['support'], 2)}, between {words.percent(top['ci_low'], 2)} and "
        f"{words.percent(top['ci_high'], 2)}. The table below has all numbers."
    )
    span = (min(0.0, *(row["ci_low"] for row in drawn)), max(row["ci_high"] for row in drawn))
    return {
        "length": length,
        "title": title,
        "n_rows": rows.height,
        "frequent": int((rows["probability_frequent"] >= 0.5).sum()),
        "rows": shown,
        "charted": len(drawn),
        "chart": charts.histogram(drawn, alternative, row_height=_ROW, span=span),
    }
