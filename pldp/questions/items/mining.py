"""Frequent item sets from reconstructed supports, level by level, with their errors.

All that is needed of the reports is how many hold all items of a set, a whole number that adds up over partitions. A
set's support is a sum over the 2^m patterns of its items, whose counts follow from those of its subsets; Apriori has
counted these before, so a set costs one count.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pldp.estimate.distributions import norm
from pldp.questions.items.chance import frequent_chance
from pldp.questions.items.index import Index
from pldp.questions.items.levels import Floats
from pldp.questions.items.pooling import Weigh, alone, pool
from pldp.questions.items.reconstruct import patterns
from pldp.questions.items.transactions import Counts, Itemsets

MOST_LENGTH = 12
"""Beyond it 2^m patterns cost more than they tell: errors grow by a factor with every item."""
_CHUNK_CELLS = 1 << 20


class Responses(Protocol):
    """A channel of item sets: what a report adds to the estimate, by its pattern on the items."""

    @property
    def n_items(self) -> int:
        """How many items are declared."""
        ...

    def responses(self, items: NDArray[np.integer], within: int | None = None) -> Floats:
        """What a report with each pattern on the items adds to each set's support, (set, pattern); `within` names the
        bits of the items that are kept."""
        ...


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
    stop: bool = False
    """Whether more candidates than these end the search at the length before, instead of an error."""
    gamma: float = 1.0
    """How many times likelier, or less likely, those who hold something may be to choose a level."""

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
class EstimatedSets:
    """Sets of one length that may be frequent, in rising order. Supports are unbiased shares; may be negative."""

    items: Itemsets
    count: Counts
    """Reports that hold all items: what longer sets need. A column a group where there are groups."""
    support: Floats
    standard_error: Floats
    ci_low: Floats
    ci_high: Floats
    probability_frequent: Floats
    """Chance that the true support reaches the minimum; at least so much where supports are understated."""
    reaching: NDArray[np.bool_]
    """Whether the estimate itself reaches the minimum."""
    understatement: Floats
    """The most that supports may be understated by, which `ci_high` has in it."""
    miss: Floats
    """How often such an interval fails, of all sets that were looked at."""

    def frequent(self) -> NDArray[np.bool_]:
        return self.reaching

    def of(self, chosen: NDArray[np.bool_]) -> EstimatedSets:
        return EstimatedSets(**{name: value[chosen] for name, value in vars(self).items()})

    def selected(self, kept: NDArray[np.bool_]) -> EstimatedSets:
        """Those that may be frequent, R of m. Noise lifted some of them here: with intervals that fail αR/m of the time
        at most α of those that are left fail on average (false coverage rate, Benjamini and Yekutieli 2005)."""
        sets = self.of(kept)
        miss = sets.miss * (kept.sum() / kept.size)
        reach = norm.isf(miss / 2) * sets.standard_error
        return replace(sets, miss=miss, ci_low=sets.support - reach, ci_high=sets.support + reach)


@dataclass(frozen=True)
class Ends:
    """Of intervals of what is seen, and the most that it understates."""

    low: Floats
    high: Floats
    understatement: Floats


@dataclass(frozen=True)
class Group:
    """Users who report through one channel."""

    n_rows: int
    channel: Responses


def mine(
    count: Callable[[Itemsets], Counts], n_rows: int, channel: Responses, search: Search
) -> tuple[EstimatedSets, ...]:
    """One `EstimatedSets` per length. `count` is `Columns.count`, or its sum over partitions."""
    mined = mine_groups(lambda sets: count(sets)[:, None], (Group(n_rows, channel),), search)
    return tuple(replace(sets, count=sets.count[:, 0]) for sets in mined)


def mine_groups(
    count: Callable[[Itemsets], Counts], groups: Sequence[Group], search: Search, weigh: Weigh = alone
) -> tuple[EstimatedSets, ...]:
    """The same where users have channels by their groups; `count` gives (set, group), and no group is empty."""
    if not groups or min(group.n_rows for group in groups) < 1:
        raise ValueError("there are no reports to mine")
    indexes = [Index(group.n_rows, group.channel.n_items) for group in groups]
    mined: list[EstimatedSets] = []
    candidates = indexes[0].extend(search.most_candidates)
    while len(candidates):
        whole = estimate_groups(candidates, count(candidates), indexes, groups, search, weigh)
        kept = whole.support + search.reach * whole.standard_error >= search.minimum
        sets = whole.of(kept) if not mined else whole.selected(kept)
        if not kept.any():
            break
        mined.append(sets)
        for index, counts in zip(indexes, sets.count.T, strict=True):
            index.add(sets.items, counts)
        candidates = candidates[:0]
        if len(mined) < search.length and not (search.stop and indexes[0].n_partners > search.most_candidates):
            candidates = indexes[0].extend(search.most_candidates)
    return tuple(mined)


def estimate_groups(
    items: Itemsets, counts: Counts, indexes: Sequence[Index], groups: Sequence[Group], search: Search, weigh: Weigh
) -> EstimatedSets:
    """Supports of sets (rows of item numbers) and their errors, from how many reports of each group hold every part of
    a set (`counts`: set, group); groups are weighted by `weigh`, and `search` says when a set is frequent."""
    support, error = (np.empty(len(items)) for _ in range(2))
    n = np.array([group.n_rows for group in groups])
    size = max(1, _CHUNK_CELLS >> items.shape[1])
    for start in range(0, len(items), size):
        part = slice(start, start + size)
        by_group = [
            moments(items[part], counts[part, g], index, group.channel)
            for g, (index, group) in enumerate(zip(indexes, groups, strict=True))
        ]
        means, noises = (np.stack(column, axis=1) for column in zip(*by_group, strict=True))
        weights = weigh(items[part])
        support[part], error[part] = pool(means, noises, n, weights, int(n.sum()), population=search.population)
    return judge(items, counts, support, error, search)


def moments(items: Itemsets, counts: Counts, index: Index, channel: Responses) -> tuple[Floats, Floats]:
    """Each set's support in one group, and the noise of one report: for fixed users E Z² − support."""
    shares = patterns(index.supersets(items, counts)) / index.n_rows
    response = channel.responses(items)
    support = (shares * response).sum(axis=1)
    return support, (shares * response**2).sum(axis=1) - support


def judge(
    items: Itemsets, counts: Counts, support: Floats, error: Floats, search: Search, ends: Ends | None = None
) -> EstimatedSets:
    """Interval and probability of being frequent; the interval by the normal law about each estimate unless given."""
    if ends is None:
        reach = float(norm.isf((1 - search.confidence) / 2)) * error
        ends = Ends(support - reach, support + reach, np.zeros_like(support))
    probability = frequent_chance(support, error, search.minimum)
    high = ends.high + ends.understatement
    reaching = support >= search.minimum
    miss = np.full_like(support, 1 - search.confidence)
    return EstimatedSets(
        items, counts, support, error, ends.low, high, probability, reaching, ends.understatement, miss
    )


def frequent_sets(mined: tuple[EstimatedSets, ...]) -> set[tuple[int, ...]]:
    """Sets whose estimates reach the minimum, of all lengths, each once and with all its subsets counted before it."""
    return {tuple(row) for sets in mined for row in sets.items[sets.frequent()].tolist()}
