"""Recycle: a release's reports perturbed once more, for an analyst cleared only up to a smaller budget.

Drawn once a release and budget, like any report: a second draw would let the analyst average the noise away.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from pldp.combine import estimate_levels
from pldp.errors import NotFound, RequestError
from pldp.exact import float_above, log_above, within
from pldp.inference import estimate_histogram
from pldp.mechanisms.protocol import Counts, PureProtocol
from pldp.plan import AttributePlan, Plan
from pldp.recycle import RecycledBRR, RecycledKRR, clear
from tasks.count import Support
from tasks.home import Home
from tasks.perturb import read_reports, write_reports
from tasks.results import read_release
from tasks.run import Run
from tasks.stage import guarded
from tasks.tables import histogram_rows

NOTHING = "Nothing was drawn or written."


@dataclass(frozen=True)
class Cleared:
    """What the analyst may have: histograms, and what they promise."""

    histograms: pl.DataFrame
    statement: dict[str, Any]


@guarded
def recycle(home: Path, wanted: str, budget: Fraction) -> Cleared:
    """Estimates from reports of at most this budget each; weaker-protected ones are flipped again first."""
    found = read_release(home, wanted)
    run = Run(str(home), found.release_id)
    plan = run.plan
    if found.status != "published" or plan.hidden is not None:
        why = "its levels are hidden, so nobody knows whose reports to flip" if plan.hidden else "it was refused"
        raise RequestError(f"{found.release_id} cannot be recycled: {why}. {NOTHING}")
    cleared = {a.name: _clear(a, budget) for a in plan.attributes}
    supports = tuple(_support(run, attribute, cleared[attribute.name], budget) for attribute in plan.attributes)
    recipe = plan.recipe if plan.recipe.method in ("sum", "oc", "oc+") else replace(plan.recipe, method="oc+")
    rng = np.random.default_rng(int.from_bytes(f"{found.release_id} {budget}".encode()))
    histograms = tuple(
        estimate_histogram(estimate_levels(support.counts, support.n, cleared[support.attribute]), recipe, None, rng)
        for support in supports
    )
    rows = histogram_rows(plan, supports, histograms)
    return Cleared(rows, _statement(plan, found.release_id, budget, cleared))


def write_cleared(found: Cleared, folder: Path) -> list[Path]:
    """The analyst's files; an earlier copy is the same, and stays."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        table, statement = folder / "histograms.parquet", folder / "privacy.json"
        found.histograms.write_parquet(table)
        statement.write_text(json.dumps(found.statement, indent=2))
    except OSError as error:
        raise RequestError(f"{folder}: cannot be written ({error.strerror}). Check the folder.") from None
    return [table, statement]


def _clear(attribute: AttributePlan, budget: Fraction) -> tuple[PureProtocol, ...]:
    try:
        return clear(attribute.protocols, [level.budget for level in attribute.levels], budget)
    except ValueError as error:
        raise RequestError(
            f"Attribute {attribute.name}: {error}. A spec that asks for krr or brr makes reports that can be. {NOTHING}"
        ) from None


def _support(run: Run, attribute: AttributePlan, protocols: Sequence[PureProtocol], budget: Fraction) -> Support:
    counts: Counts = np.zeros((len(protocols), len(attribute.values)), dtype=np.int64)
    sizes: Counts = np.zeros(len(protocols), dtype=np.int64)
    for i, (level, protocol) in enumerate(zip(attribute.levels, protocols, strict=True)):
        first = run.report_file(attribute.name, level.level, 0).parent
        paths = sorted(first.glob("*.parquet"))
        if not paths:
            raise NotFound(f"{first}: the reports of {run.release_id} are gone. {NOTHING}")
        for path in paths:
            reports = read_reports(path)
            if isinstance(protocol, RecycledBRR | RecycledKRR):
                again = _place(run, budget) / path.relative_to(run.reports)
                if not again.exists():
                    stream = run.stream("recycle", str(budget), attribute.name, level.level, path.name)
                    write_reports(again, protocol.perturb_again(reports, stream))
                reports = read_reports(again)
            counts[i] += protocol.support(reports)
            sizes[i] += len(reports)
    return Support(attribute.name, counts, sizes)


def _place(run: Run, budget: Fraction) -> Path:
    return (
        Home(Path(run.root)).reports / "recycled" / run.release_id / f"budget={budget.numerator}-{budget.denominator}"
    )


def _statement(
    plan: Plan, release_id: str, budget: Fraction, cleared: dict[str, tuple[PureProtocol, ...]]
) -> dict[str, Any]:
    levels = []
    worst = Fraction(1)
    for attribute in plan.attributes:
        protocols = cleared[attribute.name]
        worst *= max(protocol.worst_ratio for protocol in protocols)
        for level, protocol in zip(attribute.levels, protocols, strict=True):
            if not within(protocol.worst_ratio, min(budget, level.budget)):
                raise RequestError(f"Attribute {attribute.name}: a promise would not be kept. {NOTHING}")
            levels.append(
                {
                    "attribute": attribute.name,
                    "level": level.level,
                    "mechanism": protocol.name,
                    "recycled": protocol.name != level.mechanism,
                    "exact_epsilon": log_above(protocol.worst_ratio),
                }
            )
    return {
        "release_id": release_id,
        "cleared_up_to": float_above(budget),
        "meaning": "every report behind these estimates keeps at most this budget towards whoever sees no others",
        "worst_total": {"exact_epsilon": log_above(worst)},
        "levels": levels,
    }
