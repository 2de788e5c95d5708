"""From the levels' counts to means and quantiles of all users, with their errors.

Levels may sample different numbers of questions, so a report of one level stands for more users than one of another.
`reports` and `scaled` therefore estimate every level by itself and weigh levels by their users: right however users
choose levels and what matters to them. `inverse-variance` pools all classes of all levels and assumes that neither
choice depends on the value; where the spec declares that they may, or the classes disagree, it is not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pldp.channels.numeric.domain import Floats
from pldp.channels.numeric.window import GRID_BITS
from pldp.estimate.distributions import t
from pldp.estimate.inference import Recipe
from pldp.estimate.score import mean_interval
from pldp.questions.numbers.histogram import estimate_histogram
from pldp.questions.numbers.means import Groups, Mean, agreement, estimate_groups, inverse_variance
from pldp.questions.numbers.plan import DISTRIBUTION, MEAN, NumbersPlan
from pldp.questions.numbers.quantiles import Quantile, quantiles
from pldp.questions.numbers.reports import NumberCounts

FALLBACK = "reports"
EM = "em"
BOOTSTRAP = 100
"""Repetitions behind the errors of quantiles: they know a standard error to 7 %."""

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
class Distribution:
    """One attribute's quantiles, and the bins behind them; no bins where nobody reported."""

    attribute: str
    method: str
    quantiles: tuple[Quantile, ...]
    edges: Floats
    frequency: Floats
    standard_error: Floats
    n_reports: int


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
    return tuple(found.n_reports // level.sampled for found, level in zip(counts, plan.levels, strict=True))


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
        (plan.mechanisms(asked, i), [found.means[asked, c] for c in range(len(level.classes))])
        for i, (level, found) in enumerate(zip(plan.levels, counts, strict=True))
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
        mean, variance, between = estimate_groups(used, pooled, n_users, 1.0)
    else:
        sampling = [level.sampled / len(plan.questions) for level in plan.levels]
        groups = [Groups.of(*level) for level in by_level]
        mean, variance, between = _by_level(used, groups, users, sampling)
    if recipe.population:
        variance += between / n_users
    error = max(math.sqrt(variance), _ROUNDING / math.sqrt(pooled.reports)) * bounds.half_width
    # Student's, because with few reports the variance is itself a guess.
    z = float(t.ppf(0.5 + recipe.confidence / 2, max(pooled.reports - 1, 1)))
    centre = bounds.decode(mean)
    ends = [centre - z * error, centre + z * error]
    if used == "inverse-variance":
        ends = [bounds.decode(end) for end in _inverted(pooled, n_users, z, population=recipe.population)]
    low, high = (float(np.clip(end, bounds.lower, bounds.upper)) for end in ends)
    return NumberMean(question.attribute, Mean(used, centre, error, low, high, pooled.reports), agreed_by, agreed)


def _inverted(groups: Groups, n_users: int, z: float, *, population: bool) -> tuple[float, float]:
    """The means that a test with their own noise does not reject, in [−1, 1] terms; of a population the part of the
    variance that is left of knowing all users goes."""
    pooled = inverse_variance(groups, n_users)
    behind = 1 << 60 if population else n_users
    found = mean_interval(
        np.array(pooled.mean), np.array(pooled.moment), pooled.weights, groups.n, groups.base, groups.gain, behind, z
    )
    floor = z * _ROUNDING / math.sqrt(groups.reports)
    centre = float(np.clip(pooled.mean, -1, 1))
    return min(float(found.low), centre - floor), max(float(found.high), centre + floor)


def _by_level(
    method: str, groups: Sequence[Groups], users: Sequence[int], sampling: Sequence[float]
) -> tuple[float, float, float]:
    """Mean, variance and S² of all users: levels weigh as much as they have users.

    A level none of whose users sampled the question takes the others' mean; of what it may be instead, anything in
    [−1, 1], the variance is at most 1.
    """
    n_users, silent = sum(users), 0
    found: list[tuple[int, float, float, float]] = []
    for group, n, share in zip(groups, users, sampling, strict=True):
        if n and group.reports:
            found.append((n, *estimate_groups(method, group, n, share)))
        else:
            silent += n
    told = n_users - silent
    mean = sum(n * at for n, at, _, _ in found) / told
    variance = sum((n / told) ** 2 * var for n, _, var, _ in found) + (silent / n_users) ** 2
    return mean, variance, sum(n / told * (between + (at - mean) ** 2) for n, at, _, between in found)


def estimate_quantiles(
    plan: NumbersPlan, counts: Sequence[NumberCounts], asked: int, recipe: Recipe, rng: np.random.Generator
) -> Distribution:
    """All levels and classes in one likelihood, by EM: levels are taken to be chosen without regard to the value."""
    question = plan.questions[asked]
    if question.kind != DISTRIBUTION:
        raise ValueError("only a distribution has quantiles")
    n_users, probabilities = sum(users_of(plan, counts)), question.probabilities
    windows, buckets = [], []
    for i, found_at in enumerate(counts):
        for c, window in enumerate(plan.windows(asked, i)):
            seen = found_at.buckets[asked, c]
            if seen.any():
                windows.append(window)
                buckets.append(seen)
    if not windows:
        nothing = tuple(Quantile(p, math.nan, math.inf, question.lower, question.upper) for p in probabilities)
        return Distribution(question.attribute, EM, nothing, np.zeros(1), np.zeros(0), np.zeros(0), 0)
    found = estimate_histogram(EM, windows, buckets, n_users, question.bounds, question.bins, rng, BOOTSTRAP)
    return Distribution(
        attribute=question.attribute,
        method=EM,
        quantiles=with_errors(
            found.edges,
            found.frequency,
            found.covariance,
            probabilities,
            n_users,
            recipe.confidence,
            recipe.population,
        ),
        edges=found.edges,
        frequency=found.frequency,
        standard_error=found.standard_error,
        n_reports=found.n_reports,
    )


def with_errors(
    edges: Floats,
    share: Floats,
    covariance: Floats,
    probabilities: Sequence[float],
    n_users: int,
    confidence: float,
    population: bool,
) -> tuple[Quantile, ...]:
    """Quantiles of these users, or of the population behind them; no standard error is quite zero."""
    if population:
        covariance = covariance + (np.diag(share) - np.outer(share, share)) / n_users
    found = quantiles(edges, share, covariance, probabilities, confidence)
    floor = _ROUNDING * float(edges[-1] - edges[0]) / 2
    return tuple(replace(q, standard_error=max(q.standard_error, floor)) for q in found)
