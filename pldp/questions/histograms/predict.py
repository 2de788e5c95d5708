"""What a plan promises the analyst, from the spec's assumptions alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats
from pldp.estimate.combine import (
    LINEAR_METHODS,
    Levels,
    estimate_levels,
    linear_variance,
    linear_weights,
    noise_variances,
    spread,
)
from pldp.estimate.hidden import auem, self_calibrated
from pldp.estimate.inference import Recipe, apply
from pldp.estimate.likelihood import MOST_VALUES, table_blocks
from pldp.estimate.mixture import correct_em
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from pldp.questions.histograms.plan import AttributePlan, HiddenPlan, Plan
from pldp.questions.numbers.predict import mean_shares

SIMULATIONS = 400
_MOST_USERS = 10**12
_LEAST_BUDGET, _MOST_BUDGET = 1e-6, 1000.0
_STEPS = 37  # a quarter of a decade each
_HALVINGS = 24


@dataclass(frozen=True)
class LevelCost:
    """What the analyst pays when people choose a level."""

    level: str
    standard_error: float
    """Typical standard error of this level's own estimate."""
    everyone: float
    """Typical standard error of the histogram if everybody chose this level."""
    information: float
    """What one user at this level tells, as a share of what one at the weakest level tells."""


def typical(standard_error: Floats) -> float:
    """One number for an attribute: the root mean square over its values."""
    return float(np.sqrt(np.mean(np.square(standard_error))))


def predict_linear(attribute: AttributePlan, method: str, sizes: Counts, frequency: Floats) -> Floats:
    """Standard error of `sum`, `oc` or `oc+` per value, if levels are chosen independently of the value."""
    chosen = sizes > 0
    protocols = tuple(p for p, has_users in zip(attribute.protocols, chosen, strict=True) if has_users)
    noise = noise_variances(protocols, frequency)
    between = spread(frequency, int(sizes.sum()))
    weights = linear_weights(method, sizes[chosen], noise, between)
    return np.sqrt(linear_variance(weights, sizes[chosen], noise, between))


def predict_level(attribute: AttributePlan, level: int, size: int, frequency: Floats) -> Floats:
    """Standard error of one level's estimate of its own users."""
    return np.sqrt(attribute.protocols[level].noise_variance(frequency) / max(size, 1))


def predict_simulated(
    attribute: AttributePlan, method: str, recipe: Recipe, sizes: Counts, frequency: Floats, rng: np.random.Generator
) -> Floats:
    """Root mean squared error of a biased choice (`op`, post-processing), by simulation; `op` with the truth."""
    counts = whole_counts(frequency, int(sizes.sum()))
    truth = counts / counts.sum()
    levels = _simulate(attribute, counts, sizes, rng)
    return np.sqrt(np.mean((apply(method, recipe, levels, truth) - truth) ** 2, axis=0))


def _simulate(attribute: AttributePlan, counts: Counts, sizes: Counts, rng: np.random.Generator) -> Levels:
    dealt = draw_levels(counts, sizes, SIMULATIONS, rng)
    return estimate_levels(draw_support(dealt, attribute.protocols, rng), sizes, attribute.protocols)


def predict_hidden(attribute: AttributePlan, hidden: HiddenPlan, sizes: Counts, frequency: Floats) -> dict[str, Floats]:
    """Standard errors per value by method where levels are hidden, from the counts to be expected.

    `em` only where distinct reports are few (k-RR); elsewhere it is no worse than the others.
    """
    protocols, report = attribute.protocols, hidden.protocol
    n_users = int(sizes.sum())
    telling = np.full((sizes.size, sizes.size), report.q) + np.eye(sizes.size) * report.gap
    supported = np.stack([protocol.q + frequency * protocol.gap for protocol in protocols])
    told = sizes @ telling
    joint = telling.T @ (sizes[:, None] * supported)
    errors = {"auem": auem(joint, told, protocols, report).standard_error}
    if isinstance(protocols[0], KRR) and frequency.size <= MOST_VALUES:
        fitted = correct_em(table_blocks(protocols, joint), protocols, report)
        errors["em"] = fitted.standard_error
    elif attribute.levels[0].mechanism == "brr" and frequency.size > 2:
        errors["self-calibrated"] = self_calibrated(joint.sum(axis=0), n_users, protocols).standard_error
    return errors


def level_costs(attribute: AttributePlan, sizes: Counts, frequency: Floats) -> tuple[LevelCost, ...]:
    n_users = int(sizes.sum())
    told = [
        float(np.mean(1 / (protocol.noise_variance(frequency) + spread(frequency, n_users))))
        for protocol in attribute.protocols
    ]
    return tuple(
        LevelCost(
            level=level.level,
            standard_error=typical(predict_level(attribute, i, int(sizes[i]), frequency)),
            everyone=typical(predict_level(attribute, i, n_users, frequency)),
            information=told[i] / max(told),
        )
        for i, level in enumerate(attribute.levels)
    )


def worst_error(plan: Histograms, users: int | None = None) -> float:
    return largest_error(plan, users)[1]


def largest_error(plan: Histograms, users: int | None = None) -> tuple[str, float]:
    """The attribute of the largest typical standard error, and that error, before post-processing.

    Of `oc+` where the method has no formula; where levels are hidden, of the method or else of `auem`. The error of a
    mean counts as a share of its range; quantiles have no prediction and do not enter.
    """
    sizes = plan.expected_sizes(users)
    errors = {}
    for attribute in plan.attributes:
        if plan.hidden is not None:
            found = predict_hidden(attribute, plan.hidden, sizes, attribute.frequencies)
            error = found.get(plan.recipe.method, found["auem"])
        else:
            method = plan.recipe.method if plan.recipe.method in LINEAR_METHODS else "oc+"
            error = predict_linear(attribute, method, sizes, attribute.frequencies)
        errors[attribute.name] = typical(error)
    if plan.numbers is not None:
        errors |= mean_shares(plan.numbers, sizes)
    return max(errors.items(), key=lambda found: found[1])


def users_for(plan: Histograms, target: float) -> int | None:
    """The fewest users that reach the target at this budget."""
    low, high = len(plan.levels), _MOST_USERS
    if worst_error(plan, high) > target:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if worst_error(plan, middle) <= target else (middle + 1, high)
    return low


def budget_for(plan_at: Callable[[Fraction], Plan], target: float) -> float | None:
    """The smallest total budget that reaches the target with the expected users.

    Some budgets have no plan: where levels are hidden, those that would tell too much about them. So the search goes
    upwards until a budget reaches the target, then halves the step before it.
    """

    def reaches(total: float) -> bool:
        try:
            return worst_error(plan_at(Fraction(str(total)))) <= target
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
