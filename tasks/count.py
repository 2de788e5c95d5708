"""Count: reports to support. Only committed files are counted, each by name, so that none counts twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pldp.protocol import Counts
from tasks.perturb import read_reports
from tasks.run import Run
from tasks.stage import stage


@dataclass(frozen=True)
class Tally:
    """The support that one report file gives."""

    attribute: str
    level: str
    partition: int
    n_reports: int
    support: Counts


@dataclass(frozen=True)
class Support:
    """All support of one attribute: (level, value), how many reports a level has, and what contributed."""

    attribute: str
    counts: Counts
    n: Counts


@stage(retries=2)
def count(run: Run, batch: Sequence[int]) -> list[Tally]:
    """Support of every attribute and level in a batch of partitions."""
    tallies = []
    for attribute in run.plan.attributes:
        for level in attribute.levels:
            for partition in batch:
                reports = read_reports(run.report_file(attribute.name, level.level, partition))
                support = level.protocol.support(reports)
                tallies.append(Tally(attribute.name, level.level, partition, len(reports), support))
    return tallies


def add_up(run: Run, tallies: Iterable[Tally]) -> tuple[Support, ...]:
    """Support counts are additive: sum them over partitions."""
    plan = run.plan
    level_index = {level: i for i, level in enumerate(plan.levels)}
    counts = {a.name: np.zeros((len(plan.levels), len(a.values)), dtype=np.int64) for a in plan.attributes}
    sizes = {a.name: np.zeros(len(plan.levels), dtype=np.int64) for a in plan.attributes}
    for tally in tallies:
        counts[tally.attribute][level_index[tally.level]] += tally.support
        sizes[tally.attribute][level_index[tally.level]] += tally.n_reports
    return tuple(Support(a.name, counts[a.name], sizes[a.name]) for a in plan.attributes)
