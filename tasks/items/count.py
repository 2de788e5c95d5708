"""Count: reports to support. Only committed files are counted, each by name, so that none counts twice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from pldp.channels.protocol import Reports
from pldp.questions.items.plan import Bits, ItemLevel, OneValue, Sampled
from pldp.questions.items.transactions import Columns, Counts
from pldp.tasks.items.run import ItemsRun
from pldp.tasks.perturb import read_reports
from pldp.tasks.stage import stage


@dataclass(frozen=True)
class Counted:
    """One report file that was counted."""

    level: str
    partition: int
    n_reports: int


@dataclass(frozen=True)
class Tally:
    """What a batch of partitions adds: raw support of items (or values, or sampled sets), (level, value)."""

    files: tuple[Counted, ...]
    counts: Counts


@dataclass(frozen=True)
class Support:
    """All support of one phase, and how many reports each level has."""

    counts: Counts
    n: Counts


@stage(retries=2)
def count_items(run: ItemsRun, batch: Sequence[int]) -> Tally:
    """Raw support of every level in a batch of partitions, all of one phase."""
    plan = run.plan
    files, rows = [], []
    for level in plan.levels:
        total: Counts | None = None
        for partition in batch:
            reports = read_reports(run.report_file(level.level, partition))
            found = _support(level, reports, len(plan.items), plan.phase_of(partition))
            total = found if total is None else total + found
            files.append(Counted(level.level, partition, len(reports)))
        rows.append(total)
    return Tally(tuple(files), np.stack([row for row in rows if row is not None]))


def _support(level: ItemLevel, reports: Reports, n_items: int, phase: int) -> Counts:
    way = level.way
    match way:
        case Bits():
            singles = np.arange(n_items, dtype=np.int32)[:, None]
            return Columns.of_reports(reports, n_items).count(singles)
        case OneValue():
            return way.channel.support(np.ascontiguousarray(reports).view("<u2")[:, 0])
        case Sampled():
            return way.phases[phase].sampling.protocol.support(reports)


@stage(retries=2)
def count_sets(run: ItemsRun, batch: Sequence[int], length: int, first: int, last: int) -> Counts:
    """How many reports hold all items of each set, (set, level), of the sets `first` to `last` of this length."""
    plan = run.plan
    sets = np.load(run.sets_file(length), mmap_mode="r")[first:last]
    totals = np.zeros((len(sets), len(plan.levels)), dtype=np.int64)
    for partition in batch:
        for column, level in enumerate(plan.level_names):
            reports = Columns.of_reports(read_reports(run.report_file(level, partition)), len(plan.items))
            totals[:, column] += reports.count(sets)
    return totals


def add_up_tallies(run: ItemsRun, tallies: Iterable[Tally]) -> Support:
    """Whole numbers, so partitions add up exactly in any order."""
    names = run.plan.level_names
    counts: Counts | None = None
    n = np.zeros(len(names), dtype=np.int64)
    for tally in tallies:
        counts = tally.counts if counts is None else counts + tally.counts
        for file in tally.files:
            n[names.index(file.level)] += file.n_reports
    if counts is None:
        raise ValueError("there are no reports to count")
    return Support(counts, n)
