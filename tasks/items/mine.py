"""Mine: support to item sets and rules. Counting is handed in, since it goes over all partitions again."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pldp.questions.items.index import Index
from pldp.questions.items.mining import Found, Group, estimate_groups, judge, mine_groups
from pldp.questions.items.plan import Bits, ItemsPlan, OneValue, Sampled
from pldp.questions.items.pooling import Weigh, alone, pool, weigher
from pldp.questions.items.predict import LevelNoise
from pldp.questions.items.rules import Rules, rules_of_groups
from pldp.questions.items.sampled import Half, SampledRule, judge_half, likely, sampled_rules
from pldp.questions.items.transactions import Counts, Itemsets
from pldp.tasks.home import commit
from pldp.tasks.items.count import Support
from pldp.tasks.items.perturb import read_candidates
from pldp.tasks.items.run import ItemsRun
from pldp.tasks.stage import stage

Count = Callable[[Itemsets], Counts]
"""How many reports hold all items of each set, (set, level)."""
MOST_RULES = 1_000_000


@dataclass(frozen=True, eq=False)
class Mined:
    """Every item, the longer sets that may be frequent, and the rules between them."""

    singles: Found
    longer: tuple[Found, ...]
    rules: tuple[Rules, ...] | tuple[SampledRule, ...]
    searched: int
    """The longest length that was looked at."""

    @property
    def found(self) -> tuple[Found, ...]:
        return self.singles, *self.longer


@stage(retries=2)
def mine_values(run: ItemsRun, support: Support) -> Mined:
    """Single values by the channels' inverses; levels pooled."""
    plan = run.plan
    there = np.flatnonzero(support.n > 0)
    n = support.n[there]
    means, noises = [], []
    for level, counts, size in zip((plan.levels[i] for i in there), support.counts[there], n, strict=True):
        way = level.way
        if not isinstance(way, OneValue):
            raise ValueError("the plan has no values")
        shares, inverse = counts / size, way.channel.inverse
        means.append(inverse @ shares)
        noises.append(np.square(inverse) @ shares - means[-1])
    items = np.arange(len(plan.items), dtype=np.int32)[:, None]
    weights = _weigh(plan, there, n)(items)
    share, error = pool(
        np.stack(means, axis=1), np.stack(noises, axis=1), n, weights, int(n.sum()), population=plan.population
    )
    return Mined(judge(items, support.counts[there].T, share, error, plan.search), (), (), 1)


def mine_bits(run: ItemsRun, support: Support, count: Count) -> Mined:
    """Apriori on pooled reconstructions."""
    plan = run.plan
    there = np.flatnonzero(support.n > 0)
    groups, n = [], support.n[there]
    for number in there:
        way = plan.levels[number].way
        if not isinstance(way, Bits):
            raise ValueError("the plan has no bits")
        groups.append(Group(int(support.n[number]), way.channel))
    weigh = _weigh(plan, there, n)
    items = np.arange(len(plan.items), dtype=np.int32)[:, None]
    indexes = [Index(group.n_rows, len(plan.items)) for group in groups]
    singles = estimate_groups(items, support.counts[there].T, indexes, groups, plan.search, weigh)
    asked = 1

    def counted(sets: Itemsets) -> Counts:
        nonlocal asked
        asked = sets.shape[1]
        return support.counts.T[sets[:, 0]][:, there] if asked == 1 else count(sets)[:, there]

    found = mine_groups(counted, groups, plan.search, weigh)
    few, total = [], 0
    for level in found:  # the longest sets make most rules
        total += int(level.frequent().sum()) << level.items.shape[1]
        if total <= MOST_RULES:
            few.append(level)
    return Mined(singles, found[1:], rules_of_groups(tuple(few), groups, plan.search, weigh), asked)


def choose_candidates(run: ItemsRun, support: Support) -> None:
    """What the second half is asked about, by the first half's reports; committed once, before anybody is asked."""
    if run.candidates.exists():
        return
    plan = run.plan
    singles = _half(plan, support, 0)
    items = np.arange(len(plan.items), dtype=np.int32)[:, None]
    n_users = int(support.n.sum())
    (found,) = judge_half(singles, [items], n_users, plan.search, plan.combination)
    chosen = likely(found, plan.candidates, plan.search)
    commit(run.candidates, json.dumps([level.tolist() for level in chosen]).encode(), mode=0o644)


@stage(retries=2)
def mine_sampled(run: ItemsRun, supports: tuple[Support, ...]) -> Mined:
    """Items from the first half, candidate sets from the second."""
    plan = run.plan
    n_users = sum(int(support.n.sum()) for support in supports)
    items = np.arange(len(plan.items), dtype=np.int32)[:, None]
    (singles,) = judge_half(_half(plan, supports[0], 0), [items], n_users, plan.search, plan.combination)
    if len(supports) == 1:
        return Mined(singles, (), (), 1)
    sets, asked = _half(plan, supports[1], 1), read_candidates(run)
    found = judge_half(sets, asked, n_users, plan.search, plan.combination) if asked else ()
    rules = sampled_rules((singles, *found), sets, n_users, plan.search, plan.combination)
    longest = max((level.items.shape[1] for level in found), default=1)
    return Mined(singles, tuple(_alive(level, plan) for level in found), rules, longest)


def _alive(level: Found, plan: ItemsPlan) -> Found:
    """Those that may be frequent, as mining keeps them."""
    kept = level.support + plan.reach * level.standard_error >= plan.minimum_support
    return Found(**{name: value[kept] for name, value in vars(level).items()})


def _half(plan: ItemsPlan, support: Support, phase: int) -> Half:
    ways = [level.way for level in plan.levels]
    samplings = tuple(way.phases[phase].sampling for way in ways if isinstance(way, Sampled))
    return Half(samplings, support.n, support.counts).chosen()


def _weigh(plan: ItemsPlan, there: Counts, n: Counts) -> Weigh:
    if n.size == 1:
        return alone
    noises = [LevelNoise(plan, int(level)) for level in there]
    return weigher(plan.combination, noises, n, plan.minimum_support)
