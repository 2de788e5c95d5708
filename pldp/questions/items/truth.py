"""What item sets are without noise, for evaluations alone. Nothing of this leaves the vault's side."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.combine import ItemsResult
from pldp.questions.items.levels import Floats
from pldp.questions.items.mining import Search, mine
from pldp.questions.items.reports import transactions
from pldp.questions.items.sampledrows import Sampled
from pldp.questions.items.transactions import Columns as BitColumns
from pldp.questions.items.transactions import Counts, Itemsets, Transactions
from pldp.questions.question import Partitions

if TYPE_CHECKING:
    from pldp.questions.items.question import Items

LARGEST = 1 << 26
"""Bytes of packed truth that a repeated study may hold."""


@dataclass(frozen=True)
class Truth:
    """True supports: of every item, and of every longer set that is truly frequent or was mined."""

    supports: dict[tuple[int, ...], float]
    expected: dict[tuple[int, ...], float]
    """What estimates are unbiased for: less, where users were sampled and hold more than the padding. It explains an
    estimate, and judges nothing: intervals and gates are held to `supports`."""
    frequent: frozenset[tuple[int, ...]]

    def confidence(self, left: Iterable[int], right: Iterable[int]) -> float | None:
        """Of a rule; None where nobody holds its antecedent."""
        below = self.supports[tuple(sorted(left))]
        return self.supports[tuple(sorted((*left, *right)))] / below if below > 0 else None


def true_supports(plan: Items, people: Partitions, result: ItemsResult) -> Truth:
    """One pass over the partitions for every length."""
    n_users, n_items = result.n_users, len(plan.items)

    def count(sets: Itemsets) -> Counts:
        counts = np.zeros(len(sets), dtype=np.int64)
        for rows in _everybody(plan, people):
            counts += rows.columns(n_items).count(sets)
        return counts

    def shares(sets: Itemsets, counts: Counts) -> dict[tuple[int, ...], float]:
        return {tuple(row): held / n_users for row, held in zip(sets.tolist(), counts.tolist(), strict=True)}

    exact = ItemChannels.symmetric((SCALE,) * n_items)
    mined = mine(count, n_users, exact, Search(plan.minimum_support, plan.length, reach=0))
    supports: dict[tuple[int, ...], float] = {}
    for sets in mined:
        supports |= shares(sets.items, sets.count)
    frequent = frozenset(supports)
    for asked in (np.arange(n_items, dtype=np.int32)[:, None], *(sets.items for sets in result.mined.longer)):
        supports |= shares(asked, count(asked))
    return Truth(supports, supports | _understated(plan, people, result), frequent)


def _understated(plan: Items, people: Partitions, result: ItemsResult) -> dict[tuple[int, ...], float]:
    """Of sampled items and sets: a row with more than ℓ of them counts as ℓ/|row| for each."""
    channel, candidates = plan.levels[0].channel, result.mined.candidates
    if not isinstance(channel, Sampled):
        return {}
    items: Floats = np.zeros(len(plan.items))
    sets: Floats = np.zeros(sum(len(of_length) for of_length in candidates))
    for rows in _everybody(plan, people):
        items += _seen(rows, channel.items.length, items.size)
        if channel.sets is not None and candidates:
            sets += _seen(channel.held(rows, candidates), channel.sets.length, sets.size)
    singles = {(item,): float(share) for item, share in enumerate(items / result.n_users)}
    names = (tuple(row) for of_length in candidates for row in of_length.tolist())
    return singles | dict(zip(names, (sets / result.n_users).tolist(), strict=True))


def _seen(rows: Transactions, length: int, size: int) -> Floats:
    sizes = np.diff(rows.offsets)
    weights = np.repeat(length / np.maximum(sizes, length), sizes)
    return np.bincount(rows.items, weights=weights, minlength=size).astype(np.float64)


def true_columns(plan: Items, people: Partitions, n_users: int) -> tuple[BitColumns, ...] | None:
    """Everybody's rows by level, packed, of levels that somebody chose; None where they are too many to hold."""
    if len(plan.items) * n_users > 8 * LARGEST:
        return None
    bounds: list[NDArray[np.integer]] = [np.zeros(1, dtype=np.int64)]
    items, levels, held = [], [], 0
    for columns in people([plan.choice_field, plan.field]):
        rows = transactions(columns, plan.field)
        bounds.append(rows.offsets[1:] + held)
        items.append(rows.items)
        levels.append(columns[plan.choice_field])
        held += rows.items.size
    everybody, chosen = Transactions(np.concatenate(bounds), np.concatenate(items)), np.concatenate(levels)
    return tuple(
        everybody.of_users(chosen == level).columns(len(plan.items))
        for level in range(len(plan.levels))
        if (chosen == level).any()
    )


def _everybody(plan: Items, people: Partitions) -> Iterator[Transactions]:
    for columns in people([plan.field]):
        rows = transactions(columns, plan.field)
        if rows.n_users:
            yield rows
