"""Aggregates of users' items towards providers: what a release and an evaluation of them do."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pldp.flows.kinds import Asked, Concluded, Kind
from pldp.flows.pipeline import fan_out
from pldp.flows.progress import report
from pldp.flows.runner import batches_of
from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.totals import Sums
from pldp.tasks.aggregates.file import AggregatesFile, load_aggregates
from pldp.tasks.aggregates.ingest import ingest_items
from pldp.tasks.aggregates.perturb import perturb_aggregates, true_sums
from pldp.tasks.aggregates.run import AggregatesRun, open_aggregates
from pldp.tasks.aggregates.tables import aggregate_rows, item_budget_rows, loss_rows
from pldp.tasks.aggregates.totals import ItemTally, add_up_items, count_aggregates, estimate_aggregates
from pldp.tasks.aggregates.validate import validate_aggregates
from pldp.tasks.count import record_counted
from pldp.tasks.ingest import Ingested
from pldp.tasks.specfile import Given

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict


@dataclass(frozen=True)
class _Outcome:
    sums: dict[str, Sums]
    rows: pl.DataFrame
    verdicts: tuple[Verdict, ...]


def _load(path: Path, source: Path | None, runner: Given, *, evaluation: bool) -> AggregatesFile:
    return load_aggregates(path, source, runner)


def _draw(run: AggregatesRun, file: AggregatesFile, ingested: Ingested) -> None:
    """Perturb: one call a batch of partitions, all providers in it, for they share the users' own aggregates."""
    fan_out("perturb", [(perturb_aggregates, run, batch) for batch in batches_of(ingested.partitions)])


def _conclude(run: AggregatesRun, file: AggregatesFile, ingested: Ingested) -> Concluded:
    done = _estimate(run, ingested)
    return Concluded({"aggregates": done.rows, "budgets": item_budget_rows(run.plan, done.sums)}, done.verdicts)


def _study(run: AggregatesRun, file: AggregatesFile, ingested: Ingested, asked: Asked) -> Concluded:
    """One run with the truth beside it; what the noise loses is known by formula, so nothing is repeated.

    Tables: aggregates (provider × attribute) with the truth and the reports' mean error as measured and as predicted;
    losses (provider × profile × way to spend).
    """
    report("truth", 0)
    truth, away = true_sums(run, ingested.partitions)
    report("truth", 1)
    done = _estimate(run, ingested, truth)
    return Concluded({"aggregates": _cells(run, done, truth, away), "losses": loss_rows(run.plan)}, done.verdicts)


def _estimate(run: AggregatesRun, ingested: Ingested, truth: Units | None = None) -> _Outcome:
    """Count, estimate, validate."""
    tallied = fan_out("count", [(count_aggregates, run, batch) for batch in batches_of(ingested.partitions)])
    tallies: tuple[ItemTally, ...] = tuple(tally for batch in tallied for tally in batch)
    record_counted(run, ((found.provider, found.partition) for found in tallies))
    sums = add_up_items(run, tallies)
    report("estimate", 0)
    rows = aggregate_rows(run.plan, estimate_aggregates(run, sums))
    report("estimate", 1)
    report("validate", 0)
    verdicts = validate_aggregates(run, ingested, tallies, sums, rows, truth)
    report("validate", 1)
    return _Outcome(sums, rows, verdicts)


def _cells(run: AggregatesRun, done: _Outcome, truth: Units, away: dict[str, np.ndarray]) -> pl.DataFrame:
    """Totals beside the truth, and how far a single report lay from its user's aggregate."""
    plan, grid, frames = run.plan, run.plan.steps, []
    for name, sums in done.sums.items():
        n_users, mechanism = int(sums.users.sum()), plan.mechanisms[name]
        measured, squared = away[name] * [grid, grid**2] / n_users
        frames.append(
            pl.DataFrame(
                {
                    "truth": truth * grid,
                    "mean_error": measured,
                    "predicted_mean_error": sums.users @ mechanism.mean_size / n_users * grid,
                    "mean_squared_error": squared,
                    "predicted_mean_squared_error": sums.users @ mechanism.variance / n_users * grid**2,
                }
            )
        )
    cells = pl.concat([done.rows, pl.concat(frames)], how="horizontal")
    return cells.with_columns(z=(pl.col("total") - pl.col("truth")) / pl.col("standard_error"))


KIND = Kind(
    load=_load,
    open=open_aggregates,
    ingest=ingest_items,
    draw=_draw,
    conclude=_conclude,
    study=_study,
    artifacts=("aggregates",),
)
