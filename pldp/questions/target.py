"""How large a budget, or how many people, it takes to reach a target error; from the spec's assumptions alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pldp.questions.plan import Plan

_MOST_USERS = 10**12
_LEAST_BUDGET, _MOST_BUDGET = 1e-6, 1000.0
_STEPS = 37  # a quarter of a decade each
_HALVINGS = 24


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
    budget = budget_for(plan_at, wanted)
    return Target(wanted, budget, users_for(plan, wanted), covers, largest_error(plan)[0])


def largest_error(plan: Plan, users: int | None = None) -> tuple[str, float]:
    """What has the largest predicted standard error, as a share, and that error."""
    errors: dict[str, float] = {}
    for question in plan.questions:
        errors |= question.typical_errors(users)
    return max(errors.items(), key=lambda error: error[1], default=("", 0.0))


def users_for(plan: Plan, target: float) -> int | None:
    """The fewest people that reach the target at this budget."""
    low, high = 1, _MOST_USERS
    if largest_error(plan, high)[1] > target:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if largest_error(plan, middle)[1] <= target else (middle + 1, high)
    return low


def budget_for(plan_at: Callable[[Fraction], Plan], target: float) -> float | None:
    """The smallest total budget that reaches the target with the expected people.

    Some budgets have no plan: where levels are hidden, those that would tell too much about them. So the search goes
    upwards until a budget reaches the target, then halves the step before it.
    """

    def reaches(total: float) -> bool:
        try:
            return largest_error(plan_at(Fraction(str(total))))[1] <= target
        except ValueError:
            return False

    grid = np.geomspace(_LEAST_BUDGET, _MOST_BUDGET, _STEPS).tolist()
    first = next((i for i, total in enumerate(grid) if reaches(total)), None)
    if first is None:
        return None
    low, high = grid[max(first - 1, 0)], grid[first]
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high
