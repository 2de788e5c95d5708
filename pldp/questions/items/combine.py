"""From support to item sets and the rules between them. Sets of bits are counted by going over the reports again."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pldp.questions.items.ends import single_ends
from pldp.questions.items.index import Index
from pldp.questions.items.levels import Floats
from pldp.questions.items.mining import EstimatedSets, Group, estimate_groups, judge, mine_groups
from pldp.questions.items.padding import Lengths, Overlong, held_sets_at_most
from pldp.questions.items.pooling import Weigh, alone, pool, weigher
from pldp.questions.items.reports import Support, read_candidates, support_of, write_candidates
from pldp.questions.items.rowchannels import Bits, Candidates, OneValue
from pldp.questions.items.rules import Rules, rules_of_groups
from pldp.questions.items.sampled import Half, SampledRule, judge_half, likely, longer_rows, sampled_rules
from pldp.questions.items.sampledrows import Sampled
from pldp.questions.items.transactions import Counts, Itemsets
from pldp.questions.question import ANSWER, Reports, Tallies

if TYPE_CHECKING:
    from pldp.questions.items.question import Items

CountSets = Callable[[Itemsets], Counts]
"""How many reports hold all items of each set, (set, level)."""
CHUNK_COUNTS = 1 << 20
"""Counts that one pass over a file of reports may bring back; of more sets, some are asked about at a time."""
MOST_RULES = 1_000_000


@dataclass(frozen=True, eq=False)
class Mined:
    """Every item, the longer sets that may be frequent, and the rules between them."""

    singles: EstimatedSets
    longer: tuple[EstimatedSets, ...]
    rules: tuple[Rules, ...] | tuple[SampledRule, ...]
    searched: int
    """The longest length that was looked at."""
    candidates: Candidates = ()
    """What the second half was asked about."""

    @property
    def by_length(self) -> tuple[EstimatedSets, ...]:
        return self.singles, *self.longer


@dataclass(frozen=True, eq=False)
class ItemsResult:
    """Everything about the items that comes before the gates."""

    supports: tuple[Support, ...]
    """One per phase."""
    mined: Mined

    @property
    def n(self) -> Counts:
        """How many people chose each level."""
        return np.sum([support.n for support in self.supports], axis=0)

    @property
    def n_users(self) -> int:
        return int(self.n.sum())


def combine(plan: Items, method: str, tallies: Tallies, reports: Reports) -> Mined:
    """Supports and frequent sets, as the kind of channel allows."""
    channel = plan.levels[0].channel
    if isinstance(channel, Sampled):
        halves = tuple(support_of(plan, tallies, phase) for phase in range(plan.phases))
        return mine_sampled(plan, halves, read_candidates(reports.adapted) if plan.phases > 1 else ())
    support = support_of(plan, tallies, 0)
    if isinstance(channel, OneValue):
        return mine_values(plan, support)
    return mine_bits(plan, support, lambda sets: _ask(plan, reports, sets))


def conclude(plan: Items, tallies: Tallies, estimates: Mapping[str, Any]) -> ItemsResult:
    """The mined sets beside the tallies that they came from."""
    return ItemsResult(tuple(support_of(plan, tallies, phase) for phase in range(plan.phases)), estimates[ANSWER])


def _ask(plan: Items, reports: Reports, sets: Itemsets) -> Counts:
    size = max(1, CHUNK_COUNTS // len(plan.levels))
    parts = [reports.ask("count_sets", sets[first : first + size]) for first in range(0, len(sets), size)]
    return np.concatenate(parts)


def mine_values(plan: Items, support: Support) -> Mined:
    """Single values by the channels' inverses; levels pooled."""
    chosen = np.flatnonzero(support.n > 0)
    n = support.n[chosen]
    means, noises = [], []
    for level, size in zip(chosen, n, strict=True):
        channel = plan.levels[level].channel
        if not isinstance(channel, OneValue):
            raise ValueError("the plan has no values")
        shares, inverse = support.counts[level] / size, channel.kernel.inverse
        means.append(inverse @ shares)
        noises.append(np.square(inverse) @ shares - means[-1])
    items = _singles(plan)
    weights = _weigh(plan, chosen, n)(items)
    share, error = pool(
        np.stack(means, axis=1), np.stack(noises, axis=1), n, weights, int(n.sum()), population=plan.population
    )
    singles = judge(items, support.counts[chosen].T, share, error, plan.search)
    return Mined(_tested(plan, singles, chosen, n, weights), (), (), 1)


def _tested(plan: Items, singles: EstimatedSets, chosen: NDArray[np.intp], n: Counts, weights: Floats) -> EstimatedSets:
    """Every item by itself with the interval of a test of what it may be."""
    channels = [plan.levels[level].channel for level in chosen]
    known = [channel for channel in channels if isinstance(channel, Bits | OneValue)]
    search = plan.search
    low, high = single_ends(singles.support, known, n, weights, search.confidence, plan.population, search.gamma)
    return replace(singles, ci_low=low, ci_high=high)


def mine_bits(plan: Items, support: Support, count: CountSets) -> Mined:
    """Apriori on pooled reconstructions."""
    chosen = np.flatnonzero(support.n > 0)
    groups, n = [], support.n[chosen]
    for level, size in zip(chosen, n, strict=True):
        channel = plan.levels[level].channel
        if not isinstance(channel, Bits):
            raise ValueError("the plan has no bits")
        groups.append(Group(int(size), channel.kernel))
    weigh = _weigh(plan, chosen, n)
    indexes = [Index(group.n_rows, len(plan.items)) for group in groups]
    singles = estimate_groups(_singles(plan), support.counts[chosen].T, indexes, groups, plan.search, weigh)
    singles = _tested(plan, singles, chosen, n, weigh(_singles(plan)))
    searched = 1

    def counted(sets: Itemsets) -> Counts:
        nonlocal searched
        searched = sets.shape[1]
        return support.counts.T[sets[:, 0]][:, chosen] if searched == 1 else count(sets)[:, chosen]

    by_length = mine_groups(counted, groups, plan.search, weigh)
    few, total = [], 0
    for sets in by_length:  # the longest sets make most rules
        total += int(sets.frequent().sum()) << sets.items.shape[1]
        if total <= MOST_RULES:
            few.append(sets)
    return Mined(singles, by_length[1:], rules_of_groups(tuple(few), groups, plan.search, weigh), searched)


def choose_candidates(plan: Items, tallies: Tallies) -> bytes:
    """What the second half is asked about, by the first half's reports."""
    support = support_of(plan, tallies, 0)
    half, n_users = _half(plan, support, 0), int(support.n.sum())
    (singles,) = judge_half(half, [_singles(plan)], n_users, plan.search, plan.weighing, plan.row_lengths)
    return write_candidates(likely(singles, plan.candidates, plan.search))


def mine_sampled(plan: Items, halves: tuple[Support, ...], candidates: Candidates) -> Mined:
    """Items from the first half, candidate sets from the second."""
    n_users = sum(int(support.n.sum()) for support in halves)
    first = _half(plan, halves[0], 0)
    (singles,) = judge_half(first, [_singles(plan)], n_users, plan.search, plan.weighing, plan.row_lengths)
    if len(halves) == 1:
        return Mined(singles, (), (), 1)
    second = _half(plan, halves[1], 1)
    longer: tuple[EstimatedSets, ...] = ()
    if candidates:
        longer = judge_half(second, candidates, n_users, plan.search, plan.weighing, _held(plan, candidates))
    rules = sampled_rules((singles, *longer), second, n_users, plan.search, plan.weighing)
    longest = max((sets.items.shape[1] for sets in longer), default=1)
    # All that was asked about: leaving out what noise lowered would leave in what it lifted.
    return Mined(singles, longer, rules, longest, candidates)


def overlong(plan: Items, result: ItemsResult, length: int) -> Overlong | None:
    """What longer rows may hide of sets of this length; None where rows are reported whole."""
    if not isinstance(plan.levels[0].channel, Sampled):
        return None
    phase = 0 if length == 1 else plan.phases - 1
    half = _half(plan, result.supports[phase], phase)
    longer = longer_rows(half, half.weights(plan.weighing, plan.minimum_support), result.n_users)
    lengths = _held(plan, result.mined.candidates) if phase else plan.row_lengths
    return Overlong.of(lengths, half.samplings[0].length, longer)


def _held(plan: Items, candidates: Candidates) -> Lengths:
    """How many of the candidate sets rows may hold."""
    return held_sets_at_most(plan.row_lengths, [(sets.shape[1], len(sets)) for sets in candidates])


def _half(plan: Items, support: Support, phase: int) -> Half:
    channels = [level.channel for level in plan.levels]
    samplings = tuple(channel.asked[phase].sampling for channel in channels if isinstance(channel, Sampled))
    return Half(samplings, support.n, support.counts).chosen()


def _singles(plan: Items) -> Itemsets:
    return np.arange(len(plan.items), dtype=np.int32)[:, None]


def _weigh(plan: Items, chosen: NDArray[np.intp], n: Counts) -> Weigh:
    if n.size == 1:
        return alone
    return weigher(plan.weighing, [plan.levels[level].channel for level in chosen], n, plan.minimum_support)
