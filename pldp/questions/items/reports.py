"""From rows of items to reports, and from reports to support. Pure: columns in, columns and counts out."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pldp.channels.randomness import Keystream
from pldp.questions.items.rowchannels import Bits, Candidates
from pldp.questions.items.transactions import Counts, Itemsets, Transactions
from pldp.questions.question import Columns, Sheet, Tallies, offsets

if TYPE_CHECKING:
    from pldp.questions.items.question import Items


@dataclass(frozen=True, eq=False)
class ItemsTally:
    """What one or more report files of a level add: how many reports, and how many of them support each value."""

    n_reports: int
    counts: Counts

    def __add__(self, other: ItemsTally) -> ItemsTally:
        return ItemsTally(self.n_reports + other.n_reports, self.counts + other.counts)


@dataclass(frozen=True, eq=False)
class Support:
    """All support of one phase, (level, value), and how many reports each level has."""

    counts: Counts
    n: Counts


def transactions(rows: Columns, field: str) -> Transactions:
    """The rows of a partition, each item once."""
    bounds = rows[offsets(field)].astype(np.int64)
    # From the first bound on: a slice of a longer column starts elsewhere.
    held = rows[field][bounds[0] : bounds[-1]]
    return Transactions(bounds - bounds[0], held.astype(np.int64))


def draw(plan: Items, sheet: Sheet, rows: Columns, stream: Keystream, adapted: bytes | None) -> Columns:
    """One report per person of the sheet's level."""
    phase, level = plan.places[sheet.path]
    candidates = read_candidates(adapted) if phase else []
    return plan.levels[level].channel.draw(transactions(rows, plan.field), phase, candidates, stream)


def tally(plan: Items, sheet: Sheet, reports: Columns) -> ItemsTally:
    """How many reports a file has, and what they support."""
    phase, level = plan.places[sheet.path]
    return ItemsTally(len(next(iter(reports.values()))), plan.levels[level].channel.support(reports, phase))


def count_sets(plan: Items, sheet: Sheet, reports: Columns, sets: Itemsets) -> Counts:
    """How many reports hold all items of each set, (set, level): the sheet's level has them, the others zeros."""
    _, level = plan.places[sheet.path]
    channel = plan.levels[level].channel
    if not isinstance(channel, Bits):
        raise ValueError("only reports of bits hold sets")
    totals = np.zeros((len(sets), len(plan.levels)), dtype=np.int64)
    totals[:, level] = channel.packed(reports).count(sets)
    return totals


def support_of(plan: Items, tallies: Tallies, phase: int) -> Support:
    """The levels of one phase, side by side."""
    of_phase = [tallies[path] for path, (own_phase, _) in plan.places.items() if own_phase == phase]
    return Support(np.stack([one.counts for one in of_phase]), np.array([one.n_reports for one in of_phase]))


def write_candidates(candidates: Candidates) -> bytes:
    """The sets that the second half is asked about, by length, as lists of positions in the declared items."""
    return json.dumps([sets.tolist() for sets in candidates]).encode()


def read_candidates(adapted: bytes | None) -> list[Itemsets]:
    """The sets that the second half is asked about, by length; ValueError where none were committed."""
    if adapted is None:
        raise ValueError("the second half of a sampled release is asked about sets, which are not there")
    return [np.array(sets, dtype=np.int32) for sets in json.loads(adapted)]
