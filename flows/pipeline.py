"""The stages that a release and an evaluation share, up to the verdicts."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl
from prefect.futures import PrefectFuture, as_completed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from pldp.channels.protocol import Floats
from pldp.estimate.inference import Histogram
from pldp.flows.progress import report
from pldp.flows.runner import batches_of, current, hand_over
from pldp.questions.numbers.estimate import Distribution
from pldp.tasks.combine import References, combine
from pldp.tasks.count import Support, Tally, add_up, count, record_counted
from pldp.tasks.estimate import LevelEstimates, estimate
from pldp.tasks.histogram_tables import histogram_rows
from pldp.tasks.ingest import Ingested
from pldp.tasks.numbers import NumberResults, NumberTally, binned_numbers, count_number_reports, estimate_numbers
from pldp.tasks.perturb import perturb, perturb_hidden
from pldp.tasks.perturb_numbers import perturb_numbers
from pldp.tasks.run import Run
from pldp.tasks.validate import validate

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict

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
    binned: tuple[Distribution, ...]
    verdicts: tuple[Verdict, ...]


def draw(run: Run, ingested: Ingested) -> None:
    """Perturb: one call a privacy level and batch of partitions; a batch where levels are hidden."""
    batches = batches_of(ingested.partitions)
    if run.plan.hidden is not None:
        fan_out("perturb", [(perturb_hidden, run, batch) for batch in batches])
        return
    stages = [*([perturb] if run.plan.attributes else []), *([perturb_numbers] if run.plan.numbers else [])]
    calls = [(stage, run, level, batch) for stage in stages for level in run.plan.levels for batch in batches]
    fan_out("perturb", calls)


def conclude(
    run: Run,
    ingested: Ingested,
    references: References | None,
    truth: dict[str, Floats] | None = None,
    true_means: dict[str, float] | None = None,
) -> Outcome:
    """Everything right of the trust boundary: count, estimate, combine, validate."""
    batches = batches_of(ingested.partitions)
    tallied = fan_out("count", [(count, run, batch) for batch in batches])
    tallies: tuple[Tally, ...] = tuple(tally for batch in tallied for tally in batch)
    supports = add_up(run, tallies)
    number_tallies: tuple[NumberTally, ...] = ()
    if run.plan.numbers is not None:
        counted = fan_out("count", [(count_number_reports, run, batch) for batch in batches])
        number_tallies = tuple(tally for batch in counted for tally in batch)
    files = [(f"{found.attribute}/{found.level or 'hidden'}", found.partition) for found in tallies]
    files += [(f"numbers/{found.level}", partition) for found in number_tallies for partition in found.partitions]
    record_counted(run, files)
    report("estimate", 0)
    estimates = estimate(run, supports)
    numbers = estimate_numbers(run, number_tallies) if run.plan.numbers is not None else None
    report("estimate", 1)
    report("combine", 0)
    histograms = combine(run, supports, estimates, references, ingested.partitions)
    report("combine", 1)
    report("validate", 0)
    rows = histogram_rows(run.plan, supports, histograms)
    binned = binned_numbers(run.plan, supports, histograms)
    verdicts = validate(
        run, ingested, tallies, supports, estimates, histograms, rows, truth, numbers, true_means, binned
    )
    report("validate", 1)
    return Outcome(supports, estimates, histograms, rows, numbers, binned, verdicts)


def fan_out(name: str, calls: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Run calls of stages side by side, on threads or on the cluster of the `running_on` that this is in.

    A call is a stage and its arguments, which are references: `fan_out("perturb", [(perturb, run, level, batch), …])`.
    On a cluster only the stage's function runs, from its module by name, so a stage is a global of its module. Results
    come in the order of the calls; the first failure is raised as it is.
    """
    listed = list(calls)
    if current() is None:
        return gather(name, [stage.submit(*arguments) for stage, *arguments in listed])
    return hand_over(name, [(stage.fn.__module__, stage.fn.__name__, *arguments) for stage, *arguments in listed])


def gather(stage: str, futures: Iterable[PrefectFuture[T]]) -> list[T]:
    """Wait for all, reporting progress; the first failure is raised as it is."""
    waiting = list(futures)
    report(stage, 0, len(waiting))
    for done, _ in enumerate(as_completed(waiting), start=1):
        report(stage, done, len(waiting))
    return [future.result() for future in waiting]
