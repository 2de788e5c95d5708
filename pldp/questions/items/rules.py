"""Association rules A ⇒ B between reconstructed supports, with the error of their confidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pldp.estimate.distributions import norm
from pldp.questions.items.index import Index
from pldp.questions.items.levels import Floats
from pldp.questions.items.mining import EstimatedSets, Group, Search
from pldp.questions.items.pooling import Weigh, alone, pool
from pldp.questions.items.reconstruct import patterns
from pldp.questions.items.transactions import Counts, Itemsets

RELIABLE = 3.0
"""A confidence divides by the antecedent's support; below this many of its standard errors there is none."""
_CHUNK_CELLS = 1 << 20


@dataclass(frozen=True, eq=False)
class Rules:
    """Whoever has the antecedent has the consequent too, in a share `confidence` of cases. NaN where unreliable."""

    items: Itemsets
    """All items of the rule, rising."""
    antecedent: NDArray[np.int64]
    """Which of them: bit i stands for column i."""
    support: Floats
    confidence: Floats
    standard_error: Floats
    ci_low: Floats
    ci_high: Floats

    def sides(self, rule: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        row, mask = self.items[rule].tolist(), int(self.antecedent[rule])
        left = tuple(item for place, item in enumerate(row) if mask >> place & 1)
        return left, tuple(item for place, item in enumerate(row) if not mask >> place & 1)


def rules_of_groups(
    mined: tuple[EstimatedSets, ...], groups: Sequence[Group], search: Search, weigh: Weigh = alone
) -> tuple[Rules, ...]:
    """Every split of every frequent set of two items or more, one `Rules` per length; supports are those of
    `mine_groups`, with the same weights.

    With Z what a report adds to a support, conf = Σ_g w_g mean Z_{A∪B} / Σ_g w′_g mean Z_A, and to first order its
    error is that of Σ_g mean_g(w_g Z_{A∪B} − conf · w′_g Z_A) / support(A): means over reports of the joint
    reconstruction, so the covariance of both supports is in it.
    """
    indexes = [Index(group.n_rows, group.channel.n_items) for group in groups]
    out = []
    for sets in mined:
        for index, counts in zip(indexes, sets.count.T, strict=True):
            index.add(sets.items, counts)
        wanted = sets.frequent()
        if sets.items.shape[1] > 1 and wanted.any():
            # Of the sets that were looked at only these have rules: as in `EstimatedSets.selected`.
            miss = float(sets.miss[0]) * wanted.mean()
            out.append(_split(sets.items[wanted], sets.count[wanted], indexes, groups, search, weigh, miss))
    return tuple(out)


def _split(
    items: Itemsets,
    counts: Counts,
    indexes: Sequence[Index],
    groups: Sequence[Group],
    search: Search,
    weigh: Weigh,
    miss: float,
) -> Rules:
    m = items.shape[1]
    whole = (1 << m) - 1
    # Noise may have lifted a set of a smaller support to the minimum. Where such supports are evenly spread, and only
    # those that reach it are seen, an estimate lies further than T errors above its truth exp(−T²/2) of the time.
    further = float(np.sqrt(-2 * np.log(miss)))
    parts: list[tuple[Itemsets, NDArray[np.int64], Floats, Floats, Floats, NDArray[np.bool_]]] = []
    size = max(1, _CHUNK_CELLS >> m)
    for start in range(0, len(items), size):
        part = items[start : start + size]
        shares = [
            patterns(index.supersets(part, counts[start : start + size, g])) / index.n_rows
            for g, index in enumerate(indexes)
        ]
        union = _Side.of(part, whole, shares, groups, weigh(part))
        lifted = union.support - further * union.standard_error < search.minimum
        for mask in range(1, whole):
            chosen = [place for place in range(m) if mask >> place & 1]
            left = _Side.of(part, mask, shares, groups, weigh(part[:, chosen]))
            confidence, error = _confidence(union, left, shares, groups, population=search.population)
            parts.append((part, np.full(len(part), mask), union.support, confidence, error, lifted))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    confidence, error = columns[3], columns[4]
    reach = float(norm.isf(miss / 2))
    low = confidence - np.where(columns[5], further, reach) * error
    return Rules(columns[0], columns[1], columns[2], confidence, error, low, confidence + reach * error)


@dataclass(frozen=True)
class _Side:
    """One side of the quotient: what reports of each group add to it, and its pooled support and error."""

    responses: list[Floats]
    weights: Floats
    support: Floats
    standard_error: Floats

    @classmethod
    def of(cls, items: Itemsets, mask: int, shares: list[Floats], groups: Sequence[Group], weights: Floats) -> _Side:
        responses = [group.channel.responses(items, mask) for group in groups]
        means = np.stack([(c * z).sum(axis=1) for c, z in zip(shares, responses, strict=True)], axis=1)
        squares = np.stack([(c * z**2).sum(axis=1) for c, z in zip(shares, responses, strict=True)], axis=1)
        n = np.array([group.n_rows for group in groups])
        return cls(responses, weights, *pool(means, squares - means, n, weights, int(n.sum())))


def _confidence(
    union: _Side, left: _Side, shares: list[Floats], groups: Sequence[Group], *, population: bool
) -> tuple[Floats, Floats]:
    joint, below = union.support, left.support
    reliable = (below > 0) & (below > RELIABLE * left.standard_error)
    confidence = np.divide(joint, below, out=np.full_like(below, np.nan), where=reliable)
    n_users = sum(group.n_rows for group in groups)
    variance = np.zeros_like(below)
    for g, (group, c) in enumerate(zip(groups, shares, strict=True)):
        w, conf = union.weights[:, g], confidence * left.weights[:, g]
        residual = w[:, None] * union.responses[g] - conf[:, None] * left.responses[g]
        # Users are fixed: (w U − conf A)² is (w − conf)² for those with all, conf² for those with A alone.
        fixed = joint * (w - conf) ** 2 + (below - joint) * conf**2
        noise = np.maximum((c * residual**2).sum(axis=1) - fixed, 0)
        # A group is a random part of all users, so what differs between them counts, less what all of them share.
        mean = w * joint - conf * below
        variance += (noise + np.maximum(fixed - mean**2, 0)) / group.n_rows
    shared = joint * (1 - confidence) ** 2 + (below - joint) * confidence**2
    if not population:
        variance -= shared / n_users
    error = np.sqrt(np.maximum(variance, 0))
    return confidence, np.divide(error, below, out=np.full_like(below, np.nan), where=reliable)
