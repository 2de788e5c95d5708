"""Our bounded variant for item sets: one bound for the whole row, spent on the items where it helps most.

For one binary attribute with exact ε at most e the symmetric channel is best, whatever weights and frequencies
(docs/items.md, 5): aprr's two probabilities only lose. What remains to choose is how a row's bound is split: for least
error under a cap for each item, or in proportion to what an item's sensitivity leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE, logistic_threshold, within
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.levels import Floats, Levels, item_promises

TICKS = 1 << 40
"""Budgets of items are whole multiples of 1/TICKS."""
_MOST = 40.0
_STEPS = 100
_NEWTON = 20
_PRICES = 140.0  # of ln λ for a weight of one


@dataclass(frozen=True)
class RowDemand:
    """Weights of the items' errors, the bound of a row, and a bound for each item or none."""

    weights: tuple[float, ...]
    bound: Fraction
    caps: tuple[Fraction, ...] | None = None
    sensitivity: Levels | None = None
    """Where given, no item gets more than a less sensitive one; the caps must not rise with it."""

    def __post_init__(self) -> None:
        if not self.weights or not all(0 < weight < np.inf for weight in self.weights):
            raise ValueError("weights must be > 0 and finite, one for each item; leave out an item of no interest")
        if self.bound <= 0:
            raise ValueError(f"the bound of a row must be > 0 (got {float(self.bound):g})")
        if self.caps is not None and (len(self.caps) != len(self.weights) or min(self.caps) <= 0):
            raise ValueError("caps must be > 0, one for each item")
        if self.sensitivity is not None and len(self.sensitivity) != len(self.weights):
            raise ValueError("sensitivity must be one for each item")


def split_row(demand: RowDemand) -> tuple[Fraction, ...]:
    """Budgets of least Σ_j w_j v(ε_j) with Σ ε_j ≤ bound, ε_j ≤ cap_j, in the order asked; whole ticks of 2^-40.

    v(ε) = e^ε / (e^ε − 1)², the variance of one report's estimate of an item at any frequency, is convex, so all items
    below their caps have the same price w_j |v′(ε_j)| = λ (those that the order holds together have it in the mean),
    and one λ spends the bound.
    """
    weights = np.array(demand.weights) / max(demand.weights)
    caps = np.full(weights.size, _MOST) if demand.caps is None else np.array([float(cap) for cap in demand.caps])
    caps = np.minimum(caps, _MOST)
    order = np.zeros(weights.size, dtype=np.int64) if demand.sensitivity is None else np.array(demand.sensitivity)
    total = float(demand.bound)
    if caps.sum() <= total:
        best = caps
    else:
        low, high = -_PRICES, _PRICES
        for _ in range(_STEPS):
            middle = (low + high) / 2
            if _spent_in_order(middle, weights, caps, order).sum() > total:
                low = middle
            else:
                high = middle
        best = _spent_in_order(high, weights, caps, order)
        best = best * min(1.0, total / best.sum())
    ticks = [int(share * TICKS) for share in best.tolist()]
    most = int(demand.bound * TICKS) - 1
    # What rounding overspends is taken off the largest, all of them alike: no item passes another.
    ceiling = max(ticks) - -(-max(0, sum(ticks) - most) // ticks.count(max(ticks)))
    budgets = [Fraction(min(tick, ceiling), TICKS) for tick in ticks]
    if demand.caps is not None:
        budgets = [min(budget, cap) for budget, cap in zip(budgets, demand.caps, strict=True)]
    if min(budgets) <= 0:
        raise ValueError(
            f"a bound of {float(demand.bound):g} is too small for {len(ticks)} items: sample items instead"
        )
    return tuple(budgets)


def split_capped(
    bound: Fraction, sensitivity: Levels, n_levels: int, weights: Sequence[float] | None = None
) -> tuple[Fraction, ...]:
    """Split B: no item of level l ≥ 1 above aprr's promise to its "1", the rest shared for least weighted error.

    A more sensitive item never gets more than a less sensitive one, whatever the weights. Of equal weights that
    follows from the caps.
    """
    promised = item_promises(n_levels, bound)
    caps = tuple(bound if (cap := promised[level]) is None else min(cap, bound) for level in sensitivity)
    return split_row(RowDemand(tuple(weights or (1.0,) * len(sensitivity)), bound, caps, sensitivity))


def split_proportional(bound: Fraction, sensitivity: Levels, n_levels: int) -> tuple[Fraction, ...]:
    """Split A: ε_j ∝ L − l, so that every step of sensitivity takes the same part; whole ticks of 2^-40."""
    parts = [n_levels - level for level in sensitivity]
    return tuple(Fraction(int(bound * part * TICKS / sum(parts)), TICKS) for part in parts)


def bounded_items(demand: RowDemand) -> ItemChannels:
    """Symmetric channels of least predicted weighted error; the row's exact ε is within the bound, as rationals."""
    return symmetric_items(split_row(demand), demand.bound)


def symmetric_items(budgets: Sequence[Fraction], bound: Fraction) -> ItemChannels:
    """One symmetric channel per budget; together within the row's bound, as rationals."""
    keeps = [logistic_threshold(budget) for budget in budgets]
    if min(keeps) <= SCALE // 2:
        raise ValueError(f"a bound of {float(bound):g} leaves no signal for {len(keeps)} items: sample instead")
    channels = ItemChannels.symmetric(keeps)
    ratio = channels.row_ratio()
    if ratio is None or not within(ratio, bound):
        raise ArithmeticError("the row's exact ε exceeds its bound: budgets and thresholds disagree")
    return channels


def _spent_at(log_price: float, weights: Floats, caps: Floats) -> Floats:
    """ε_j with w_j cosh(ε/2) / (4 sinh³(ε/2)) = λ, or the cap.

    With t = sinh²(ε/2) and c = 4λ/w this is c² t³ = 1 + t: convex, and Newton's steps from above never pass the root.
    """
    c = 4 * np.exp(log_price) / weights
    t = c ** (-2 / 3) + 1 / c
    for _ in range(_NEWTON):
        t = t - (c**2 * t**3 - t - 1) / (3 * c**2 * t**2 - 1)
    return np.minimum(2 * np.arcsinh(np.sqrt(t)), caps)


def _spent_in_order(log_price: float, weights: Floats, caps: Floats, sensitivity: NDArray[np.int64]) -> Floats:
    """The budgets of least Σ_j w_j v(ε_j) + λ ε_j of which none is above a less sensitive item's.

    Between two levels that follow one another stands one number m: the less sensitive get at least m, the more
    sensitive at most. Given all m, every item has its own best, cut to its two numbers; what the cuts cost is a sum of
    convex functions of one m each, and the m fall with sensitivity: a monotone regression, solved by pooling.
    """
    wanted = _spent_at(log_price, weights, caps)
    pools: list[tuple[int, int, float]] = []
    for first, last in pairwise(np.unique(sensitivity).tolist()):
        m = _meeting(log_price, weights, wanted, sensitivity, first, last)
        while pools and m > pools[-1][2]:
            first = pools.pop()[0]
            m = _meeting(log_price, weights, wanted, sensitivity, first, last)
        pools.append((first, last, m))
    spent = wanted
    for first, last, m in pools:
        spent = np.where((first <= sensitivity) & (sensitivity < last), np.maximum(spent, m), spent)
        spent = np.where((first < sensitivity) & (sensitivity <= last), np.minimum(spent, m), spent)
    return spent


def _meeting(
    log_price: float, weights: Floats, wanted: Floats, sensitivity: NDArray[np.int64], first: int, last: int
) -> float:
    """The least m of least cost between levels `first` and `last`, where all items of the levels between get m.

    At m those are held that want less and are of the first level, that want more and are of the last, and all between.
    Their cost falls as long as m is below what one item of their mean weight wants.
    """
    less, more = np.flatnonzero(sensitivity == first), np.flatnonzero(sensitivity == last)
    between = weights[(first < sensitivity) & (sensitivity < last)]
    less, more = less[np.argsort(wanted[less])], more[np.argsort(-wanted[more])]
    if not between.size and wanted[less[0]] >= wanted[more[0]]:
        return float(wanted[more[0]])
    points = np.unique(wanted[(first <= sensitivity) & (sensitivity <= last)])

    def held(n_less: NDArray[np.intp], n_more: NDArray[np.intp]) -> Floats:
        """What an item of the mean weight of those held wants; nothing where nobody is held."""
        sums = [np.concatenate([[0.0], np.cumsum(weights[side])]) for side in (less, more)]
        n = n_less + n_more + between.size
        mean = (sums[0][n_less] + sums[1][n_more] + between.sum()) / np.maximum(n, 1)
        free = np.full(points.size, np.inf)
        return np.where(n > 0, _spent_at(log_price, np.where(n > 0, mean, 1.0), free), 0.0)

    below = np.searchsorted(wanted[less], points)
    at = held(below, np.searchsorted(-wanted[more], -points))
    enough = at <= points
    enough[-1] = True  # but for rounding
    i = int(np.argmax(enough))
    if i == 0:
        return float(points[0])
    before = held(below, np.searchsorted(-wanted[more], -points, side="right"))
    return float(np.clip(before[i], points[i - 1], points[i]))
