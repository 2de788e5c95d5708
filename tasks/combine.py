"""Combine: tallies to estimates, one task per question and method."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pldp.questions.question import ANSWER, Columns, Question, Sheet, Tallies
from pldp.tasks.reports import read_reports
from pldp.tasks.run import Run
from pldp.tasks.stage import stage

Reference = Mapping[tuple[str, str], float]
"""Shares by attribute and value, which a method is measured against."""

TASKS = {
    "sum": "combine_sum",
    "oc": "combine_oc",
    "oc+": "combine_oc_plus",
    "guarded": "combine_guarded",
    "op": "perturbation_op",
    "op-exact": "perturbation_op_exact",
    "em": "likelihood_em",
    "auem": "moments_auem",
    "self-calibrated": "moments_self_calibrated",
    "emoa-paper": "likelihood_emoa_paper",
    ANSWER: "estimate",
}
"""What the task of a method is called."""


@dataclass(frozen=True)
class StoredReports:
    """A question's committed reports, for estimates that read them again."""

    run: Run
    question: Question
    partitions: int
    reference: Reference | None = None
    spread: Callable[[str, NDArray[Any]], NDArray[np.int64]] | None = field(default=None, compare=False)
    """Asks every file, on the runner's workers; None in a task, which cannot start others."""

    def columns(self, sheet: Sheet) -> Iterator[Columns]:
        for partition in range(self.partitions):
            if sheet.covers(partition):
                yield read_reports(self.run.report_file(sheet, partition))

    def ask(self, method: str, arrays: NDArray[Any]) -> NDArray[np.int64]:
        if self.spread is None:
            raise ValueError("only the flow can ask all files")
        return self.spread(method, arrays)

    @property
    def adapted(self) -> bytes | None:
        return self.run.adapted.read_bytes() if self.run.adapted.exists() else None

    def generator(self, label: str) -> np.random.Generator:
        origin = self.run.release_id if self.run.seed is None else f"seed {self.run.seed}"
        return np.random.default_rng(int.from_bytes(hashlib.sha256(f"{origin} {label}".encode()).digest()))


@stage(retries=2)
def combine(run: Run, number: int, method: str, tallies: Tallies, partitions: int, reference: Reference | None) -> Any:
    """The estimates of a question by one method."""
    question = run.answered.questions[number]
    return question.combine(method, tallies, StoredReports(run, question, partitions, reference))
