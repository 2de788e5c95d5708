"""How many attributes a user reports on, and how the budget is spread over them (pmpm sections 4.1 and 4.2).

A user samples k of d attributes and gives each a budget in [ε/(τk), (1 + (τ−1)k)ε/(τk)], together ε. Everybody starts
with the lower end everywhere, which leaves the spare budget ε(τ−1)/τ. The spare is cut into U equal units, and a user
deals whole units: u_j to attribute j, Σ u_j = U. So budgets sum to ε exactly, always lie in the range, and take at most
U + 1 values. These values are the *classes* of a numeric attribute, public like levels: one mechanism each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pldp.channels.numeric.domain import Floats
from pldp.channels.numeric.draws import sample_without_replacement
from pldp.channels.randomness import Keystream

Units = NDArray[np.int64]

UNIFORM_MOMENT = 1 / 3
"""E[x²] of values spread evenly over the bounds (pmpm Eq. 14)."""

RULES = ("optimal", "round", "floor", "mpm")
_MOST_UNITS = 1 << 62  # sums of units stay in 64 bits
_MOST_CLASSES = 10_000


def pm_noise(epsilon: Floats, second_moment: float = UNIFORM_MOMENT) -> Floats:
    """PM's variance at E[x²], pmpm Eq. 6, in a form that does not overflow."""
    small = np.exp(-epsilon / 2)
    rest = -np.expm1(-epsilon / 2)
    return small * second_moment / rest + (small + 3 * small**2) / (3 * rest**2)


def average_variance(
    epsilon: float, attributes: int, sampled: ArrayLike, second_moment: float = UNIFORM_MOMENT
) -> Floats:
    """Variance of a user's scaled report on an attribute, pmpm Eq. 16 (Eq. 12 at E[x²] and equal budgets)."""
    k = np.asarray(sampled, dtype=np.float64)
    return attributes / k * (pm_noise(epsilon / k, second_moment) + second_moment) - second_moment


def sampled_attributes(rule: str, epsilon: float, attributes: int, second_moment: float = UNIFORM_MOMENT) -> int:
    """k, between 1 and d.

    `mpm`: ⌊ε/2.5⌋ (pmpm Eq. 8). `floor`: ⌊0.28ε⌋ (Eq. 17). `round`: 0.28ε to the nearest.
    `optimal`: the k of least average variance, Eq. 16. Where the paper rounds down, it loses up to a third of the
    accuracy (tests/pldp/numeric/test_budgets.py).
    """
    if attributes < 1 or not (epsilon > 0 and math.isfinite(epsilon)):
        raise ValueError(f"needs an attribute and a positive budget (got {attributes} and {epsilon})")
    match rule:
        case "optimal":
            candidates = np.arange(1, attributes + 1)
            return 1 + int(np.argmin(average_variance(epsilon, attributes, candidates, second_moment)))
        case "round":
            k = math.floor(0.28 * epsilon + 0.5)
        case "floor":
            k = math.floor(0.28 * epsilon)
        case "mpm":
            k = math.floor(epsilon / 2.5)
        case _:
            raise ValueError(f"{rule!r} is not one of {', '.join(RULES)}")
    return max(1, min(attributes, k))


@dataclass(frozen=True)
class BudgetClasses:
    """The public set of budgets of one sampled attribute."""

    total: Fraction
    tau: Fraction
    sampled: int
    units: int

    def __post_init__(self) -> None:
        if self.total <= 0 or self.tau < 1 or self.sampled < 1:
            raise ValueError(
                f"needs a positive budget, τ ≥ 1 and a sampled attribute (got {self.total}, {self.tau}, {self.sampled})"
            )
        if self.units < 1 or self.units % self.sampled or self.units > _MOST_UNITS:
            raise ValueError(f"units must be a multiple of the {self.sampled} sampled attributes, at most 2^62")

    @classmethod
    def for_importance(cls, total: Fraction, tau: Fraction, sampled: int) -> Self:
        """As many units as every number of important attributes divides: their shares are exact, k + 1 classes."""
        return cls(total, tau, sampled, math.lcm(*range(1, sampled + 1)))

    @property
    def lowest(self) -> Fraction:
        return self.total / (self.tau * self.sampled)

    @property
    def highest(self) -> Fraction:
        return self.budget(self.units)

    @property
    def equal(self) -> int:
        """Units of everybody who prefers nothing: ε/k each."""
        return self.units // self.sampled

    @property
    def personal(self) -> bool:
        """Whether there is anything to deal."""
        return self.tau > 1 and self.sampled > 1

    def budget(self, units: int) -> Fraction:
        return self.lowest + self.total * (self.tau - 1) / self.tau * Fraction(units, self.units)

    @property
    def by_importance(self) -> tuple[int, ...]:
        """Units that important / not can lead to, from the strictest class to the weakest."""
        if not self.personal:
            return (self.equal,)
        return (0, *(self.units // m for m in range(self.sampled, 0, -1)))

    @property
    def by_weights(self) -> tuple[int, ...]:
        if self.units >= _MOST_CLASSES:
            raise ValueError(f"{self.units} units make too many classes: take fewer than {_MOST_CLASSES}")
        return tuple(range(self.units + 1)) if self.personal else (self.equal,)


def sample_attributes(users: int, attributes: int, sampled: int, stream: Keystream) -> NDArray[np.uint32]:
    """Which attributes each user reports on: one row a user, ascending, every subset equally likely."""
    return sample_without_replacement(users, attributes, sampled, stream)


def deal_by_importance(classes: BudgetClasses, important: NDArray[np.bool_]) -> Units:
    """pmpm's simple allocation for the sampled attributes of each user (one row a user).

    The unimportant keep the lowest budget, the important share the spare; if none is important all share it, or the
    budget would be underspent.
    """
    if not classes.personal:
        return np.full(important.shape, classes.equal, dtype=np.int64)
    k = classes.sampled
    share = np.array([0, *(classes.units // m for m in range(1, k + 1))])
    number = np.zeros(len(important), dtype=np.int64)
    for column in important.T:
        number += column
    units = important * share[number][:, None]
    units[number == 0] = classes.equal
    return units


def deal_by_weights(classes: BudgetClasses, weights: ArrayLike) -> Units:
    """Spare units in proportion to the users' weights, by largest remainders; all zero means all alike."""
    # One contiguous row an attribute: sums over a short last axis would be ten times slower.
    wanted = np.array(np.atleast_2d(np.asarray(weights, dtype=np.float64)).T, order="C")
    if not np.isfinite(wanted).all() or (wanted < 0).any():
        raise ValueError("weights must be finite and not negative")
    if not classes.personal:
        return np.full(wanted.T.shape, classes.equal, dtype=np.int64)
    largest = wanted.max(axis=0)
    wanted[:, largest == 0] = 1
    wanted /= np.where(largest > 0, largest, 1)  # no sum can overflow
    exact = classes.units * wanted / wanted.sum(axis=0)
    # A share that is whole but for rounding counts as whole.
    units = np.floor(exact + 1e-9).astype(np.int64)
    short = classes.units - units.sum(axis=0)
    behind = units - exact
    rank = np.zeros(behind.shape, dtype=np.int64)
    for a in range(len(behind)):
        for b in range(a):  # the largest remainder first, of equal ones the first
            later = behind[a] >= behind[b]
            rank[a] += later
            rank[b] += ~later
    units += short > rank
    return np.ascontiguousarray(units.T)


def check_budgets(classes: BudgetClasses, units: Units) -> NDArray[np.intp]:
    """Users whose budgets leave the range or do not sum to ε: none, or the release is refused.

    In units both are exact: 0 ≤ u ≤ U is the range, Σu = U the sum.
    """
    if units.shape[1] != classes.sampled:
        return np.arange(len(units))
    bad = np.zeros(len(units), dtype=np.bool_)
    total = np.zeros(len(units), dtype=np.int64)
    for column in units.T:
        bad |= (column < 0) | (column > classes.units)
        total += column
    return np.flatnonzero(bad | (total != classes.units))
