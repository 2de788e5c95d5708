"""From the levels' counts to means and quantiles of all users, with their errors.

Levels may sample different numbers of questions, so a report of one level stands for more users than one of another.
`reports` and `scaled` therefore estimate every level by itself and weigh levels by their users: right however users
choose levels and what matters to them. `inverse-variance` pools all classes of all levels and assumes that neither
choice depends on the value; where the spec declares that they may, or the classes disagree, it is not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pldp.channels.numeric.window import GRID_BITS
from pldp.estimate.distributions import t
from pldp.estimate.inference import Recipe
from pldp.questions.numbers.chance import Chance
from pldp.questions.numbers.distribution import Distribution, estimate_quantiles
from pldp.questions.numbers.means import Groups, Mean, agreement, estimate_groups, inverse_variance, mean_interval
from pldp.questions.numbers.plan import DISTRIBUTION, MEAN, NumbersPlan
from pldp.questions.numbers.reports import NumberCounts

FALLBACK = "reports"

_ROUNDING = 2.0**-GRID_BITS
"""Standard deviation of the random rounding to a mechanism's grid at most, in [−1, 1] terms (half a step): with budgets
that leave no other noise it is all the error there is, and estimated variances do not see it."""


@dataclass(frozen=True)
class NumberMean:
    """One attribute's mean; `mean.method` is what was applied, after any fallback."""

    attribute: str
    mean: Mean
    agreement: float
    agreed: bool


@dataclass(frozen=True)
class NumbersResult:
    """Everything about numbers that comes before the gates; `counts` and `users` by level."""

    counts: tuple[NumberCounts, ...]
    users: tuple[int, ...]
    means: tuple[NumberMean, ...]
    quantiles: tuple[Distribution, ...]


def estimate(
    plan: NumbersPlan,
    recipe: Recipe,
    counts: Sequence[NumberCounts],
    generator: Callable[[str], np.random.Generator],
) -> NumbersResult:
    """Means and quantiles of every attribute that has them, from the counts of every level.

    The bootstrap behind quantiles simulates from what the reports tell, so its generator needs no secret.
    """
    quantiles = tuple(
        estimate_quantiles(plan, counts, i, recipe, generator(f"{question.attribute} quantiles"))
        for i, question in enumerate(plan.questions)
        if question.kind == DISTRIBUTION
    )
    return NumbersResult(tuple(counts), users_of(plan, counts), estimate_means(plan, counts, recipe), quantiles)


def users_of(plan: NumbersPlan, counts: Sequence[NumberCounts]) -> tuple[int, ...]:
    """How many users stand behind each level's reports: everybody answers k questions."""
    return tuple(counted.n_reports // level.sampled for counted, level in zip(counts, plan.levels, strict=True))


def estimate_means(
    plan: NumbersPlan, counts: Sequence[NumberCounts], recipe: Recipe, method: str | None = None
) -> tuple[NumberMean, ...]:
    """Every attribute's mean by the plan's estimator, or by `method` without a fallback."""
    asked = [i for i, question in enumerate(plan.questions) if question.kind == MEAN]
    return tuple(_mean(plan, counts, i, recipe, method) for i in asked)


def _mean(
    plan: NumbersPlan, counts: Sequence[NumberCounts], asked: int, recipe: Recipe, method: str | None
) -> NumberMean:
    question, users = plan.questions[asked], users_of(plan, counts)
    n_users = sum(users)
    by_level = [
        (plan.mechanisms(asked, i), [counted.means[asked, c] for c in range(len(level.classes))])
        for i, (level, counted) in enumerate(zip(plan.levels, counts, strict=True))
    ]
    mechanisms = [m for level, _ in by_level for m in level]
    tallies = [tally for _, level in by_level for tally in level]
    independent = recipe.dependence == 1
    agreed_by = agreement(mechanisms, tallies, n_users) if independent else 1.0
    agreed = agreed_by >= recipe.alpha
    pools = plan.estimator == "inverse-variance"
    used = method or (FALLBACK if pools and not (independent and agreed) else plan.estimator)
    pooled = Groups.of(mechanisms, tallies)
    bounds = question.bounds
    if pooled.reports == 0:
        return NumberMean(
            question.attribute, Mean(used, math.nan, math.inf, bounds.lower, bounds.upper, 0), agreed_by, agreed
        )
    if used == "inverse-variance":
        mean, variance, between = estimate_groups(used, pooled, n_users, 1.0, recipe.cap)
    else:
        sampling = [level.sampled / len(plan.questions) for level in plan.levels]
        groups = [Groups.of(*level) for level in by_level]
        mean, variance, between, sampled = _by_level(used, groups, users, sampling)
    if recipe.population:
        variance += between / n_users
    error = max(math.sqrt(variance), _ROUNDING / math.sqrt(pooled.reports)) * bounds.half_width
    # Student's, because with few reports the variance is itself a guess.
    z = float(t.ppf(0.5 + recipe.confidence / 2, max(pooled.reports - 1, 1)))
    centre = bounds.decode(mean)
    if used == "inverse-variance":
        ends = _inverted(pooled, n_users, z, recipe)
    else:
        drawn = recipe.population / n_users
        chance = Chance(mean, error / bounds.half_width, between, sampled, drawn, scaled=used == "scaled")
        ends = chance.interval(z)
    low, high = (float(np.clip(bounds.decode(end), bounds.lower, bounds.upper)) for end in ends)
    return NumberMean(question.attribute, Mean(used, centre, error, low, high, pooled.reports), agreed_by, agreed)


def _inverted(groups: Groups, n_users: int, z: float, recipe: Recipe) -> tuple[float, float]:
    """The means that a test with their own noise does not reject, in [−1, 1] terms; of a population the part of the
    variance that is left of knowing all users goes."""
    pooled = inverse_variance(groups, n_users, recipe.cap)
    low, high = mean_interval(groups, pooled, None if recipe.population else n_users, z)
    floor = z * _ROUNDING / math.sqrt(groups.reports)
    centre = float(np.clip(pooled.mean, -1, 1))
    return min(low, centre - floor), max(high, centre + floor)


def _by_level(
    method: str, groups: Sequence[Groups], users: Sequence[int], sampling: Sequence[float]
) -> tuple[float, float, float, float]:
    """Mean, variance and S² of all users: levels weigh as much as they have users. Last, what S² counts for in the
    variance because only some were asked: where it counts for most, as there more of it may be than was seen.

    A level none of whose users sampled the question takes the others' mean; of what it may be instead, anything in
    [−1, 1], the variance is at most 1.
    """
    n_users, silent = sum(users), 0
    means: list[tuple[int, float, float, float]] = []
    sampled = 0.0
    for group, n, share in zip(groups, users, sampling, strict=True):
        if n and group.reports:
            means.append((n, *estimate_groups(method, group, n, share)))
            sampled = max(sampled, (n / group.reports - 1) / n_users)
        else:
            silent += n
    heard = n_users - silent
    mean = sum(n * at for n, at, _, _ in means) / heard
    variance = sum((n / heard) ** 2 * var for n, _, var, _ in means) + (silent / n_users) ** 2
    return mean, variance, sum(n / heard * (between + (at - mean) ** 2) for n, at, _, between in means), sampled
