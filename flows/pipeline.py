"""The way of the data, from the vault to the verdicts: what a release and an evaluation share. It knows no kind."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray
from prefect.futures import PrefectFuture, as_completed
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from pldp.flows.progress import report
from pldp.flows.runner import batches_of, current, hand_over
from pldp.questions.question import Partitions
from pldp.tasks.combine import TASKS, Reference, StoredReports, combine
from pldp.tasks.count import Counted, add_up, ask, count, record_counted
from pldp.tasks.doubted import doubted
from pldp.tasks.drafts import commit, replace
from pldp.tasks.frames import build_frames
from pldp.tasks.ingest import Ingested
from pldp.tasks.partitions import read_partition
from pldp.tasks.perturb import perturb, perturb_together
from pldp.tasks.reports import columns_of
from pldp.tasks.run import Run
from pldp.tasks.stage import guarded
from pldp.tasks.validate import validate

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict

T = TypeVar("T")


def threads() -> TaskRunner[Any]:
    """NumPy and DuckDB let go of the interpreter lock, so threads fill the cores and share one memory."""
    return ThreadPoolTaskRunner(max_workers=os.cpu_count() or 1)


@dataclass(frozen=True)
class Outcome:
    """What a run comes to; `results` and `truths` by question."""

    results: tuple[Any, ...]
    truths: tuple[Any, ...] | None
    tables: Mapping[str, pl.DataFrame]
    """What is published, and nothing is built after the verdicts."""
    verdicts: tuple[Verdict, ...]


def draw(run: Run, ingested: Ingested) -> None:
    """Perturb: one call per choice and batch of partitions, on a cluster one per batch. What a second phase is asked
    follows from the first."""
    plan, batches = run.plan, batches_of(ingested.partitions)
    for phase in range(plan.phases):
        if phase:
            _adapt(run, ingested, phase)
        apart = [(perturb, run, phase, choice, batch) for choice in plan.choices(phase) for batch in batches]
        together = [(perturb_together, run, phase, batch) for batch in batches]
        fan_out("perturb", apart if current() is None else together)


def _adapt(run: Run, ingested: Ingested, phase: int) -> None:
    """Committed once, before anybody of the next phase is asked."""
    if run.adapted.exists():
        return
    tallies = add_up(_count(run, ingested, phase - 1))
    adapting = next(question for question in run.plan.questions if question.phases > phase)
    commit(run.adapted, guarded(adapting.adapt)(tallies), mode=0o644)


def _count(run: Run, ingested: Ingested, phase: int | None) -> list[Counted]:
    batches = fan_out("count", [(count, run, phase, batch) for batch in batches_of(ingested.partitions)])
    return [counted for batch in batches for counted in batch]


def conclude(run: Run, ingested: Ingested, reference: Reference | None, people: Partitions | None = None) -> Outcome:
    """Everything right of the trust boundary: count, combine, validate. An evaluation hands in the people."""
    counted = _count(run, ingested, None)
    record_counted(run, counted)
    tallies = add_up(counted)
    results = _combine(run, ingested, tallies, reference)
    truths = None
    if people is not None:
        report("truth", 0)
        questions = zip(run.answered.questions, results, strict=True)
        truths = tuple(guarded(question.truth)(people, result) for question, result in questions)
        report("truth", 1)
    doubts, rows = doubted(run, ingested, results)
    frames = build_frames(run.answered, results, doubts, rows, run.plan)
    report("validate", 0)
    verdicts = validate(run, ingested, counted, results, frames, truths, doubts)
    report("validate", 1)
    return Outcome(results, truths, frames.published, verdicts)


def _combine(run: Run, ingested: Ingested, tallies: Mapping[str, Any], reference: Reference | None) -> tuple[Any, ...]:
    """Every question by every method that it names, each in a task of the method's own."""
    plan = run.answered
    results: list[Any] = []
    done, steps = 0, sum(len(question.methods) for question in plan.questions)
    report("estimate", 0, steps)
    for number, question in enumerate(plan.questions):
        estimates = {}
        for method in question.methods:
            if question.asks:
                spread = partial(_ask, run, ingested, number)
                stored = StoredReports(run, question, ingested.partitions, reference, spread)
                estimates[method] = guarded(question.combine)(method, tallies, stored)
            else:
                task = combine.named(TASKS.get(method, method))
                estimates[method] = task(run, number, method, tallies, ingested.partitions, reference)
            done += 1
            report("estimate", done, steps)
        results.append(guarded(question.conclude)(tallies, estimates))
    return tuple(results)


def _ask(run: Run, ingested: Ingested, number: int, method: str, arrays: NDArray[Any]) -> NDArray[np.int64]:
    """Arrays go by a file: calls carry its name. It goes with the answer, as it follows from the reports."""
    content = io.BytesIO()
    np.save(content, arrays, allow_pickle=False)
    path = run.reports / f"asked-{number}.npy"
    replace(path, content.getvalue())
    try:
        calls = [(ask, run, number, method, path.name, batch) for batch in batches_of(ingested.partitions)]
        return np.sum(fan_out(method.replace("_", " "), calls), axis=0)
    finally:
        path.unlink(missing_ok=True)


def everybody(run: Run, ingested: Ingested) -> Partitions:
    """The vault's rows, for evaluations alone."""
    if not run.evaluation:
        raise ValueError("a release never reads the truth")

    def people(columns: Sequence[str]) -> Iterable[Any]:
        for partition in range(ingested.partitions):
            yield columns_of(read_partition(run, partition, columns))

    return people  # type: ignore[return-value]


def fan_out(name: str, calls: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Run calls of stages side by side, on threads or on the cluster of the `running_on` that this is in.

    A call is a stage and its arguments, which are references: `fan_out("count", [(count, run, None, batch), …])`.
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
