"""Our bounded variant for item sets: one bound for the whole row, spent on the items where it helps most.

For one binary attribute with exact ε at most e the symmetric channel is best, whatever weights and frequencies
(docs/items.md, 5): aprr's two probabilities only lose. What remains to choose is how a row's bound is split: for least
error under a cap for each item, or in proportion to what an item's sensitivity leaves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from pldp.exact import SCALE, logistic_threshold, within
from pldp.items.channels import ItemChannels
from pldp.items.levels import Floats, Levels, item_promises

_TICKS = 1 << 40
_MOST = 40.0
_STEPS = 100
_NEWTON = 20
_PRICES = 140.0  # of ln λ for a weight of one


@dataclass(frozen=True)
class RowWish:
    """Weights of the items' errors, the bound of a row, and a bound for each item (its sensitivity) or none."""

    weights: tuple[float, ...]
    bound: Fraction
    caps: tuple[Fraction, ...] | None = None

    def __post_init__(self) -> None:
        if not self.weights or not all(0 < weight < np.inf for weight in self.weights):
            raise ValueError("weights must be > 0 and finite, one for each item; leave out an item of no interest")
        if self.bound <= 0:
            raise ValueError(f"the bound of a row must be > 0 (got {float(self.bound):g})")
        if self.caps is not None and (len(self.caps) != len(self.weights) or min(self.caps) <= 0):
            raise ValueError("caps must be > 0, one for each item")


def noise(epsilon: Floats) -> Floats:
    """Variance of one report's estimate of an item: e^ε / (e^ε − 1)² = 1 / (4 sinh²(ε/2)), at any frequency."""
    return 0.25 / np.sinh(epsilon / 2) ** 2


def split_row(wish: RowWish) -> tuple[Fraction, ...]:
    """Budgets of least Σ_j w_j v(ε_j) with Σ ε_j ≤ bound, ε_j ≤ cap_j; whole ticks of 2^-40.

    v is convex, so all items below their caps have the same price w_j |v′(ε_j)| = λ, and one λ spends the bound.
    """
    weights = np.array(wish.weights) / max(wish.weights)
    caps = np.full(weights.size, _MOST) if wish.caps is None else np.array([float(cap) for cap in wish.caps])
    caps = np.minimum(caps, _MOST)
    total = float(wish.bound)
    if caps.sum() <= total:
        best = caps
    else:
        low, high = -_PRICES, _PRICES
        for _ in range(_STEPS):
            middle = (low + high) / 2
            if _spent_at(middle, weights, caps).sum() > total:
                low = middle
            else:
                high = middle
        best = _spent_at(high, weights, caps)
        best = best * min(1.0, total / best.sum())
    ticks = [int(share * _TICKS) for share in best.tolist()]
    most = int(wish.bound * _TICKS) - 1
    # What rounding overspends is taken off the largest, all of them alike: no item passes another.
    ceiling = max(ticks) - -(-max(0, sum(ticks) - most) // ticks.count(max(ticks)))
    budgets = [Fraction(min(tick, ceiling), _TICKS) for tick in ticks]
    if wish.caps is not None:
        budgets = [min(own, cap) for own, cap in zip(budgets, wish.caps, strict=True)]
    if min(budgets) <= 0:
        raise ValueError(f"a bound of {float(wish.bound):g} is too small for {len(ticks)} items: sample items instead")
    return tuple(budgets)


def split_capped(
    bound: Fraction, sensitivity: Levels, n_levels: int, weights: Sequence[float] | None = None
) -> tuple[Fraction, ...]:
    """Split B: no item of level l ≥ 1 above aprr's promise to its "1", the rest shared for least weighted error.

    A more sensitive item never gets more than a less sensitive one. Of equal weights that follows from the caps; where
    a weight would turn it round, the more sensitive item is held at what the less sensitive ones got, and what this
    leaves is shared once more. Then all others get as much as before or more, so the order holds.
    """
    promised = item_promises(n_levels, bound)
    caps = tuple(bound if (cap := promised[level]) is None else min(cap, bound) for level in sensitivity)
    wish = RowWish(tuple(weights or (1.0,) * len(sensitivity)), bound, caps)
    budgets = split_row(wish)
    held = _in_order(budgets, sensitivity)
    if held == budgets:
        return budgets
    lower = tuple(cap if a == b else b for cap, a, b in zip(caps, budgets, held, strict=True))
    return _in_order(split_row(replace(wish, caps=lower)), sensitivity)


def _in_order(budgets: Sequence[Fraction], sensitivity: Levels) -> tuple[Fraction, ...]:
    """Each budget, but at most the least of any less sensitive item."""
    least: dict[int, Fraction] = {}
    for budget, level in zip(budgets, sensitivity, strict=True):
        least[level] = min(budget, least.get(level, budget))
    most: dict[int, Fraction] = {}
    below = max(budgets)
    for level in sorted(least):
        most[level] = below
        below = min(below, least[level])
    return tuple(min(budget, most[level]) for budget, level in zip(budgets, sensitivity, strict=True))


def split_proportional(bound: Fraction, sensitivity: Levels, n_levels: int) -> tuple[Fraction, ...]:
    """Split A: ε_j ∝ L − l, so that every step of sensitivity takes the same part; whole ticks of 2^-40."""
    parts = [n_levels - level for level in sensitivity]
    return tuple(Fraction(int(bound * part * _TICKS / sum(parts)), _TICKS) for part in parts)


def bounded_items(wish: RowWish) -> ItemChannels:
    """Symmetric channels of least predicted weighted error; the row's exact ε is within the bound, as rationals."""
    return symmetric_items(split_row(wish), wish.bound)


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


def predicted_error(channels: ItemChannels, weights: Sequence[float], frequency: Floats) -> float:
    """Σ_j w_j Var of one report's estimate of item j, for assumed frequencies: divide by n."""
    q, gap = channels.false_one, channels.gap
    p = q + gap
    variance = (frequency * p * (1 - p) + (1 - frequency) * q * (1 - q)) / gap**2
    return float(np.array(weights) @ variance)


def _spent_at(log_price: float, weights: Floats, caps: Floats) -> Floats:
    """ε_j with w_j cosh(ε/2) / (4 sinh³(ε/2)) = λ, or the cap.

    With t = sinh²(ε/2) and c = 4λ/w this is c² t³ = 1 + t: convex, and Newton's steps from above never pass the root.
    """
    c = 4 * np.exp(log_price) / weights
    t = c ** (-2 / 3) + 1 / c
    for _ in range(_NEWTON):
        t = t - (c**2 * t**3 - t - 1) / (3 * c**2 * t**2 - 1)
    return np.minimum(2 * np.arcsinh(np.sqrt(t)), caps)
