"""Perturb: vault to reports, one file a level and partition. The last stage that reads the vault."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pldp.channels.protocol import Reports
from pldp.channels.randomness import Keystream
from pldp.questions.items.plan import Bits, ItemLevel, OneValue, Sampled
from pldp.questions.items.sampling import held_sets
from pldp.questions.items.transactions import Columns, Itemsets
from pldp.tasks.items.run import ItemsRun
from pldp.tasks.perturb import write_reports
from pldp.tasks.stage import stage

Numbers = NDArray[np.integer]


@dataclass(frozen=True)
class Rows:
    """Users of a partition: their levels (positions in the plan), and whose items are items[offsets[i] : …]."""

    levels: Numbers
    offsets: Numbers
    items: Numbers

    def of_level(self, level: int) -> Rows:
        own = self.levels == level
        sizes = np.diff(self.offsets)
        offsets = np.concatenate([[0], np.cumsum(sizes[own])])
        return Rows(self.levels[own], offsets, self.items[np.repeat(own, sizes)])

    def columns(self, n_items: int) -> Columns:
        """Users without items are rows without items: what a user holds must not decide whether the user counts."""
        return Columns.of_sets(self.offsets, self.items, n_items, empty="keep")


@stage()
def perturb_items(run: ItemsRun, batch: Sequence[int]) -> int:
    """Draw the reports of a batch of partitions, of every level; how many were drawn now.

    Drawn once: a file that is committed is never drawn again, and a second writer that lost the race leaves what is
    there.
    """
    plan = run.plan
    drawn = 0
    for partition in batch:
        missing = [i for i, name in enumerate(plan.level_names) if not run.report_file(name, partition).exists()]
        if not missing:
            continue
        rows = true_rows(run, partition)
        for number in missing:
            level = plan.levels[number]
            stream = run.stream(level.level, partition)
            reports = _draw(run, level, rows.of_level(number), partition, stream)
            drawn += write_reports(run.report_file(level.level, partition), reports)
    return drawn


def _draw(run: ItemsRun, level: ItemLevel, own: Rows, partition: int, stream: Keystream) -> Reports:
    plan, way, n = run.plan, level.way, own.levels.size
    match way:
        case Bits():
            if not n:
                return np.empty((0, -(-len(plan.items) // 8)), dtype=np.uint8)
            return way.channel.perturb(own.columns(len(plan.items)), stream).reports()
        case OneValue():
            if own.items.size != n:
                raise ValueError("the vault holds a user without exactly one value")
            return way.channel.perturb(own.items.astype(np.uint16), stream).astype("<u2").view(np.uint8).reshape(n, 2)
        case Sampled():
            phase = way.phases[plan.phase_of(partition)]
            if not n:
                return np.empty((0, phase.sampling.protocol.report_bytes), dtype=np.uint8)
            if plan.phase_of(partition) == 0:
                return phase.sampling.perturb(own.offsets, own.items, stream)
            candidates = read_candidates(run)
            if not candidates:
                return phase.sampling.perturb(np.zeros(n + 1, dtype=np.int64), np.empty(0, dtype=np.int64), stream)
            return phase.sampling.perturb(*held_sets(own.columns(len(plan.items)), candidates), stream)


def true_rows(run: ItemsRun, partition: int) -> Rows:
    """Everybody of a partition, each item once."""
    table = pq.read_table(run.partition_file(partition), memory_map=False, partitioning=None)
    lists = table["items"].combine_chunks()
    offsets = lists.offsets.to_numpy().astype(np.int64)
    # From the first offset on: a slice of a longer column starts elsewhere.
    items = lists.values.to_numpy()[offsets[0] : offsets[-1]] if len(offsets) else np.empty(0, dtype=np.uint32)
    return Rows(table["level"].to_numpy(), offsets - offsets[:1].sum(), items.astype(np.int64))


def read_candidates(run: ItemsRun) -> list[Itemsets]:
    """By length; none at all where nothing seemed frequent."""
    return [np.array(level, dtype=np.int32) for level in json.loads(run.candidates.read_text())]
