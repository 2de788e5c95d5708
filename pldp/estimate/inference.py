"""From level estimates to one published histogram with its errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pldp.channels.protocol import Floats
from pldp.estimate.answer import EXTENDED, GUARDED, INVERTED, answer, combine_levels, gamma_of
from pldp.estimate.capped import UNCAPPED
from pldp.estimate.combine import LINEAR_METHODS, Combined, Levels, estimate_levels, spread
from pldp.estimate.critical import CONFIDENCE
from pldp.estimate.dependence import agreement
from pldp.estimate.invert import Cover
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

    method: str = GUARDED
    postprocess: str = "none"
    dependence: float | None = 1.0
    """Γ: how many times likelier, or less likely, the holders of a value may be to choose a level than people at large.
    None is `unknown`."""
    disagreement: str = "sum"
    alpha: float = 1e-3
    confidence: float = CONFIDENCE
    population: bool = False
    steps: int = DEFAULT_STEPS
    sum_to_one: bool = False
    level_weight_cap: float | None = None
    """How many times its share of the people a level may weigh at most; None is any number."""

    @property
    def cap(self) -> float:
        return UNCAPPED if self.level_weight_cap is None else self.level_weight_cap

    @property
    def cover(self) -> Cover:
        """What an interval must hold for."""
        return Cover(gamma_of(self.dependence), self.confidence, self.population, self.cap)

    @property
    def linear(self) -> str:
        """The unbiased combination beside the estimate."""
        return self.method if self.method in LINEAR_METHODS else GUARDED


@dataclass(frozen=True)
class Histogram:
    """One attribute's result. `method` is what was applied, after any fallback."""

    method: str
    frequency: Floats
    standard_error: Floats
    ci_low: Floats
    ci_high: Floats
    unbiased: Combined
    agreement: float
    """p-value of the declared dependence."""
    agreed: bool
    interval: str = "normal"
    """How the interval was made."""
    dependence: float | None = 1.0
    """How far choices may depend on values for the interval to hold; None is any far."""
    bias: Floats | None = None
    """The most that choices which depend on values as far as declared can add to the unbiased estimate."""
    converged: bool = True
    """Whether a likelihood was climbed to its end; everything else has one."""
    covariance: Floats | None = None
    """Of the cells' errors, where levels are hidden and it was asked for: of `frequency` for em, else of the unbiased
    estimate."""


def estimate_histogram(
    levels: Levels,
    recipe: Recipe,
    reference: Floats | None,
    rng: np.random.Generator,
    likelihood: Callable[[], Likelihood] | None = None,
) -> Histogram:
    """Test what is declared of choices, combine, post-process, and say how far off the result may be.

    Where the levels contradict the declared dependence, `sum` is used and nothing is assumed of it. Intervals are those
    of the unbiased estimate, by inverting tests; `em`'s is that of `guarded`, extended to hold its estimate. The
    standard error of a biased estimate is the root mean squared error of a parametric bootstrap; `em` has its from its
    information; `likelihood` is only called where it is used.
    """
    p_value = float(agreement(levels, recipe.dependence))
    agreed = p_value >= recipe.alpha
    if not agreed:
        recipe = replace(recipe, method="sum", dependence=None)
    method = recipe.method
    fit = None
    if method == "em":
        if likelihood is None:
            raise ValueError("method 'em' needs the likelihood of the reports")
        fit = likelihood()
    linear = answer(recipe.linear, levels, recipe.cover, None if fit is None else fit.frequency)
    unbiased = linear.combined
    beyond = spread(unbiased.frequency, levels.n_reports) / levels.n_reports if recipe.population else np.zeros(1)
    if fit is not None:
        frequency, error = fit.frequency, fit.standard_error
    else:
        frequency = apply(method, recipe, levels, reference)
        error = unbiased.standard_error
        if method not in LINEAR_METHODS or recipe.postprocess != "none":
            error = bootstrap_error(method, recipe, levels, unbiased.frequency, reference, rng)
    return Histogram(
        method=method,
        frequency=frequency,
        standard_error=np.sqrt(error**2 + beyond),
        ci_low=linear.low,
        ci_high=linear.high,
        unbiased=unbiased,
        agreement=p_value,
        agreed=agreed,
        interval=INVERTED if fit is None else EXTENDED,
        dependence=recipe.dependence,
        bias=linear.bias,
        converged=fit is None or fit.converged,
    )


def apply(method: str, recipe: Recipe, levels: Levels, reference: Floats | None) -> Floats:
    """Combine by `method` and post-process; leading dimensions are repetitions."""
    if method in LINEAR_METHODS:
        linear = combine_levels(method, levels, recipe.cover)
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
