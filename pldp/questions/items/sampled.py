"""Supports and rules where users were sampled: items from one half of them, candidate sets from the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pldp.channels.protocol import Counts
from pldp.estimate.distributions import norm
from pldp.questions.items.ends import score_ends
from pldp.questions.items.levels import Floats
from pldp.questions.items.mining import Ends, EstimatedSets, Search, judge
from pldp.questions.items.padding import Lengths, Overlong
from pldp.questions.items.pooling import Weighing, pool, weigher
from pldp.questions.items.rules import RELIABLE
from pldp.questions.items.sampling import SetSampling, likely_items, likely_sets
from pldp.questions.items.transactions import Itemsets

SURE = 3.0
"""Standard errors by which more rows may be longer than the reports say; beyond it, one time in 700."""


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

    def weights(self, weighing: Weighing, minimum: float) -> Floats:
        """By level; the same for all sets, which are all alike."""
        one = np.zeros((1, 1), dtype=np.int32)
        return weigher(weighing, self.samplings, self.n, minimum)(one)[0]


def judge_half(
    half: Half, sets: Sequence[Itemsets], n_users: int, search: Search, weighing: Weighing, lengths: Lengths
) -> tuple[EstimatedSets, ...]:
    """Every set that was asked about, by length. Supports are those of all users of the release.

    `lengths` bound how many of what was asked about a row may hold.
    """
    total = sum(len(level) for level in sets)
    support, noise = np.empty((total, half.n.size)), np.empty((total, half.n.size))
    for column, (sampling, counts, n) in enumerate(zip(half.samplings, half.counts, half.n, strict=True)):
        estimated, _ = sampling.estimate(counts, int(n))
        support[:, column] = estimated[:total]
        noise[:, column] = sampling.noise_variance(np.clip(estimated[:total], 0, 1))
    by_level = half.weights(weighing, search.minimum)
    weights = np.tile(by_level, (total, 1))
    overlong = Overlong.of(lengths, half.samplings[0].length, longer_rows(half, by_level, n_users))
    noise += overlong.spread
    together, error = pool(support, noise, half.n, weights, n_users, population=search.population)
    low, high = score_interval(half, by_level, together, n_users, search, overlong.spread)
    beyond = overlong.understated(high)
    raw = half.counts[:, :total].T
    out, start = [], 0
    for level in sets:
        part = slice(start, start + len(level))
        ends = Ends(low[part], high[part], beyond[part])
        out.append(judge(level, raw[part], together[part], error[part], search, ends))
        start += len(level)
    return tuple(out)


def score_interval(
    half: Half, weights: Floats, support: Floats, n_users: int, search: Search, more: float = 0.0
) -> tuple[Floats, Floats]:
    """By `score_ends`; `more` is what longer rows add to a report's noise. Half a report more, because counts are whole
    numbers."""
    none, whole = (
        np.array([float(each.noise_variance(np.array([at]))[0]) for each in half.samplings]) for at in (0.0, 1.0)
    )
    noise = none + more, whole + more
    step = float((weights * [each.length / each.protocol.gap for each in half.samplings] / half.n).max()) / 2
    return score_ends(
        support,
        noise,
        half.n,
        weights,
        search.confidence,
        n_users=n_users,
        population=search.population,
        step=step,
        gamma=search.gamma,
    )


def longer_rows(half: Half, weights: Floats, n_users: int) -> float:
    """The most people, by the last dummy's reports and `SURE` errors, whose rows fill every place or more."""
    short = [
        float(sampling.short_rows(counts, int(n))[-1])
        for sampling, counts, n in zip(half.samplings, half.counts, half.n, strict=True)
    ]
    noise = [
        float(each.noise_variance(np.clip([one], 0, 1))[0]) for each, one in zip(half.samplings, short, strict=True)
    ]
    share, error = pool(np.array([short]), np.array([noise]), half.n, weights[None], n_users)
    return float(np.clip(1 - share[0] + SURE * error[0], 0, 1))


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
    mined: Sequence[EstimatedSets], sets: Half | None, n_users: int, search: Search, weighing: Weighing
) -> tuple[SampledRule, ...]:
    """Every split of every set that reaches the minimum whose antecedent was asked about too and is clear of zero.

    Var(U − conf·A) = Var U + conf² Var A − 2 conf Cov(U, A). Items and sets come from different users, whose supports
    are tied only by being parts of the same n: Cov = −S_UA / n. Only R of the m sets asked about have rules, so that
    they have intervals of level 1 − αR/m: of all that are shown, at most α then fail on average (Benjamini, Yekutieli).
    """
    longer = [level for level in mined if level.items.shape[1] > 1]
    shown, asked = sum(int(level.frequent().sum()) for level in longer), sum(len(level.items) for level in longer)
    if sets is None or not shown:
        return ()
    known = {
        tuple(row): _Side(float(support), float(error), float(under))
        for level in mined
        for row, support, error, under in zip(
            level.items.tolist(), level.support, level.standard_error, level.understatement, strict=True
        )
    }
    weights = sets.weights(weighing, search.minimum)
    z = float(norm.isf((1 - search.confidence) / 2 * shown / asked))
    out = []
    for level in longer:
        for row in level.items[level.frequent()].tolist():
            whole, union = tuple(row), known[tuple(row)]
            for mask in range(1, (1 << len(row)) - 1):
                left = tuple(item for place, item in enumerate(row) if mask >> place & 1)
                below = known.get(left)
                if below is None or below.support <= max(RELIABLE, z) * below.error or below.support <= 0:
                    continue
                tie = _covariance(sets, weights, union.support, below.support, n_users, together=len(left) > 1)
                right = tuple(item for item in whole if item not in left)
                out.append(SampledRule(left, right, union.support, *_confidence(union, below, tie, z)))
    return tuple(out)


@dataclass(frozen=True)
class _Side:
    support: float
    error: float
    understatement: float


def _confidence(union: _Side, below: _Side, tie: float, z: float) -> tuple[float, float, float, float]:
    """Confidence, its error, and the ends of its interval: all c with (U − cA)² ≤ z² Var(U − cA) (Fieller), widened by
    what the supports of the set and of the antecedent may be understated by."""
    confidence = union.support / below.support
    variance = union.error**2 + confidence**2 * below.error**2 - 2 * confidence * tie
    error = float(np.sqrt(max(variance, 0))) / below.support
    lead = below.support**2 - (z * below.error) ** 2
    middle = union.support * below.support - z**2 * tie
    root = float(np.sqrt(max(middle**2 - lead * (union.support**2 - (z * union.error) ** 2), 0)))
    low, high = (middle - root) / lead, (middle + root) / lead
    shrunk = below.support / (below.support + below.understatement) if low > 0 else 1.0
    return confidence, error, low * shrunk, high + union.understatement / below.support


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
    holders, others = (float(chance) for chance in protocol.exact_pairs)
    q, gap = protocol.q, protocol.gap / length
    both = min(2 / length, 1.0)
    with_all = both * holders + (1 - both) * others - (q + gap) ** 2
    with_left = holders / length + (1 - 1 / length) * others - (q + gap) * q
    neither = others - q * q
    return (whole * with_all + (left - whole) * with_left + (1 - left) * neither) / gap**2
