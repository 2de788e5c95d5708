"""What a plan lets one expect: standard errors of sets at the minimum support, from the plan alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Counts
from pldp.estimate.distributions import norm
from pldp.questions.items.padding import Overlong
from pldp.questions.items.plan import ItemsPlan
from pldp.questions.items.pooling import Weighing, pool, weigher
from pldp.questions.items.sampledrows import Sampled
from pldp.questions.items.sampling import SetSampling
from pldp.questions.items.transactions import Itemsets


@dataclass(frozen=True)
class Expected:
    """Of sets of one length at the minimum support: a typical one, and the one with the noisiest items."""

    length: int
    standard_error: float
    worst: float
    understatement: float | None
    """The most that declared lengths of rows allow; None where none are declared, and reports alone will tell."""


def predicted_errors(plan: ItemsPlan) -> tuple[Expected, ...]:
    """For `pldp plan`, by length of sets: the typical error, the noisiest, and what truncation takes away."""
    return tuple(
        Expected(
            length,
            typical_error(plan, length),
            set_error(plan, _noisiest(plan, length)[None]),
            understatement(plan, length),
        )
        for length in range(1, plan.length + 1)
    )


def understatement(plan: ItemsPlan, length: int) -> float | None:
    """Of a set at the minimum support, at the upper end of its interval, by the declared lengths alone."""
    channel = plan.levels[0].channel
    if not isinstance(channel, Sampled):
        return 0.0
    if plan.lengths is None:
        return None
    lengths, phase = plan.row_lengths, channel.items
    if length > 1 and channel.sets is not None:
        lengths, phase = plan.held_sets, channel.sets
    end = plan.minimum_support + _reach(plan) * typical_error(plan, length)
    return float(Overlong.of(lengths, phase.length).understated(np.array([end]))[0])


def one_place_error(plan: ItemsPlan, length: int) -> float:
    """The standard error that a single place would have had: what the others cost."""
    sizes = group_sizes(plan, plan.expected_sizes(), length)
    there = np.flatnonzero(sizes > 0)
    if not there.size:
        return float("inf")
    n, support = sizes[there], plan.minimum_support
    asked = [plan.levels[level].channel for level in there]
    phases = [channel.asked[length > 1] for channel in asked if isinstance(channel, Sampled)]
    budgets = [plan.levels[level].budget for level in there]
    alone = [SetSampling.for_budget(one.n_values, 1, budget) for one, budget in zip(phases, budgets, strict=True)]
    noise = np.array([[float(one.noise_variance(np.array([support]))[0]) for one in alone]])
    weights = weigher(plan.weighing, alone, n, support)(np.zeros((1, 1), dtype=np.int32))
    _, error = pool(np.full_like(noise, support), noise, n, weights, plan.expected_users, population=plan.population)
    return float(error[0])


def beyond_error(plan: ItemsPlan, length: int) -> float:
    """What the understatement adds to an interval, as if it were a standard error."""
    return (understatement(plan, length) or 0.0) / (2 * _reach(plan))


def _reach(plan: ItemsPlan) -> float:
    return float(norm.isf((1 - plan.confidence) / 2))


def typical_error(plan: ItemsPlan, length: int) -> float:
    """Of a set of this length whose items have middling noise."""
    return set_error(plan, _middling(plan, length)[None])


def telling_length(plan: ItemsPlan) -> int:
    """The longest sets worth looking for: beyond, a typical one that nobody holds would often pass for frequent.

    A set is kept while estimate + reach · error ≥ minimum; where (reach + 1) errors exceed the minimum, one in six of
    the sets without any support is kept, and candidates are made of noise.
    """
    length = 1
    while length < plan.length and (plan.reach + 1) * typical_error(plan, length + 1) <= plan.minimum_support:
        length += 1
    return length


def group_sizes(plan: ItemsPlan, n: Counts, length: int) -> Counts:
    """How many users of each level are asked about sets of this length."""
    if plan.phases == 1:
        return n
    return n - n // 2 if length == 1 else n // 2


def _by_noise(plan: ItemsPlan) -> NDArray[np.intp]:
    """Items from the least noisy, at the weakest level."""
    return np.argsort(plan.levels[-1].channel.item_noise(plan.minimum_support), kind="stable")


def _middling(plan: ItemsPlan, length: int) -> Itemsets:
    order = _by_noise(plan)
    start = (order.size - length) // 2
    return np.sort(order[start : start + length]).astype(np.int32)


def _noisiest(plan: ItemsPlan, length: int) -> Itemsets:
    order = _by_noise(plan)
    return np.sort(order[order.size - length :]).astype(np.int32)


def widest(plan: ItemsPlan, length: int) -> Itemsets:
    """The set with the noisiest items of this length, as an array of one."""
    return _noisiest(plan, length)[None]


def set_error(plan: ItemsPlan, items: Itemsets, weighing: Weighing | None = None) -> float:
    """One set, by the pooled variance at the minimum support; levels nobody is expected to choose are left out."""
    sizes = group_sizes(plan, plan.expected_sizes(), items.shape[1])
    present = np.flatnonzero(sizes > 0)
    if not present.size:
        return float("inf")
    support = plan.minimum_support
    channels = [plan.levels[level].channel for level in present]
    n = sizes[present]
    weights = weigher(weighing or plan.weighing, channels, n, support)(items)
    noise = np.stack([each.expected_noise(items, support) for each in channels], axis=1)
    _, error = pool(np.full_like(noise, support), noise, n, weights, plan.expected_users, population=plan.population)
    return float(error[0])
