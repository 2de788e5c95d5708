"""The truth, for evaluations alone. Nothing of this leaves the vault's side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.levels import Floats
from pldp.questions.items.mining import Search, mine
from pldp.questions.items.plan import Sampled
from pldp.questions.items.sampling import held_sets
from pldp.questions.items.transactions import Columns, Counts, Itemsets
from pldp.tasks.ingest import Ingested
from pldp.tasks.items.perturb import Rows, read_candidates, true_rows
from pldp.tasks.items.run import ItemsRun
from pldp.tasks.stage import stage

LARGEST = 1 << 26
"""Bytes of packed truth that a repeated study may hold."""


@dataclass(frozen=True)
class Truth:
    """True supports: of every item, and of every longer set that is truly frequent or was found."""

    supports: dict[tuple[int, ...], float]
    expected: dict[tuple[int, ...], float]
    """What estimates are unbiased for: less, where users were sampled and hold more than the padding."""
    frequent: frozenset[tuple[int, ...]]


@stage()
def true_supports(run: ItemsRun, ingested: Ingested, found: tuple[Itemsets, ...]) -> Truth:
    """One pass over the partitions for every length."""
    if not run.evaluation:
        raise ValueError("a release never reads the truth")
    plan, n_users = run.plan, ingested.n_users

    def count(sets: Itemsets) -> Counts:
        return np.sum([own.count(sets) for own in _partitions(run, ingested)], axis=0)

    exact = ItemChannels.symmetric((SCALE,) * len(plan.items))
    mined = mine(count, n_users, exact, Search(plan.minimum_support, plan.length, reach=0))
    frequent = {tuple(row) for level in mined for row in level.items.tolist()}
    supports = {
        tuple(row): held / n_users
        for level in mined
        for row, held in zip(level.items.tolist(), level.count.tolist(), strict=True)
    }
    singles = np.arange(len(plan.items), dtype=np.int32)[:, None]
    for sets in (singles, *found):
        supports |= {tuple(row): held / n_users for row, held in zip(sets.tolist(), count(sets).tolist(), strict=True)}
    return Truth(supports, supports | _understated(run, ingested), frozenset(frequent))


def _understated(run: ItemsRun, ingested: Ingested) -> dict[tuple[int, ...], float]:
    """Of sampled items and sets: a row with more than ℓ of them counts as ℓ/|row| for each."""
    plan = run.plan
    way = plan.levels[0].way
    if not isinstance(way, Sampled):
        return {}
    candidates = read_candidates(run) if way.sets is not None else []
    items: Floats = np.zeros(len(plan.items))
    sets: Floats = np.zeros(sum(len(level) for level in candidates))
    for partition in range(ingested.partitions):
        rows = true_rows(run, partition)
        if not rows.levels.size:
            continue
        items += _shares(rows.offsets, rows.items, way.items.length, items.size)
        if way.sets is not None and candidates:
            offsets, held = held_sets(rows.columns(len(plan.items)), candidates)
            sets += _shares(offsets, held, way.sets.length, sets.size)
    singles = {(item,): float(share) for item, share in enumerate(items / ingested.n_users)}
    named = (tuple(row) for level in candidates for row in level.tolist())
    return singles | dict(zip(named, (sets / ingested.n_users).tolist(), strict=True))


def _shares(offsets: NDArray[np.integer], items: NDArray[np.integer], length: int, size: int) -> Floats:
    sizes = np.diff(offsets)
    weights = np.repeat(length / np.maximum(sizes, length), sizes)
    return np.bincount(items, weights=weights, minlength=size).astype(np.float64)


def true_columns(run: ItemsRun, ingested: Ingested) -> tuple[Columns, ...] | None:
    """Everybody's rows by level, packed; None where they are too many to hold."""
    if not run.evaluation:
        raise ValueError("a release never reads the truth")
    plan = run.plan
    if len(plan.items) * ingested.n_users > 8 * LARGEST:
        return None
    offsets, items, levels = [np.zeros(1, dtype=np.int64)], [], []
    for partition in range(ingested.partitions):
        rows = true_rows(run, partition)
        offsets.append(rows.offsets[1:] + offsets[-1][-1])
        items.append(rows.items)
        levels.append(rows.levels)
    whole = Rows(np.concatenate(levels), np.concatenate(offsets), np.concatenate(items))
    return tuple(
        own.columns(len(plan.items)) for i in range(len(plan.levels)) if (own := whole.of_level(i)).levels.size
    )


def _partitions(run: ItemsRun, ingested: Ingested) -> Iterable[Columns]:
    for partition in range(ingested.partitions):
        rows = true_rows(run, partition)
        if rows.levels.size:
            yield rows.columns(len(run.plan.items))
