"""A run taken through its stages without a server, for tests of what comes after the draws."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest

from pldp.tasks.combine import combine
from pldp.tasks.count import Support, Tally, add_up, count
from pldp.tasks.estimate import LevelEstimates, estimate
from pldp.tasks.histogram_tables import budget_rows, histogram_rows, level_rows
from pldp.tasks.ingest import Ingested, ingest
from pldp.tasks.perturb import perturb
from pldp.tasks.run import Run
from tests.people import make_people, opened, world

if TYPE_CHECKING:
    from pldp.estimate.inference import Histogram
    from pldp.expectations.runner import Verdict


@dataclass(frozen=True)
class Staged:
    """Everything up to the gates; `truth` are the shares of its people."""

    run: Run
    ingested: Ingested
    tallies: tuple[Tally, ...]
    supports: tuple[Support, ...]
    estimates: tuple[LevelEstimates, ...]
    histograms: tuple[Histogram, ...]
    truth: dict[str, np.ndarray]

    @property
    def rows(self) -> pl.DataFrame:
        return histogram_rows(self.run.plan, self.supports, self.histograms)

    @property
    def tables(self) -> dict[str, pl.DataFrame]:
        plan = self.run.plan
        return {
            "histograms": self.rows,
            "level_estimates": level_rows(plan, self.estimates),
            "budgets": budget_rows(plan, self.supports),
        }


def stage_run(folder: Path, seed: int = 11, **sections: object) -> Staged:
    """A seeded evaluation's run: the same numbers every time."""
    people = make_people(4000)
    # BRR has its sums and thresholds in the open; tests of `auto` and of hidden levels ask for them.
    spec = world(folder, people, **{"mechanism": "brr", **sections})
    run, file = opened(spec, folder / "home", evaluation=True, seed=seed)
    found = ingest.fn(run, file)
    for level in run.plan.levels:
        perturb.fn(run, level, range(found.partitions))
    tallies = tuple(count.fn(run, range(found.partitions)))
    supports = add_up(run, tallies)
    estimates = estimate.fn(run, supports)
    truth = {a.name: np.array([(people[a.name] == value).mean() for value in a.values]) for a in run.plan.attributes}
    histograms = combine.fn(run, supports, estimates, truth, found.partitions)
    return Staged(run, found, tallies, supports, estimates, histograms, truth)


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
