"""The stages that a release and an evaluation share, up to the verdicts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl
from prefect.futures import PrefectFuture, as_completed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.progress import report
from pldp.inference import Histogram
from pldp.mechanisms.protocol import Floats
from tasks.aggregates.file import AggregatesFile
from tasks.combine import References, combine
from tasks.count import Support, Tally, add_up, count
from tasks.estimate import LevelEstimates, estimate
from tasks.ingest import Ingested
from tasks.numbers import NumberResults, NumberTally, count_number_reports, estimate_numbers
from tasks.perturb import perturb, perturb_hidden
from tasks.perturb_numbers import perturb_numbers
from tasks.run import AnyRun, Run
from tasks.specfile import SpecFile
from tasks.tables import histogram_rows
from tasks.validate import validate

if TYPE_CHECKING:
    from expectations.runner import Verdict

BATCHES = 16
"""Task runs a level: enough to keep cores busy and show progress, few enough not to cost."""

T = TypeVar("T")


def threads() -> TaskRunner[Any]:
    """NumPy and DuckDB let go of the interpreter lock, so threads fill the cores and share one memory."""
    return ThreadPoolTaskRunner(max_workers=os.cpu_count() or 1)


@dataclass(frozen=True)
class Outcome:
    supports: tuple[Support, ...]
    estimates: tuple[LevelEstimates, ...]
    histograms: tuple[Histogram, ...]
    rows: pl.DataFrame
    numbers: NumberResults | None
    verdicts: tuple[Verdict, ...]


def draw(run: Run, ingested: Ingested) -> None:
    """Perturb: one task run a privacy level and batch of partitions; a batch where levels are hidden."""
    batches = batches_of(ingested.partitions)
    if run.plan.hidden is not None:
        gather("perturb", [perturb_hidden.submit(run, batch, ingested.partitions) for batch in batches])
        return
    stages = [*([perturb] if run.plan.attributes else []), *([perturb_numbers] if run.plan.numbers else [])]
    gather(
        "perturb",
        [
            stage.submit(run, level, batch, ingested.partitions)
            for stage in stages
            for level in run.plan.levels
            for batch in batches
        ],
    )


def conclude(
    run: Run,
    ingested: Ingested,
    references: References | None,
    truth: dict[str, Floats] | None = None,
    true_means: dict[str, float] | None = None,
) -> Outcome:
    """Everything right of the trust boundary: count, estimate, combine, validate."""
    batches = batches_of(ingested.partitions)
    tallied = gather("count", [count.submit(run, batch) for batch in batches])
    tallies: tuple[Tally, ...] = tuple(tally for batch in tallied for tally in batch)
    supports = add_up(run, tallies)
    number_tallies: tuple[NumberTally, ...] = ()
    if run.plan.numbers is not None:
        counted = gather("count", [count_number_reports.submit(run, batch) for batch in batches])
        number_tallies = tuple(tally for batch in counted for tally in batch)
    report("estimate", 0)
    estimates = estimate(run, supports)
    numbers = estimate_numbers(run, number_tallies) if run.plan.numbers is not None else None
    report("estimate", 1)
    report("combine", 0)
    histograms = combine(run, supports, estimates, references, ingested.partitions)
    report("combine", 1)
    report("validate", 0)
    rows = histogram_rows(run.plan, supports, histograms)
    verdicts = validate(run, ingested, tallies, supports, estimates, histograms, rows, truth, numbers, true_means)
    report("validate", 1)
    return Outcome(supports, estimates, histograms, rows, numbers, verdicts)


def forget_vault(run: AnyRun, file: SpecFile | AggregatesFile) -> None:
    """The end of the raw values, unless the spec keeps them."""
    if file.spec.retention.vault == "delete":
        shutil.rmtree(run.vault.parent, ignore_errors=True)


def batches_of(partitions: int) -> list[Sequence[int]]:
    size = -(-partitions // BATCHES)
    return [range(start, min(start + size, partitions)) for start in range(0, partitions, size)]


def gather(stage: str, futures: Iterable[PrefectFuture[T]]) -> list[T]:
    """Wait for all, reporting progress; the first failure is raised as it is."""
    waiting = list(futures)
    report(stage, 0, len(waiting))
    for done, _ in enumerate(as_completed(waiting), start=1):
        report(stage, done, len(waiting))
    return [future.result() for future in waiting]
