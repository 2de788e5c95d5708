"""From level estimates to one published histogram with its errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pldp.channels.protocol import Floats
from pldp.estimate.checks import homogeneity
from pldp.estimate.combine import (
    LINEAR_METHODS,
    Combined,
    Levels,
    combine_linear,
    estimate_levels,
    linear_covariance,
    spread,
)
from pldp.estimate.distributions import norm
from pldp.estimate.likelihood import Likelihood
from pldp.estimate.op import DEFAULT_STEPS, perturbation_method, smallest_maximum
from pldp.estimate.postprocess import postprocess, project_to_simplex
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts

REPEATS = 200
RELIABLE = 3.0
"""An estimate is called reliable when it exceeds this many standard errors."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """How an attribute's levels become one histogram; part of the plan."""

    method: str = "oc+"
    postprocess: str = "none"
    disagreement: str = "sum"
    alpha: float = 1e-3
    confidence: float = 0.95
    population: bool = False
    steps: int = DEFAULT_STEPS
    sum_to_one: bool = False


@dataclass(frozen=True)
class Histogram:
    """One attribute's result. `method` is what was applied, after any fallback."""

    method: str
    biased: bool
    frequency: Floats
    standard_error: Floats
    ci_low: Floats
    ci_high: Floats
    unbiased: Combined
    agreement: float
    agreed: bool
    converged: bool = True
    """Whether a likelihood was climbed to its end; everything else has one."""
    covariance: Floats | None = None
    """Of the cells' errors, where it was asked for: of `frequency` for em, of the unbiased estimate else."""


def estimate_histogram(
    levels: Levels,
    recipe: Recipe,
    reference: Floats | None,
    rng: np.random.Generator,
    likelihood: Callable[[], Likelihood] | None = None,
    *,
    with_covariance: bool = False,
) -> Histogram:
    """Test that the levels agree, combine them, post-process, and say how far off the result may be.

    The estimate follows a pre-test: where levels disagree, weights that assume agreement would be biased, and `sum`
    is used instead. Intervals are those of the unbiased estimate, cut to [0, 1]; the standard error of a biased one
    is the root mean squared error of a parametric bootstrap. `em` has both from its information; `likelihood` is only
    called where it is used.
    """
    pooled = combine_linear("oc+", levels)
    agreement = float(homogeneity(levels, pooled.frequency))
    agreed = agreement >= recipe.alpha
    linear = recipe.method if recipe.method in LINEAR_METHODS else "oc+"
    unbiased = combine_linear(linear if agreed else "sum", levels)
    method = recipe.method if agreed else "sum"
    beyond = spread(unbiased.frequency, levels.n_reports) / levels.n_reports if recipe.population else np.zeros(1)
    converged, covariance = True, None
    if method == "em":
        if likelihood is None:
            raise ValueError("method 'em' needs the likelihood of the reports")
        found = likelihood()
        converged, covariance = found.converged, found.covariance if with_covariance else None
        frequency, error = found.frequency, found.standard_error
        low, high = interval(frequency, error, beyond, recipe)
    else:
        frequency = apply(method, recipe, levels, reference)
        low, high = interval(unbiased.frequency, unbiased.standard_error, beyond, recipe)
        error = unbiased.standard_error
        covariance = linear_covariance(levels, unbiased) if with_covariance else None
        if method not in LINEAR_METHODS or recipe.postprocess != "none":
            error = bootstrap_error(method, recipe, levels, unbiased.frequency, reference, rng)
    return Histogram(
        method=method,
        biased=method not in LINEAR_METHODS or recipe.postprocess != "none",
        frequency=frequency,
        standard_error=np.sqrt(error**2 + beyond),
        ci_low=low,
        ci_high=high,
        unbiased=unbiased,
        agreement=agreement,
        agreed=agreed,
        converged=converged,
        covariance=covariance,
    )


def interval(frequency: Floats, standard_error: Floats, beyond: Floats, recipe: Recipe) -> tuple[Floats, Floats]:
    """Two-sided, cut to [0, 1]; `beyond` is the variance between these users and a population behind them."""
    half = norm.ppf(0.5 + recipe.confidence / 2) * np.sqrt(standard_error**2 + beyond)
    return np.clip(frequency - half, 0, 1), np.clip(frequency + half, 0, 1)


def apply(method: str, recipe: Recipe, levels: Levels, reference: Floats | None) -> Floats:
    """Combine by `method` and post-process; leading dimensions are repetitions."""
    if method in LINEAR_METHODS:
        linear = combine_linear(method, levels)
        return postprocess(recipe.postprocess, linear.frequency, linear.standard_error)
    if reference is None:
        raise ValueError(f"method {method!r} needs a reference histogram")
    if method == "op":
        combined = perturbation_method(levels.frequencies, reference, recipe.steps, recipe.sum_to_one)
    else:
        flat = levels.frequencies.reshape(-1, *levels.frequencies.shape[-2:])
        solved = [smallest_maximum(estimates, reference, recipe.sum_to_one) for estimates in flat]
        combined = np.stack(solved).reshape(*levels.frequencies.shape[:-2], -1)
    return postprocess(recipe.postprocess, combined)


def bootstrap_error(
    method: str,
    recipe: Recipe,
    levels: Levels,
    unbiased: Floats,
    reference: Floats | None,
    rng: np.random.Generator,
) -> Floats:
    """Root mean squared error per cell if the projected estimate were the truth and levels were chosen blindly."""
    counts = whole_counts(project_to_simplex(unbiased), levels.n_reports)
    truth = counts / levels.n_reports
    dealt = draw_levels(counts, levels.n, REPEATS, rng)
    again = estimate_levels(draw_support(dealt, levels.protocols, rng), levels.n, levels.protocols)
    error = apply(method, recipe, again, reference) - truth
    rmse: Floats = np.sqrt(np.mean(error**2, axis=0))
    # A cell that the bootstrap always sets to zero still has an error: at least the smallest one it could show.
    return np.maximum(rmse, 1 / levels.n_reports / np.sqrt(REPEATS))
