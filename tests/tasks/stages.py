"""The stages of a run with one question, one after the other without a server: what tests of any kind look at."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from pldp.expectations.runner import Verdict
from pldp.flows.pipeline import everybody
from pldp.questions.question import Question
from pldp.tables.registry import published_table
from pldp.tasks.combine import StoredReports
from pldp.tasks.count import Counted, add_up, ask, count
from pldp.tasks.ingest import Ingested
from pldp.tasks.perturb import perturb
from pldp.tasks.run import Run
from pldp.tasks.tables import frame
from pldp.tasks.validate import validate


@dataclass(frozen=True)
class Concluded:
    """An evaluation up to its gates."""

    run: Run
    ingested: Ingested
    counted: tuple[Counted, ...]
    result: Any
    tables: dict[str, pl.DataFrame]
    truth: Any

    @property
    def question(self) -> Question:
        (question,) = self.run.plan.questions
        return question

    def verdicts(self) -> tuple[Verdict, ...]:
        return validate.fn(self.run, self.ingested, self.counted, [self.result], [self.tables], [self.truth])

    def failed(self) -> set[str]:
        return {verdict.gate for verdict in self.verdicts() if not verdict.passed}


def draw_all(run: Run, batch: Sequence[int]) -> int:
    """All reports of a question of one phase; how many were drawn now."""
    return sum(perturb.fn(run, 0, choice, batch) for choice in run.plan.choices(0))


def conclude_all(run: Run, ingested: Ingested) -> Concluded:
    """Count and combine what was drawn, and look at the truth."""
    question: Question
    (question,) = run.plan.questions
    batch = range(ingested.partitions)

    def spread(method: str, arrays: NDArray[Any]) -> NDArray[np.int64]:
        np.save(run.folder / "asked.npy", arrays)
        return ask.fn(run, 0, method, str(run.folder / "asked.npy"), batch)

    counted = tuple(count.fn(run, None, batch))
    tallies = add_up(counted)
    stored = StoredReports(run, question, ingested.partitions, None, spread)
    estimates = {method: question.combine(method, tallies, stored) for method in question.methods}
    result: Any = question.conclude(tallies, estimates)
    tables = {name: frame(published_table(name), rows) for name, rows in question.tables(result).items()}
    return Concluded(run, ingested, counted, result, tables, question.truth(everybody(run, ingested), result))
