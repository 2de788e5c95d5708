"""Releases and evaluations of aggregates towards providers: the same way of the data, with stages of their own."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from prefect import flow
from prefect.artifacts import create_table_artifact

from flows.evaluate import keep
from flows.pipeline import batches_of, forget_vault, gather, threads
from flows.progress import report
from flows.release import MANUAL, Released, page, page_problem, record_spend
from pldp.aggregates.catalogue import Units
from pldp.aggregates.totals import Sums
from tasks.aggregates.file import load_aggregates
from tasks.aggregates.ingest import ingest_items
from tasks.aggregates.perturb import perturb_aggregates, true_sums
from tasks.aggregates.run import AggregatesRun, open_aggregates
from tasks.aggregates.tables import aggregate_rows, item_budget_rows, loss_rows
from tasks.aggregates.totals import ItemTally, add_up_items, count_aggregates, estimate_aggregates
from tasks.aggregates.validate import validate_aggregates
from tasks.home import Home
from tasks.ingest import Ingested
from tasks.publish import publish, status_of
from tasks.tables import validation_rows

if TYPE_CHECKING:
    from expectations.runner import Verdict


@dataclass(frozen=True)
class EvaluatedAggregates:
    evaluation_id: str
    folder: Path
    n_users: int
    cells: pl.DataFrame
    """Provider × attribute, with the truth, and the reports' own mean error as measured and as predicted."""
    losses: pl.DataFrame
    """Provider × profile × way to spend."""
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True)
class Concluded:
    sums: dict[str, Sums]
    rows: pl.DataFrame
    verdicts: tuple[Verdict, ...]


def release_aggregates(
    spec_path: Path, home: Path, *, slot: str = MANUAL, source: Path | None = None, wait: bool = False
) -> Released:
    """Run one release under the home's lock; the same identity resumes or is found done."""
    file = load_aggregates(spec_path, source)
    prepared = Home(home).prepare()
    with prepared.locked(wait):
        run = open_aggregates(prepared, file, slot)
        done = status_of(prepared, run.release_id)
        if done is not None:
            forget_vault(run, file)  # whoever published it may have died before coming to this
            return Released(run.release_id, done, resumed=True, page_problem=page_problem(run, page.fn))
        return aggregates_flow(str(spec_path), str(home), slot, None if source is None else str(source))


@flow(name="release-aggregates", task_runner=threads(), persist_result=False, validate_parameters=False)
def aggregates_flow(spec_path: str, home: str, slot: str = MANUAL, source: str | None = None) -> Released:
    """The way of the data. Parameters are paths and names: they end up in the orchestration database."""
    file = load_aggregates(Path(spec_path), None if source is None else Path(source))
    run = open_aggregates(Home(Path(home)), file, slot)
    report("ingest", 0)
    ingested = ingest_items(run, file)
    report("ingest", 1)
    record_spend(run, slot)
    _draw(run, ingested)
    done = _conclude(run, ingested)
    budgets = item_budget_rows(run.plan, done.sums)
    report("publish", 0)
    status = publish(run, ingested.n_users, {"aggregates": done.rows, "budgets": budgets}, done.verdicts)
    report("publish", 1)
    forget_vault(run, file)
    report("page", 0)
    problem = page_problem(run, page)
    report("page", 1)
    if status == "published":
        create_table_artifact(done.rows.to_dicts(), key="aggregates", description=f"Release {run.release_id}")
    return Released(run.release_id, status, resumed=False, page_problem=problem)


def evaluate_aggregates(
    spec_path: Path, home: Path, *, seed: int | None = None, source: Path | None = None
) -> EvaluatedAggregates:
    load_aggregates(spec_path, source)
    Home(home).prepare()
    return evaluate_aggregates_flow(str(spec_path), str(home), seed, None if source is None else str(source))


@flow(name="evaluate-aggregates", task_runner=threads(), persist_result=False, validate_parameters=False)
def evaluate_aggregates_flow(spec_path: str, home: str, seed: int | None, source: str | None) -> EvaluatedAggregates:
    """One run of the pipeline, with the truth beside it; it stays on the vault's side."""
    file = load_aggregates(Path(spec_path), None if source is None else Path(source))
    slot = "evaluation" if seed is not None else f"evaluation-{secrets.token_hex(8)}"
    run = open_aggregates(Home(Path(home)), file, slot, evaluation=True, seed=seed)
    report("ingest", 0)
    ingested = ingest_items(run, file)
    report("ingest", 1)
    _draw(run, ingested)
    report("truth", 0)
    truth, away = true_sums(run, ingested.partitions)
    report("truth", 1)
    done = _conclude(run, ingested, truth)
    cells = _cells(run, done, truth, away)
    losses = loss_rows(run.plan)
    keep(run, {"aggregates": cells, "losses": losses, "validations": validation_rows(done.verdicts)})
    forget_vault(run, file)
    return EvaluatedAggregates(run.release_id, run.folder, ingested.n_users, cells, losses, done.verdicts)


def _draw(run: AggregatesRun, ingested: Ingested) -> None:
    """Perturb: one task run a batch of partitions, all providers in it, for they share the users' own aggregates."""
    batches = batches_of(ingested.partitions)
    gather("perturb", [perturb_aggregates.submit(run, batch, ingested.partitions) for batch in batches])


def _conclude(run: AggregatesRun, ingested: Ingested, truth: Units | None = None) -> Concluded:
    """Everything right of the trust boundary: count, estimate, validate."""
    tallied = gather("count", [count_aggregates.submit(run, batch) for batch in batches_of(ingested.partitions)])
    tallies: tuple[ItemTally, ...] = tuple(tally for batch in tallied for tally in batch)
    sums = add_up_items(run, tallies)
    report("estimate", 0)
    rows = aggregate_rows(run.plan, estimate_aggregates(run, sums))
    report("estimate", 1)
    report("validate", 0)
    verdicts = validate_aggregates(run, ingested, tallies, sums, rows, truth)
    report("validate", 1)
    return Concluded(sums, rows, verdicts)


def _cells(run: AggregatesRun, done: Concluded, truth: Units, away: dict[str, np.ndarray]) -> pl.DataFrame:
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
