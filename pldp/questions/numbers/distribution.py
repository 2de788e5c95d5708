"""From the levels' counts to the distribution of one attribute: bins by `em`, quantiles with intervals by ramps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pldp.channels.numeric.domain import Floats
from pldp.estimate.distributions import t
from pldp.estimate.inference import Recipe
from pldp.questions.numbers.histogram import Histogram, coarser, estimate_histogram
from pldp.questions.numbers.plan import DISTRIBUTION, NumbersPlan, Question
from pldp.questions.numbers.quantiles import Quantile, quantiles
from pldp.questions.numbers.ramps import Class, Design, estimate_ramps, quantile_bins
from pldp.questions.numbers.reports import NumberCounts

EM, BY_LEVEL = "em", "em by level"
BOOTSTRAP = 100
"""Repetitions behind the errors of bins: they know a standard error to 7 %."""


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
    dependence: float | None = 1.0
    """How far choices may depend on values for the intervals to hold; None is any far."""


def estimate_quantiles(
    plan: NumbersPlan,
    counts: Sequence[NumberCounts],
    asked: int,
    recipe: Recipe,
    rng: np.random.Generator,
    repeats: int = BOOTSTRAP,
) -> Distribution:
    """At Γ = 1 all levels and classes in one likelihood. Else every level by itself, weighed by its people, and
    intervals that hold however people choose levels and importance; so too where the weight of a level is capped: a
    likelihood has no weights."""
    question = plan.questions[asked]
    if question.kind != DISTRIBUTION:
        raise ValueError("only a distribution has quantiles")
    users = [counted.n_reports // level.sampled for counted, level in zip(counts, plan.levels, strict=True)]
    independent = pools(recipe)
    method = EM if independent else BY_LEVEL
    classes = [
        Class(i, window, counted.buckets[asked, c])
        for i, counted in enumerate(counts)
        for c, window in enumerate(plan.windows(asked, i))
        if counted.buckets[asked, c].any()
    ]
    if not classes:
        nothing = tuple(Quantile(p, math.nan, math.inf, question.lower, question.upper) for p in question.probabilities)
        return Distribution(question.attribute, method, nothing, np.zeros(1), np.zeros(0), np.zeros(0), 0)
    groups = [classes] if independent else [[one for one in classes if one.level == i] for i in range(len(users))]
    bins = _bins(question, [group for group in groups if group], users, rng, repeats)
    return Distribution(
        attribute=question.attribute,
        method=method,
        quantiles=_quantiles(question, bins, classes, users, recipe),
        edges=bins.edges,
        frequency=bins.frequency,
        standard_error=bins.standard_error,
        n_reports=bins.n_reports,
        dependence=1.0 if independent else None,
    )


def pools(recipe: Recipe) -> bool:
    """Whether all levels and classes share one likelihood."""
    return recipe.dependence == 1 and recipe.level_weight_cap is None


def _bins(
    question: Question,
    groups: Sequence[Sequence[Class]],
    users: Sequence[int],
    rng: np.random.Generator,
    repeats: int,
) -> Histogram:
    """Groups that each have a likelihood of their own, weighed by the people they stand for."""
    factor = question.resolution // question.bins
    stands_for = [sum(users) if len(groups) == 1 else users[group[0].level] for group in groups]
    parts = [
        estimate_histogram(
            [one.mechanism for one in group],
            [coarser(one.counts, factor) for one in group],
            n,
            question.bounds,
            question.bins,
            rng,
            repeats,
        )
        for group, n in zip(groups, stands_for, strict=True)
    ]
    shares = np.array(stands_for) / sum(stands_for)
    frequency = sum(share * part.frequency for share, part in zip(shares, parts, strict=True))
    covariance = sum(share**2 * part.covariance for share, part in zip(shares, parts, strict=True))
    return Histogram(parts[0].edges, frequency, covariance, sum(part.n_reports for part in parts))


def _quantiles(
    question: Question, bins: Histogram, classes: Sequence[Class], users: Sequence[int], recipe: Recipe
) -> tuple[Quantile, ...]:
    """Points by the bins, intervals by ramps, so long that they hold the point; the standard error is half of the
    interval over its normal factor."""
    n, m, resolution = sum(users), sum(one.n for one in classes), question.resolution
    z = float(t.ppf(0.5 + recipe.confidence / 2, max(m - 1, 1)))
    evenly = np.repeat(bins.frequency, resolution // question.bins) * question.bins / resolution
    pilot = (np.append(evenly, 0.0) + np.append(0.0, evenly)) / 2
    design = Design.of(classes, users, resolution, pilot, independent=pools(recipe))
    ramps = estimate_ramps(design, None if recipe.population else n)
    answered = {one.level for one in classes}
    silent = sum(size for level, size in enumerate(users) if level not in answered) / n
    edges = np.linspace(question.lower, question.upper, resolution + 1)
    nothing = np.zeros((question.bins, question.bins))
    points = quantiles(bins.edges, bins.frequency, nothing, question.probabilities)
    intervals = []
    for point in points:
        p = point.probability
        floor = math.sqrt(p * (1 - p) * (1 / m if recipe.population else max(1 / m - 1 / n, 0.0)))
        # Levels of which nobody reported may lie anywhere.
        low = edges[quantile_bins(ramps, (p - silent) / (1 - silent), resolution, z, floor)[0]]
        high = edges[quantile_bins(ramps, p / (1 - silent), resolution, z, floor)[1]]
        low, high = min(float(low), point.quantile), max(float(high), point.quantile)
        intervals.append(Quantile(p, point.quantile, (high - low) / (2 * z), low, high))
    return tuple(intervals)
