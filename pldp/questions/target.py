"""How large a budget, or how many people, it takes to reach a target error; from the spec's assumptions alone."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cache

from pldp.questions.plan import Plan

_MOST_USERS = 10**12
_LEAST_BUDGET, _MOST_BUDGET = 1e-6, 1000.0
_FINE = 1 << 22
"""Places in a quarter of a decade of budgets: the answer is exact to the seventh digit."""


@dataclass(frozen=True)
class Target:
    standard_error: float
    budget: float | None
    users: int | None
    covers: tuple[str, ...]
    """Which predicted errors must all reach it."""
    largest: str
    """What has the largest error as the spec stands."""


def find_target(plan: Plan, plan_at: Callable[[Fraction], Plan], wanted: float) -> Target:
    """`plan_at` resolves the same spec with another total; ValueError where nothing has a target."""
    covers = tuple(question.target for question in plan.questions if question.target)
    if not covers:
        instead = "; ".join(question.instead_of_target for question in plan.questions)
        raise ValueError(f"is for histograms and means: {instead}")
    budget = budget_for(plan_at, wanted, 1.0 if plan.total is None else float(plan.total))
    return Target(wanted, budget, users_for(plan, wanted), covers, largest_error(plan)[0])


def largest_error(plan: Plan, users: int | None = None) -> tuple[str, float]:
    """What has the largest predicted standard error, as a share, and that error."""
    errors: dict[str, float] = {}
    for question in plan.questions:
        errors |= question.typical_errors(users)
    return max(errors.items(), key=lambda error: error[1], default=("", 0.0))


def users_for(plan: Plan, target: float) -> int | None:
    """The fewest people that reach the target at this budget."""

    @cache
    def error(users: int) -> float:
        return largest_error(plan, users)[1]

    if error(_MOST_USERS) > target:
        return None
    if error(1) <= target:
        return 1
    return _first(error, target, 1, _MOST_USERS, math.log, math.exp)


def budget_for(plan_at: Callable[[Fraction], Plan], target: float, start: float = 1.0) -> float | None:
    """The smallest total budget that reaches the target with the expected people.

    Some budgets have no plan: where levels are hidden, those that would tell too much about them. So the search leaves
    a budget that has one, `start`, by quarters of a decade until one reaches the target and one does not.
    """

    def total(place: int) -> float:
        return float(min(max(start * 10 ** (place / _FINE / 4), _LEAST_BUDGET), _MOST_BUDGET))

    @cache
    def error(place: int) -> float:
        try:
            return largest_error(plan_at(Fraction(str(total(place)))))[1]
        except ValueError:
            return math.inf

    low = high = 0
    if error(0) <= target:
        while error(low) <= target:
            if total(low) == _LEAST_BUDGET:
                return _LEAST_BUDGET
            low, high = low - _FINE, low
    else:
        while not error(high) <= target:
            if total(high) == _MOST_BUDGET or error(high) == math.inf:
                return None
            low, high = high, high + _FINE
    return total(_first(error, target, low, high, float, float))


def _first(
    error: Callable[[int], float],
    target: float,
    low: int,
    high: int,
    scale: Callable[[float], float],
    back: Callable[[float], float],
) -> int:
    """The least whole number whose error is within the target: `low` misses it, `high` reaches it, and errors fall.

    By the line through both ends of what is left, the logarithm of the error over `scale`, whose inverse is `back`.
    When that moves one end again and again, it is left twice as far, then four times, until the other end moves.
    """
    above, below = error(low), error(high)
    far, rising = 1, True
    while high - low > 1:
        by_line = math.isfinite(above) and 0 < below < above
        share = math.log(above / target) / math.log(above / below) if by_line else 0.5
        share = min(share * far, 1.0) if rising else max(1 - (1 - share) * far, 0.0)
        middle = math.ceil(back(scale(low) + share * (scale(high) - scale(low))))
        middle = min(max(middle, low + 1), high - 1)
        reached = error(middle)
        far = 2 * far if rising == (reached > target) else 1
        rising = reached > target
        if rising:
            low, above = middle, reached
        else:
            high, below = middle, reached
    return high
