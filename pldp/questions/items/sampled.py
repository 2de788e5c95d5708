"""Supports and rules where users were sampled: items from one half of them, candidate sets from the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pldp.channels.protocol import Counts
from pldp.estimate.distributions import norm
from pldp.questions.items.levels import Floats
from pldp.questions.items.mining import EstimatedSets, Search, judge
from pldp.questions.items.pooling import pool, weigher
from pldp.questions.items.rules import RELIABLE
from pldp.questions.items.sampling import SetSampling, likely_items, likely_sets
from pldp.questions.items.transactions import Itemsets


@dataclass(frozen=True, eq=False)
class Half:
    """What one phase counted: by level the protocol, the users, and the raw support of items or sets, then dummies."""

    samplings: tuple[SetSampling, ...]
    n: Counts
    counts: Counts
    """(level, value)."""

    def chosen(self) -> Half:
        """Without levels that nobody chose."""
        there = np.flatnonzero(self.n > 0)
        return Half(tuple(self.samplings[level] for level in there), self.n[there], self.counts[there])

    def weights(self, method: str, minimum: float) -> Floats:
        """By level; the same for all sets, which are all alike."""
        one = np.zeros((1, 1), dtype=np.int32)
        return weigher(method, self.samplings, self.n, minimum)(one)[0]


def judge_half(
    half: Half, sets: Sequence[Itemsets], n_users: int, search: Search, method: str
) -> tuple[EstimatedSets, ...]:
    """Every set that was asked about, by length. Supports are those of all users of the release."""
    total = sum(len(level) for level in sets)
    support, noise = np.empty((total, half.n.size)), np.empty((total, half.n.size))
    for column, (sampling, counts, n) in enumerate(zip(half.samplings, half.counts, half.n, strict=True)):
        estimated, _ = sampling.estimate(counts, int(n))
        support[:, column] = estimated[:total]
        noise[:, column] = sampling.noise_variance(np.clip(estimated[:total], 0, 1))
    weights = np.tile(half.weights(method, search.minimum), (total, 1))
    together, error = pool(support, noise, half.n, weights, n_users, population=search.population)
    raw = half.counts[:, :total].T
    out, start = [], 0
    for level in sets:
        part = slice(start, start + len(level))
        out.append(judge(level, raw[part], together[part], error[part], search))
        start += len(level)
    return tuple(out)


def likely(singles: EstimatedSets, most: int, search: Search) -> list[Itemsets]:
    """Candidate sets for the second half: of the items that may be frequent, the sets guessed to be most frequent."""
    if search.length < 2:
        return []
    items = likely_items(singles.support, singles.standard_error, most, search)
    return likely_sets(items, singles.support, most, search.length) if items.size > 1 else []


@dataclass(frozen=True)
class SampledRule:
    antecedent: tuple[int, ...]
    consequent: tuple[int, ...]
    support: float
    confidence: float
    standard_error: float
    ci_low: float
    ci_high: float


def sampled_rules(
    mined: Sequence[EstimatedSets], sets: Half | None, n_users: int, search: Search, method: str
) -> tuple[SampledRule, ...]:
    """Every split of every frequent set whose antecedent was asked about too and is clear of zero.

    Var(conf) = [Var U + conf² Var A − 2 conf Cov(U, A)] / A² to first order. Items and sets come from different users,
    whose supports are tied only by being parts of the same n: Cov = −S_UA / n.
    """
    if sets is None:
        return ()
    known = {
        tuple(row): (float(support), float(error))
        for level in mined
        for row, support, error in zip(level.items.tolist(), level.support, level.standard_error, strict=True)
    }
    weights, reach = sets.weights(method, search.minimum), float(norm.isf((1 - search.confidence) / 2))
    out = []
    for level in mined:
        for row in level.items[level.frequent()].tolist() if level.items.shape[1] > 1 else ():
            whole, (support, error) = tuple(row), known[tuple(row)]
            for mask in range(1, (1 << len(row)) - 1):
                left = tuple(item for place, item in enumerate(row) if mask >> place & 1)
                below, below_error = known.get(left, (0.0, 0.0))
                if below <= RELIABLE * below_error or below <= 0:
                    continue
                tie = _covariance(sets, weights, support, below, n_users, together=len(left) > 1)
                confidence = support / below
                variance = error**2 + confidence**2 * below_error**2 - 2 * confidence * tie
                deviation = float(np.sqrt(max(variance, 0))) / below
                out.append(
                    SampledRule(
                        left,
                        tuple(item for item in whole if item not in left),
                        support,
                        confidence,
                        deviation,
                        confidence - reach * deviation,
                        confidence + reach * deviation,
                    )
                )
    return tuple(out)


def _covariance(half: Half, weights: Floats, whole: float, left: float, n_users: int, *, together: bool) -> float:
    """Of the estimates of a set and of a subset of it; `together` where the same users were asked about both."""
    whole, left = min(max(whole, 0.0), 1.0), min(max(left, whole, 0.0), 1.0)
    between = whole * (1 - left) * n_users / max(n_users - 1, 1)
    if not together:
        return -between / n_users
    noise = np.array([pair_noise(sampling, whole, left) for sampling in half.samplings])
    return float((weights**2 * noise / half.n).sum() + between * ((weights**2 / half.n).sum() - 1 / n_users))


def pair_noise(sampling: SetSampling, whole: float, left: float) -> float:
    """Covariance that one report's noise adds between a set and a subset of it, the rows being fixed.

    Of the places of a row each of its sets has one. A row with both reports one of them with chance 2/ℓ, and a report
    supports two given values with the chances of the protocol's `exact_pairs`.
    """
    protocol, length = sampling.protocol, sampling.length
    own, others = (float(chance) for chance in protocol.exact_pairs)
    q, gap = protocol.q, protocol.gap / length
    both = min(2 / length, 1.0)
    with_all = both * own + (1 - both) * others - (q + gap) ** 2
    with_left = own / length + (1 - 1 / length) * others - (q + gap) * q
    neither = others - q * q
    return (whole * with_all + (left - whole) * with_left + (1 - left) * neither) / gap**2
