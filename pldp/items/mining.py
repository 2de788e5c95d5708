"""Frequent item sets from reconstructed supports, level by level, with their errors.

All that is needed of the reports is how many hold all items of a set, a whole number that adds up over partitions. A
set's support is a sum over the 2^m patterns of its items, whose counts follow from those of its subsets; Apriori has
counted these before, so a set costs one count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from pldp.items.levels import Floats
from pldp.items.reconstruct import patterns
from pldp.items.transactions import Counts, Itemsets

MOST_LENGTH = 12
"""Beyond it 2^m patterns cost more than they tell: errors grow by a factor with every item."""
_CHUNK_CELLS = 1 << 20


class Responses(Protocol):
    """A channel of item sets: what a report adds to the estimate, by its pattern on the items."""

    @property
    def n_items(self) -> int: ...

    def responses(self, items: NDArray[np.integer], within: int | None = None) -> Floats: ...


@dataclass(frozen=True)
class Search:
    """What is looked for. A set is extended while it may be frequent: estimate + reach · error ≥ minimum.

    True supports never rise with the set, estimates may: pruning at the estimate itself would lose sets whose subset
    was underestimated.
    """

    minimum: float
    length: int
    reach: float = 2.0
    confidence: float = 0.95
    population: bool = False
    most_candidates: int = 2_000_000

    def __post_init__(self) -> None:
        if not 0 < self.minimum <= 1:
            raise ValueError(f"itemsets.minimum_support must lie in (0, 1], a share of users (got {self.minimum:g})")
        if not 1 <= self.length <= MOST_LENGTH:
            raise ValueError(f"itemsets.length must lie in 1 … {MOST_LENGTH} (got {self.length})")
        if not 0 <= self.reach < np.inf:
            raise ValueError(f"itemsets.reach must be ≥ 0 and finite, in standard errors (got {self.reach:g})")
        if not 0 < self.confidence < 1:
            raise ValueError(f"itemsets.confidence must lie strictly between 0 and 1 (got {self.confidence:g})")


@dataclass(frozen=True, eq=False)
class Found:
    """Sets of one length that may be frequent, in rising order. Supports are unbiased shares; may be negative."""

    items: Itemsets
    count: Counts
    """Reports that hold all items: what longer sets need."""
    support: Floats
    standard_error: Floats
    ci_low: Floats
    ci_high: Floats
    probability_frequent: Floats
    """Chance that the true support reaches the minimum, by the normal law about the estimate."""

    def frequent(self, at_least: float = 0.5) -> NDArray[np.bool_]:
        """Those more likely frequent than not, by default: the estimate itself reaches the minimum."""
        return self.probability_frequent >= at_least


def mine(count: Callable[[Itemsets], Counts], n_rows: int, channel: Responses, search: Search) -> tuple[Found, ...]:
    """One `Found` a length. `count` is `Columns.count`, or its sum over partitions."""
    if n_rows < 1:
        raise ValueError("there are no reports to mine")
    index = Index(n_rows, channel.n_items)
    found: list[Found] = []
    candidates = np.arange(channel.n_items, dtype=np.int32)[:, None]
    while len(candidates):
        whole = estimate(candidates, count(candidates), index, channel, search)
        kept = whole.support + search.reach * whole.standard_error >= search.minimum
        level = Found(**{name: value[kept] for name, value in vars(whole).items()})
        if not kept.any():
            break
        found.append(level)
        index.add(level.items, level.count)
        candidates = index.extend(search.most_candidates) if len(found) < search.length else candidates[:0]
    return tuple(found)


def estimate(items: Itemsets, counts: Counts, index: Index, channel: Responses, search: Search) -> Found:
    """Supports of sets all of whose proper subsets are in the index."""
    support, error = (np.empty(len(items)) for _ in range(2))
    size = max(1, _CHUNK_CELLS >> items.shape[1])
    for start in range(0, len(items), size):
        part = slice(start, start + size)
        shares = patterns(index.supersets(items[part], counts[part])) / index.n_rows
        response = channel.responses(items[part])
        support[part] = (shares * response).sum(axis=1)
        square = (shares * response**2).sum(axis=1)
        taken = support[part] ** 2 if search.population else support[part]
        error[part] = np.sqrt(np.maximum(square - taken, 0) / index.n_rows)
    return judge(items, counts, support, error, search)


def judge(items: Itemsets, counts: Counts, support: Floats, error: Floats, search: Search) -> Found:
    """Interval and probability of being frequent, by the normal law about each estimate."""
    reach = float(norm.isf((1 - search.confidence) / 2)) * error
    away = support - search.minimum
    # Without noise the answer is certain.
    certain = np.where(away >= 0, 1.0, 0.0)
    scaled = np.divide(away, error, out=np.zeros_like(away), where=error > 0)
    probability = np.where(error > 0, norm.cdf(scaled), certain)
    return Found(items, counts, support, error, support - reach, support + reach, probability)


class Index:
    """Counts of kept sets, found again by the number of the set without its last item and that last item."""

    def __init__(self, n_rows: int, n_items: int) -> None:
        self.n_rows = n_rows
        self._width = n_items
        self._items: list[Itemsets] = [np.empty((1, 0), dtype=np.int32)]
        self._keys: list[NDArray[np.int64]] = [np.zeros(1, dtype=np.int64)]
        self._counts: list[Counts] = [np.array([n_rows], dtype=np.int64)]

    def add(self, items: Itemsets, counts: Counts) -> None:
        """The next length, in rising order."""
        prefix, _ = self._find(items[:, :-1])
        self._items.append(items)
        self._keys.append(prefix * self._width + items[:, -1])
        self._counts.append(counts)

    def supersets(self, items: Itemsets, counts: Counts) -> Counts:
        """How many rows have all items of each subset, (set, 2^m); `counts` are those of the whole sets."""
        sets, m = items.shape
        table = np.empty((sets, 1 << m), dtype=np.int64)
        for subset in range((1 << m) - 1):
            chosen = [place for place in range(m) if subset >> place & 1]
            where, _ = self._find(items[:, chosen])
            table[:, subset] = self._counts[len(chosen)][where]
        table[:, -1] = counts
        # The last axis of a reshaped table is the lowest bit, so `patterns` may treat the axes in any order.
        return table

    def extend(self, most: int) -> Itemsets:
        """Apriori: sets one longer, all of whose subsets were kept. Two kept sets that differ in the last make one.

        ValueError before there are more than `most`, so that memory stays bounded.
        """
        last = self._items[-1]
        m = last.shape[1]
        if m == 0:
            return np.arange(self._width, dtype=np.int32)[:, None]
        fresh = np.concatenate([[True], (last[1:, :-1] != last[:-1, :-1]).any(axis=1)])
        edges = np.concatenate([np.flatnonzero(fresh), [len(last)]])
        ends = np.repeat(edges[1:], np.diff(edges))
        partners = ends - np.arange(len(last)) - 1
        if (total := int(partners.sum())) > most:
            raise ValueError(
                f"itemsets: {total} candidates of length {m + 1}, more than {most}; raise the minimum support or use a "
                "protocol that samples"
            )
        left = np.repeat(np.arange(len(last)), partners)
        offset = np.arange(left.size) - np.repeat(np.cumsum(partners) - partners, partners)
        candidates = np.concatenate([last[left], last[left + 1 + offset, -1:]], axis=1)
        alive = np.ones(len(candidates), dtype=np.bool_)
        for place in range(m - 1):  # without one of the last two it is one of the two sets
            _, known = self._find(np.delete(candidates, place, axis=1))
            alive &= known
        return candidates[alive]

    def _find(self, items: Itemsets) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Numbers of these sets among the kept ones of their length, and whether each is there."""
        where = np.zeros(len(items), dtype=np.intp)
        known = np.ones(len(items), dtype=np.bool_)
        for length in range(1, items.shape[1] + 1):
            keys = self._keys[length]
            wanted = where * self._width + items[:, length - 1]
            where = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
            known &= keys[where] == wanted
        return where, known


def frequent_sets(found: tuple[Found, ...], at_least: float = 0.5) -> set[tuple[int, ...]]:
    """Sets more likely frequent than not, of all lengths, each once and with all its subsets counted before it."""
    return {tuple(row) for level in found for row in level.items[level.frequent(at_least)].tolist()}
