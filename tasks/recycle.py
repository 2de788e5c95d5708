"""Recycle: a release's reports perturbed once more, for an analyst cleared only up to a smaller budget.

Drawn once a release and budget, like any report, and each budget from the reports of the next larger one: a second draw
from the first reports would let the analyst average the noise away.
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

from pldp.channels.exact import float_above, log_above, within
from pldp.channels.protocol import Counts, PureProtocol, Reports
from pldp.errors import NotFound, RequestError
from pldp.estimate.combine import estimate_levels
from pldp.estimate.inference import estimate_histogram
from pldp.privacy.trust import trust_model
from pldp.questions.histograms.plan import AttributePlan, Plan
from pldp.questions.histograms.recycle.recycle import clear
from pldp.questions.histograms.recycle.unary import Recycled
from pldp.tasks.count import Support
from pldp.tasks.histogram_tables import histogram_rows
from pldp.tasks.home import Home
from pldp.tasks.perturb import read_reports, write_reports
from pldp.tasks.results import read_release
from pldp.tasks.run import Run
from pldp.tasks.stage import guarded

NOTHING = "Nothing was drawn or written."
_INSTEAD = {
    "items": "A release of its own with a smaller budget.total serves that analyst, and spends on top. ",
    "aggregates": "Name the analyst as a provider with an epsilon of its own in the next release. ",
}
"""What else serves an analyst of a smaller clearance, by the kind of release."""


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
    _refuse_other_kinds(run)
    plan = run.plan
    if found.status != "published" or plan.hidden is not None:
        why = "its levels are hidden, so nobody knows whose reports to flip" if plan.hidden else "it was refused"
        raise RequestError(f"{found.release_id} cannot be recycled: {why}. {NOTHING}")
    if not plan.attributes:
        raise RequestError(f"{found.release_id} cannot be recycled: it has no histograms. {NOTHING}")
    steps = [*_done(run, budget), budget]
    chains = {a.name: _chain(a, steps) for a in plan.attributes}
    cleared = {name: chain[-1] for name, chain in chains.items()}
    supports = tuple(_support(run, attribute, chains[attribute.name], steps) for attribute in plan.attributes)
    recipe = plan.recipe if plan.recipe.method in ("sum", "oc", "oc+") else replace(plan.recipe, method="oc+")
    rng = np.random.default_rng(int.from_bytes(f"{found.release_id} {budget}".encode()))
    histograms = tuple(
        estimate_histogram(estimate_levels(support.counts, support.n, cleared[support.attribute]), recipe, None, rng)
        for support in supports
    )
    rows = histogram_rows(plan, supports, histograms)
    return Cleared(rows, _statement(plan, found.release_id, budget, cleared))


def _refuse_other_kinds(run: Run) -> None:
    """Only reports of histograms have a second perturbation; other kinds have plans of another form."""
    kind = json.loads((run.folder / "plan.json").read_text()).get("kind")
    if kind is not None:
        raise RequestError(
            f"{run.release_id} cannot be recycled: it is a release of {kind}, and only reports of histograms can be "
            f"perturbed once more. {_INSTEAD.get(kind, '')}{NOTHING}"
        )


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


def _done(run: Run, budget: Fraction) -> list[Fraction]:
    """Budgets that were recycled to before and are larger, the largest first.

    A larger budget after a smaller one would need reports that agree with the smaller ones; drawn afresh, the two
    would add up.
    """
    folders = _place(run).iterdir() if _place(run).exists() else ()
    known = sorted((Fraction(path.name.removeprefix("budget=").replace("-", "/")) for path in folders), reverse=True)
    if known and budget > known[-1] and budget not in known:
        raise RequestError(
            f"{run.release_id} was recycled to {float(known[-1]):g} before: a larger budget afterwards would add up "
            f"with it. Recycle from the largest budget down. {NOTHING}"
        )
    return [step for step in known if step > budget]


def _chain(attribute: AttributePlan, steps: Sequence[Fraction]) -> list[tuple[PureProtocol, ...]]:
    """The levels' protocols at first, and after each budget: every step starts from the one before it."""
    chain = [attribute.protocols]
    try:
        for step in steps:
            chain.append(clear(chain[-1], step))
    except ValueError as error:
        raise RequestError(
            f"Attribute {attribute.name}: {error}. A release whose spec names one of these has reports that can be. "
            f"{NOTHING}"
        ) from None
    return chain


def _support(
    run: Run, attribute: AttributePlan, chain: list[tuple[PureProtocol, ...]], steps: Sequence[Fraction]
) -> Support:
    counts: Counts = np.zeros((len(attribute.levels), len(attribute.values)), dtype=np.int64)
    sizes: Counts = np.zeros(len(attribute.levels), dtype=np.int64)
    for i, level in enumerate(attribute.levels):
        folder = run.report_file(attribute.name, level.level, 0).parent
        paths = sorted(folder.glob("*.parquet"))
        if not paths:
            raise NotFound(f"{folder}: the reports of {run.release_id} are gone. {NOTHING}")
        for path in paths:
            reports = read_reports(path)
            for step, before, after in zip(steps, chain, chain[1:], strict=False):
                protocol = after[i]
                if protocol is not before[i] and isinstance(protocol, Recycled):
                    reports = _drawn(run, path, step, protocol, reports)
            counts[i] += chain[-1][i].support(reports)
            sizes[i] += len(reports)
    return Support(attribute.name, counts, sizes)


def _drawn(run: Run, path: Path, step: Fraction, protocol: Recycled, reports: Reports) -> Reports:
    """The reports after this step: those on disk, or drawn now from those before it."""
    place = _place(run) / f"budget={step.numerator}-{step.denominator}" / path.relative_to(run.reports)
    if not place.exists():
        write_reports(place, protocol.perturb_again(reports, run.stream("recycle", str(step), str(place))))
    return read_reports(place)


def _place(run: Run) -> Path:
    return Home(Path(run.root)).reports / "recycled" / run.release_id


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
        **trust_model(plan.perturbed_by).statement(),
        "cleared_up_to": float_above(budget),
        "meaning": "every report behind these estimates keeps at most this budget towards whoever sees no others",
        "worst_total": {"exact_epsilon": log_above(worst)},
        "levels": levels,
    }
