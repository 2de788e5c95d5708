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
from pldp.channels.words import from_words, to_words
from pldp.errors import NotFound, Outcome, RequestError
from pldp.estimate.combine import estimate_levels
from pldp.estimate.inference import estimate_histogram
from pldp.privacy.trust import trust_model
from pldp.questions.histograms.plan import AttributePlan
from pldp.questions.histograms.question import Histograms
from pldp.questions.histograms.recycle.recycle import clear
from pldp.questions.histograms.recycle.unary import Recycled
from pldp.questions.histograms.reports import Support
from pldp.questions.histograms.tables import histogram_rows
from pldp.questions.tables import published_table
from pldp.tasks.home import Home
from pldp.tasks.reports import commit_reports, read_reports
from pldp.tasks.results import read_release
from pldp.tasks.run import Run
from pldp.tasks.stage import guarded
from pldp.tasks.tables import frame


@dataclass(frozen=True)
class Cleared:
    """What the analyst may have: histograms, and what they promise."""

    histograms: pl.DataFrame
    statement: dict[str, Any]


@guarded
def recycle(home: Path, wanted: str, budget: Fraction) -> Cleared:
    """Estimates from reports of at most this budget each; weaker-protected ones are flipped again first."""
    release = read_release(home, wanted)
    run = Run(str(home), release.release_id)
    plan = _histograms(run)
    if release.status != "published" or plan.hidden is not None:
        why = "its levels are hidden, so nobody knows whose reports to flip" if plan.hidden else "it was refused"
        raise RequestError(f"{release.release_id} cannot be recycled: {why}", Outcome.NOTHING_DRAWN)
    steps = [*_done(run, budget), budget]
    chains = {a.name: _chain(a, steps) for a in plan.attributes}
    cleared = {name: chain[-1] for name, chain in chains.items()}
    supports = tuple(_support(run, attribute, chains[attribute.name], steps) for attribute in plan.attributes)
    recipe = replace(plan.recipe, method=plan.recipe.linear)
    rng = np.random.default_rng(int.from_bytes(f"{release.release_id} {budget}".encode()))
    histograms = tuple(
        estimate_histogram(estimate_levels(support.counts, support.n, cleared[support.attribute]), recipe, None, rng)
        for support in supports
    )
    rows = frame(published_table("histograms"), histogram_rows(plan, supports, histograms))
    return Cleared(rows, _statement(run, plan, release.release_id, budget, cleared))


def _histograms(run: Run) -> Histograms:
    """The histograms of a release: only their reports have a second perturbation."""
    try:
        plan = run.plan
    except ValueError:
        raise RequestError(
            f"{run.release_id} cannot be recycled: an older version drew it, whose plan this one does not read",
            Outcome.NOTHING_DRAWN,
        ) from None
    histograms = [question for question in plan.questions if isinstance(question, Histograms)]
    if not histograms:
        kinds = " and ".join(question.kind for question in plan.questions)
        instead = " ".join(question.instead_of_recycling for question in plan.questions)
        raise RequestError(
            f"{run.release_id} cannot be recycled: it is a release of {kinds}, and only reports of histograms can be "
            "perturbed once more",
            Outcome.NOTHING_DRAWN,
            remedy=instead,
        )
    return histograms[0]


def write_cleared(cleared: Cleared, folder: Path) -> list[Path]:
    """The analyst's files; an earlier copy is the same, and stays."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        table, statement = folder / "histograms.parquet", folder / "privacy.json"
        cleared.histograms.write_parquet(table)
        statement.write_text(json.dumps(cleared.statement, indent=2))
    except OSError as error:
        raise RequestError(
            f"cannot be written ({error.strerror})", Outcome.AS_BEFORE, file=folder, remedy="Check the folder."
        ) from None
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
            "with it",
            Outcome.NOTHING_DRAWN,
            remedy="Recycle from the largest budget down.",
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
            f"Attribute {attribute.name}: {error}",
            Outcome.NOTHING_DRAWN,
            remedy="A release whose spec names one of these has reports that can be.",
        ) from None
    return chain


def _support(
    run: Run, attribute: AttributePlan, chain: list[tuple[PureProtocol, ...]], steps: Sequence[Fraction]
) -> Support:
    counts: Counts = np.zeros((len(attribute.levels), len(attribute.values)), dtype=np.int64)
    sizes: Counts = np.zeros(len(attribute.levels), dtype=np.int64)
    for i, level in enumerate(attribute.levels):
        folder = run.reports / f"attribute={attribute.name}" / f"level={level.level}"
        paths = sorted(folder.glob("*.parquet"))
        if not paths:
            raise NotFound(f"the reports of {run.release_id} are gone", Outcome.NOTHING_DRAWN, file=folder)
        for path in paths:
            reports = from_words(read_reports(path), chain[0][i].report_bytes)
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
        again = protocol.perturb_again(reports, run.stream("recycle", str(step), str(place)))
        commit_reports(place, to_words(again))
    return from_words(read_reports(place), protocol.report_bytes)


def _place(run: Run) -> Path:
    return Home(Path(run.root)).reports / "recycled" / run.release_id


def _statement(
    run: Run, plan: Histograms, release_id: str, budget: Fraction, cleared: dict[str, tuple[PureProtocol, ...]]
) -> dict[str, Any]:
    levels = []
    worst = Fraction(1)
    for attribute in plan.attributes:
        protocols = cleared[attribute.name]
        worst *= max(protocol.worst_ratio for protocol in protocols)
        for level, protocol in zip(attribute.levels, protocols, strict=True):
            if not within(protocol.worst_ratio, min(budget, level.budget)):
                raise RequestError(f"Attribute {attribute.name}: a promise would not be kept", Outcome.NOTHING_DRAWN)
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
        **trust_model(run.plan.perturbed_by).statement(),
        "cleared_up_to": float_above(budget),
        "meaning": "every report behind these estimates keeps at most this budget towards whoever sees no others",
        "worst_total": {"exact_epsilon": log_above(worst)},
        "levels": levels,
    }
