"""The stages of a run, one after the other without a server: what tests of any kind look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pldp.expectations.runner import Verdict
from pldp.flows.pipeline import everybody
from pldp.questions.question import Question
from pldp.tasks.combine import StoredReports
from pldp.tasks.count import Counted, add_up, ask, count
from pldp.tasks.drafts import commit
from pldp.tasks.frames import Frames, build_frames
from pldp.tasks.ingest import Ingested
from pldp.tasks.perturb import perturb
from pldp.tasks.run import Run
from pldp.tasks.validate import validate


@dataclass(frozen=True)
class Concluded:
    """A run up to its gates, by question; `truths` of an evaluation."""

    run: Run
    ingested: Ingested
    counted: tuple[Counted, ...]
    results: tuple[Any, ...]
    frames: Frames
    truths: tuple[Any, ...] | None

    @property
    def question(self) -> Question:
        (question,) = self.run.plan.questions
        return question

    @property
    def result(self) -> Any:
        (result,) = self.results
        return result

    @property
    def truth(self) -> Any:
        (truth,) = self.truths or ()
        return truth

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        (tables,) = self.frames.questions
        return tables

    def with_result(self, result: Any) -> Concluded:
        """The same with another result of its one question, tables and all."""
        return _framed(replace(self, results=(result,)))

    def with_truth(self, truth: Any) -> Concluded:
        return replace(self, truths=(truth,))

    def with_tables(self, **tables: pl.DataFrame) -> Concluded:
        """The same with other frames of its one question."""
        return replace(self, frames=Frames(({**self.tables, **tables},), self.frames.beside))

    def verdicts(self) -> tuple[Verdict, ...]:
        return validate.fn(self.run, self.ingested, self.counted, self.results, self.frames, self.truths)

    def failed(self) -> set[str]:
        return {verdict.gate for verdict in self.verdicts() if not verdict.passed}


def draw_all(run: Run, batch: Sequence[int]) -> int:
    """All reports of questions of one phase; how many were drawn now."""
    return sum(perturb.fn(run, 0, choice, batch) for choice in run.plan.choices(0))


def draw_phases(run: Run, batch: Sequence[int]) -> None:
    """All reports, those of a second phase after what the first led to."""
    for phase in range(run.plan.phases):
        if phase:
            adapting = next(question for question in run.plan.questions if question.phases > phase)
            commit(run.adapted, adapting.adapt(add_up(count.fn(run, phase - 1, batch))), mode=0o644)
        for choice in run.plan.choices(phase):
            perturb.fn(run, phase, choice, batch)


def conclude_all(run: Run, ingested: Ingested) -> Concluded:
    """Count and combine what was drawn, and look at the truth where it is an evaluation."""
    batch = range(ingested.partitions)
    counted = tuple(count.fn(run, None, batch))
    tallies = add_up(counted)
    results: list[Any] = []
    for number, question in enumerate(run.plan.questions):

        def spread(method: str, arrays: NDArray[Any], number: int = number) -> NDArray[np.int64]:
            np.save(run.folder / "asked.npy", arrays)
            return ask.fn(run, number, method, str(run.folder / "asked.npy"), batch)

        stored = StoredReports(run, question, ingested.partitions, None, spread)
        estimates = {method: question.combine(method, tallies, stored) for method in question.methods}
        results.append(question.conclude(tallies, estimates))
    truths = None
    if run.evaluation:
        asked = zip(run.plan.questions, results, strict=True)
        truths = tuple(question.truth(everybody(run, ingested), result) for question, result in asked)
    return _framed(Concluded(run, ingested, counted, tuple(results), Frames((), {}), truths))


def _framed(concluded: Concluded) -> Concluded:
    plan, results = concluded.run.plan, concluded.results
    tables = [question.tables(result) for question, result in zip(plan.questions, results, strict=True)]
    return replace(concluded, frames=build_frames(plan, results, (), tables))
