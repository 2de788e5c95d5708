"""The page of a release of aggregates, from what is published and from nothing else."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import jinja2
import polars as pl

from pldp.questions.aggregates.statement import LISTED_PROFILES
from pldp.tasks import charts, words
from pldp.tasks.results import PublishedRelease
from pldp.tasks.specfile import AGGREGATES

CHARTED = 12
"""Providers that get a chart; the others get their tables."""

SHOWN_PROFILES = 12
"""Profiles in the tables of budgets; all of them are in the results."""


def of_items(spec: dict[str, Any] | None) -> bool:
    """Whether a stored spec is one of aggregates."""
    return (spec or {}).get("kind") == AGGREGATES


def declared_unit(spec: dict[str, Any] | None) -> str:
    """What a spec's budgets protect."""
    if not of_items(spec):
        return "user"
    return "occurrence" if (spec or {}).get("count") == "occurrence" else "item"


def declared_total(spec: dict[str, Any] | None) -> str | None:
    """The most that a spec lets its unit spend."""
    if of_items(spec):
        providers = (spec or {}).get("providers") or {}
        return str(sum((Fraction(provider["epsilon"]) for provider in providers.values()), Fraction(0)))
    budget = (spec or {}).get("budget") or {}
    total = budget.get("bound") or budget.get("total")  # a bound stands above what a protocol of items was given
    return None if total is None else str(total)


def render_aggregates(found: PublishedRelease, spec: dict[str, Any] | None, *, templates: jinja2.Environment) -> str:
    """The page of one release. The same release gives the same bytes."""
    grouped = found.tables["aggregates"].group_by("provider", maintain_order=True)
    providers = [_provider(str(name), rows, place < CHARTED) for place, ((name,), rows) in enumerate(grouped)]
    return templates.get_template("aggregates.html.j2").render(
        release={"release_id": found.release_id, **found.releases.to_dicts()[0]},
        published=found.status == "published",
        plan_matches=found.plan_matches,
        providers=providers,
        unit=declared_unit(spec),
        confidence=((spec or {}).get("intervals") or {}).get("confidence", 0.95),
        budgets=_budgets(found.tables["budgets"]),
        shown_profiles=SHOWN_PROFILES,
        gates=found.validations.to_dicts(),
        privacy=found.statement,
        statement=json.dumps(found.statement, indent=2, ensure_ascii=False),
        total=declared_total(spec),
        spec=None if spec is None else _written(spec),
    )


def _written(spec: dict[str, Any]) -> str:
    """The spec in YAML; of thousands of profiles the first ones."""
    profiles = dict(list(spec["profiles"].items())[:LISTED_PROFILES])
    more = len(spec["profiles"]) - len(profiles)
    note = f"# … and {more:,} more profiles, in the release's spec.json\n" if more else ""
    return words.as_yaml({**spec, "profiles": profiles}) + note


def _provider(name: str, rows: pl.DataFrame, charted: bool) -> dict[str, Any]:
    ordered = rows.sort("total", "attribute", descending=[True, False]).to_dicts()
    top = ordered[0]
    alternative = (
        f"Bar chart of {name}: estimated totals of {len(ordered)} attributes with error bars. Largest: "
        f"{top['attribute']} with {top['total']:,.0f}, between {top['ci_low']:,.0f} and {top['ci_high']:,.0f}. "
        "The table below has all numbers."
    )
    return {"name": name, "rows": ordered, "chart": charts.totals(ordered, alternative) if charted else None}


def _budgets(rows: pl.DataFrame) -> list[dict[str, Any]]:
    """By provider: the profiles that are shown, and what each spends on each attribute."""
    if rows.is_empty():
        return []
    views = []
    for (provider,), part in rows.group_by("provider", maintain_order=True):
        profiles = part.unique("level", keep="first", maintain_order=True)
        shown = profiles.head(SHOWN_PROFILES)
        listed = part.filter(pl.col("level").is_in(shown["level"].implode()))
        cells = {(row["attribute"], row["level"]): row for row in listed.iter_rows(named=True)}
        views.append(
            {
                "provider": provider,
                "profiles": shown.select("level", "n_users").to_dicts(),
                "n_profiles": profiles.height,
                "attributes": part["attribute"].unique(maintain_order=True).to_list(),
                "cells": cells,
            }
        )
    return views
