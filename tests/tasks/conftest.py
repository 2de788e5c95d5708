"""A run taken through its stages without a server, for tests of what comes after the draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from pldp.questions.histograms.combine import HistogramsResult
from pldp.questions.histograms.question import Histograms
from pldp.questions.statement import spend_rows
from pldp.questions.tables import published_table
from pldp.tables.common import BUDGETS, SPENDS
from pldp.tasks.combine import combine
from pldp.tasks.count import Counted, add_up, count
from pldp.tasks.ingest import Ingested, ingest
from pldp.tasks.perturb import perturb
from pldp.tasks.run import Run
from pldp.tasks.tables import frame
from tests.people import histograms_of, make_people, opened, world

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict


@dataclass(frozen=True)
class Staged:
    """Everything up to the gates; `truth` are the shares of its people."""

    run: Run
    ingested: Ingested
    counted: tuple[Counted, ...]
    result: HistogramsResult
    truth: dict[str, np.ndarray]

    @property
    def histograms(self) -> Histograms:
        return histograms_of(self.run)

    @property
    def rows(self) -> pl.DataFrame:
        return self.tables["histograms"]

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        """As they are published."""
        plan = self.histograms
        tables = {name: frame(published_table(name), rows) for name, rows in plan.tables(self.result).items()}
        spends = frame(SPENDS, spend_rows(self.run.plan))
        return {**tables, "budgets": frame(BUDGETS, plan.budgets(self.result)), "spends": spends}


def drawn(run: Run, partitions: int) -> None:
    """All reports of a run's first phase."""
    for choice in run.plan.choices(0):
        perturb.fn(run, 0, choice, range(partitions))


def stage_run(folder: Path, seed: int = 11, **sections: object) -> Staged:
    """A seeded evaluation's run: the same numbers every time."""
    people = make_people(4000)
    # BRR has its sums and thresholds in the open; tests of `auto` and of hidden levels ask for them.
    spec = world(folder, people, **{"mechanism": "brr", **sections})
    run, file = opened(spec, folder / "home", evaluation=True, seed=seed)
    ingested = ingest.fn(run, file)
    drawn(run, ingested.partitions)
    counted = tuple(count.fn(run, None, range(ingested.partitions)))
    tallies, plan = add_up(counted), histograms_of(run)
    truth = {a.name: np.array([(people[a.name] == value).mean() for value in a.values]) for a in plan.attributes}
    reference = {(a.name, v): float(s) for a in plan.attributes for v, s in zip(a.values, truth[a.name], strict=True)}
    number = run.plan.questions.index(plan)
    estimates = {
        method: combine.fn(run, number, method, tallies, ingested.partitions, reference) for method in plan.methods
    }
    return Staged(run, ingested, counted, plan.conclude(tallies, estimates), truth)


@pytest.fixture(scope="session")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Staged:
    return stage_run(tmp_path_factory.mktemp("staged"))


@pytest.fixture
def passed() -> tuple[Verdict, ...]:
    """Gates that say yes."""
    from pldp.expectations.runner import Verdict

    return (Verdict("one", "One holds.", True, 1.0, 2.0, 0.0), Verdict("two", "Two holds.", True, 0.0, 0.0, 1e-6))


@pytest.fixture
def refused(passed: tuple[Verdict, ...]) -> tuple[Verdict, ...]:
    return (passed[0], replace(passed[1], passed=False))
