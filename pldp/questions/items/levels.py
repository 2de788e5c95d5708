"""From sensitivity scores to levels, and from levels to the budgets of aprr Eq. 3.

Scores shape a published plan: a release declares its levels or collects scores under a budget of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from pldp.errors import BrokenRule

Floats = NDArray[np.float64]
Levels = tuple[int, ...]
"""One a value or item; 0 is open, the highest the most sensitive."""

FENCE = 3.0
"""Scaled median deviations beyond which a score is an outlier."""
_TO_SIGMA = 1.482602218505602
"""A normal law's standard deviation in median absolute deviations."""
ZERO_SHARE = Fraction(2, 3)
"""Of a binary attribute's budget what "0" gets; "1" has the rest: aprr Eq. 3 again, with two sensitive levels."""


@dataclass(frozen=True)
class Scale:
    """The range of scores and the cuts between levels: a sensitivity at or above the l-th cut has at least level l."""

    low: float
    high: float
    cuts: tuple[float, ...]

    def __post_init__(self) -> None:
        if not 0 <= self.low < self.high < np.inf:
            raise ValueError(f"scores.range must satisfy 0 ≤ low < high (got {self.low:g}, {self.high:g})")
        edges = (self.low, *self.cuts, self.high)
        if not self.cuts or any(a >= b for a, b in pairwise(edges)):
            raise ValueError("scores.cuts must rise strictly inside the range, at least one: L levels have L − 1")

    @classmethod
    def equal(cls, low: float, high: float, n_levels: int) -> Scale:
        """Levels of equal width."""
        check_levels(n_levels)
        return cls(low, high, tuple(float(cut) for cut in np.linspace(low, high, n_levels + 1)[1:-1]))

    @property
    def n_levels(self) -> int:
        return len(self.cuts) + 1


@dataclass(frozen=True)
class Scored:
    """What scores say of each value."""

    levels: Levels
    sensitivity: Floats
    """Mean of the scores that remain."""
    removed: NDArray[np.int64]
    """Scores taken for outliers."""


def check_levels(n_levels: int) -> None:
    """ValueError unless the number of levels leaves one that is open and one that is not."""
    if n_levels < 2:
        raise ValueError(f"levels must be at least 2, one of them open (got {n_levels})")


def levels_from_scores(scores: Floats, scale: Scale) -> Scored:
    """Users × values, NaN where a user did not score a value.

    Of each value's scores those more than 3 scaled median absolute deviations from their median are removed. Where more
    than half agree, the deviation is zero and all others go: a majority of one mind is not moved by the rest.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 2 or not scores.size:
        raise BrokenRule("scores must be a table of users × values, not empty")
    scored = ~np.isnan(scores)
    missing = np.flatnonzero(~scored.any(axis=0))
    if missing.size:
        raise BrokenRule("no score: every value needs one, or declared levels", column=missing[0])
    outside = np.argwhere(scored & ~((scores >= scale.low) & (scores <= scale.high)))
    if outside.size:
        row, column = outside[0]
        rule = f"a score must lie in {scale.low:g} … {scale.high:g}"
        raise BrokenRule(rule, row=int(row), column=column, remedy="Correct the row or declare another range.")
    centre = np.nanmedian(scores, axis=0)
    distance = np.abs(scores - centre)
    fence = FENCE * _TO_SIGMA * np.nanmedian(distance, axis=0)
    kept = scored & (distance <= fence)
    sensitivity = np.where(kept, scores, 0).sum(axis=0) / kept.sum(axis=0)
    levels = np.searchsorted(np.array(scale.cuts), sensitivity, side="right")
    return Scored(tuple(levels.tolist()), sensitivity, (scored & ~kept).sum(axis=0))


def level_weights(n_levels: int) -> tuple[Fraction, ...]:
    """aprr Eq. 2, W_l = 2l / (L (L − 1)) for l = 1 … L − 1: they sum to one."""
    check_levels(n_levels)
    return tuple(Fraction(2 * level, n_levels * (n_levels - 1)) for level in range(1, n_levels))


def level_budgets(n_levels: int, epsilon: Fraction) -> tuple[Fraction | None, ...]:
    """aprr Eq. 3, ε_l = W_{L−l} ε; None for level 0, which is open.

    aprr Algorithm 1 writes ε = 0 for an open value. An open value has no protection: its ε is infinite.
    """
    if epsilon <= 0:
        raise ValueError(f"the budget must be > 0 (got {float(epsilon):g})")
    return (None, *(weight * epsilon for weight in reversed(level_weights(n_levels))))


def item_promises(n_levels: int, epsilon: Fraction) -> tuple[Fraction | None, ...]:
    """What aprr promises the "1" of a binary attribute of each level, ε_l / 3; None for level 0, promised nothing."""
    return tuple(None if budget is None else budget * (1 - ZERO_SHARE) for budget in level_budgets(n_levels, epsilon))


def declared_levels(levels: Sequence[int], n_levels: int) -> Levels:
    """Levels given directly, checked."""
    check_levels(n_levels)
    if not levels or not all(0 <= level < n_levels for level in levels):
        raise ValueError(f"levels must be one for each value, in 0 … {n_levels - 1} (got {list(levels)})")
    return tuple(levels)
