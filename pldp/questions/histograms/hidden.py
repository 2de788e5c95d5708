"""From reports under hidden levels to one published histogram with its errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.estimate.answer import EXTENDED, INVERTED
from pldp.estimate.combine import Combined, spread
from pldp.estimate.distributions import norm
from pldp.estimate.hidden import Estimate, auem, draw_hidden, hidden_sum, level_shares, self_calibrated
from pldp.estimate.hidden_interval import calibrated_interval, fieller_interval, sum_interval
from pldp.estimate.inference import REPEATS, Histogram, Recipe
from pldp.estimate.likelihood import Blocks
from pldp.estimate.mixture import correct_em, emoa_paper
from pldp.estimate.postprocess import postprocess, project_to_simplex
from pldp.estimate.simulate import draw_levels, whole_counts

LIKELIHOODS = ("em", "emoa-paper")
"""Methods that need more of the reports than their support."""
INTERVALS = dict.fromkeys(LIKELIHOODS, EXTENDED)
"""How a method's interval is made; any other inverts what the method solves for."""
Moments = Callable[[Counts, Counts], Estimate]
"""An estimate from support by told level, (…, level, value), and how many told each level, (…, level)."""


def estimate_hidden(
    joint: Counts,
    reported: Counts,
    protocols: tuple[PureProtocol, ...],
    level_report: KRR,
    recipe: Recipe,
    blocks: Blocks | None,
    rng: np.random.Generator,
    *,
    with_covariance: bool = False,
) -> Histogram:
    """`joint` is the support by told level, `told` how many told each level.

    No level has an estimate of its own here, so there is nothing to test for agreement. The unbiased column is that of
    the method before post-processing, for likelihoods AUEM's: a ratio, unbiased as n grows. `sum` and its error hold
    however levels depend on values; any other method takes them to be chosen independently, whatever is declared.
    """
    unbiased = moments_of(recipe.method, protocols, level_report)(joint, reported)
    fit = _fit(joint, reported, protocols, level_report, recipe, blocks, unbiased, rng)
    covariance = fit.covariance if with_covariance else None
    if with_covariance and covariance is None:
        moments = moments_of(recipe.method, protocols, level_report)
        again, truth = _redraw(moments, reported, protocols, level_report, unbiased.frequency, rng)
        away = again.frequency - truth
        covariance = away.T @ away / REPEATS
    n_users = round(reported.sum())  # of a proof whole within rounding only
    beyond = spread(unbiased.frequency, n_users) / n_users if recipe.population else np.zeros(1)
    z = float(norm.ppf(0.5 + recipe.confidence / 2))
    low, high = interval(
        recipe.method, joint, reported, protocols, level_report, z, fit.frequency, population=recipe.population
    )
    return Histogram(
        method=recipe.method,
        frequency=fit.frequency,
        standard_error=np.sqrt(fit.error**2 + beyond),
        ci_low=low,
        ci_high=high,
        unbiased=Combined(unbiased.frequency, unbiased.standard_error, np.ones((1, unbiased.frequency.size))),
        agreement=1.0,
        agreed=True,
        interval=INTERVALS.get(recipe.method, INVERTED),
        dependence=None if recipe.method == "sum" else 1.0,
        bias=np.zeros_like(low),
        converged=fit.converged,
        covariance=covariance,
    )


@dataclass(frozen=True)
class _Fit:
    """What is published, its error, and of a likelihood whether it was climbed and how its cells hang together."""

    frequency: Floats
    error: Floats
    converged: bool = True
    covariance: Floats | None = None


def _fit(
    joint: Counts,
    reported: Counts,
    protocols: tuple[PureProtocol, ...],
    level_report: KRR,
    recipe: Recipe,
    blocks: Blocks | None,
    unbiased: Estimate,
    rng: np.random.Generator,
) -> _Fit:
    if recipe.method in LIKELIHOODS and blocks is None:
        raise ValueError(f"method {recipe.method!r} needs the reports")
    if recipe.method == "em" and blocks is not None:
        fitted = correct_em(blocks, protocols, level_report)
        return _Fit(fitted.frequency, fitted.standard_error, fitted.converged, fitted.covariance)
    if recipe.method == "emoa-paper" and blocks is not None:
        # febsf prints no error for it, and it has none: it is wrong. AUEM's stands there so that a row is complete.
        shares = level_shares(reported, level_report).frequency
        return _Fit(emoa_paper(blocks, protocols, unbiased.frequency, shares)[0], unbiased.standard_error)
    if recipe.postprocess == "none":
        return _Fit(unbiased.frequency, unbiased.standard_error)
    moments = moments_of(recipe.method, protocols, level_report)
    error = _bootstrap(moments, recipe, reported, protocols, level_report, unbiased.frequency, rng)
    return _Fit(postprocess(recipe.postprocess, unbiased.frequency, unbiased.standard_error), error)


def interval(
    method: str,
    joint: Counts,
    reported: Counts,
    protocols: tuple[PureProtocol, ...],
    level_report: PureProtocol,
    z: float,
    frequency: Floats,
    *,
    population: bool = False,
) -> tuple[Floats, Floats]:
    """One that holds whatever the reports about the level tell: by inverting what the method solves for.

    A likelihood carries AUEM's, extended to hold its own estimate `frequency`: its curvature knows nothing of ρ̂ at its
    bound. Leading dimensions are repetitions, of as many people each.
    """
    if method == "sum":
        ends = sum_interval(joint, reported, protocols, level_report, z, population=population)
    elif method == "self-calibrated":
        n_users = round(reported.reshape(-1, reported.shape[-1])[0].sum())
        ends = calibrated_interval(joint.sum(axis=-2), n_users, protocols, z, population=population)
    else:
        ends = fieller_interval(joint, reported, protocols, level_report, z, population=population)
    if method not in LIKELIHOODS:
        return ends.low, ends.high
    return np.minimum(ends.low, frequency), np.maximum(ends.high, frequency)


def moments_of(method: str, protocols: tuple[PureProtocol, ...], level_report: KRR) -> Moments:
    """Of a likelihood AUEM's: the unbiased estimate beside it."""
    if method == "sum":
        return lambda joint, reported: hidden_sum(joint, reported, protocols, level_report)
    if method != "self-calibrated":
        return lambda joint, reported: auem(joint, reported, protocols, level_report)
    return lambda joint, reported: self_calibrated(joint.sum(axis=-2), round(reported.sum(axis=-1).flat[0]), protocols)


def _bootstrap(
    moments: Moments,
    recipe: Recipe,
    reported: Counts,
    protocols: tuple[PureProtocol, ...],
    level_report: KRR,
    unbiased: Floats,
    rng: np.random.Generator,
) -> Floats:
    """Root mean squared error per cell of what is published."""
    again, truth = _redraw(moments, reported, protocols, level_report, unbiased, rng)
    error = postprocess(recipe.postprocess, again.frequency, again.standard_error) - truth
    rmse: Floats = np.sqrt(np.mean(error**2, axis=0))
    return np.maximum(rmse, 1 / int(reported.sum()) / np.sqrt(REPEATS))


def _redraw(
    moments: Moments,
    reported: Counts,
    protocols: tuple[PureProtocol, ...],
    level_report: KRR,
    unbiased: Floats,
    rng: np.random.Generator,
) -> tuple[Estimate, Floats]:
    """Estimates over again if the projected ones were the truth and levels were chosen blindly, and that truth."""
    n_users = round(reported.sum())
    counts = whole_counts(project_to_simplex(unbiased), n_users)
    sizes = whole_counts(project_to_simplex(level_shares(reported, level_report).frequency), n_users)
    dealt = draw_levels(counts, sizes, REPEATS, rng)
    return moments(*draw_hidden(dealt, protocols, level_report, rng)), counts / n_users


def moment_test(
    joint: Counts, reported: Counts, protocols: tuple[PureProtocol, ...], level_report: KRR, truth: Floats
) -> Floats:
    """p-value of an evaluation's reports against the truth, the worst value times their number (Bonferroni).

    AUEM is a ratio, so its own error has heavy tails. What it solves for is a mean: with c_l(b) the unbiased indicator
    of level l, ψ = 1{Z supports j} − Σ_l [q_l + f_j (p_l − q_l)] c_l(b) has mean zero at the truth f, whatever level
    anybody chose. Its variance is taken between users, no less than with users fixed: the test is conservative.
    Holds if levels are chosen independently of the value.
    """
    n_users = reported.sum(axis=-1)
    unit = (np.eye(len(protocols)) - level_report.q) / level_report.gap  # c_l(b) as (told, level)
    p, q = (np.array([getattr(protocol, side) for protocol in protocols]) for side in "pq")
    expected = unit @ (q[:, None] + (p - q)[:, None] * truth)  # (told, value)
    tail = reported[..., None] - joint
    mean = (joint - reported[..., None] * expected).sum(axis=-2) / n_users[..., None]
    square = (joint * (1 - expected) ** 2 + tail * expected**2).sum(axis=-2) / n_users[..., None]
    # A value that hardly any report supports shows no variance of its own: it has at least what the truth implies.
    implied = np.clip((reported[..., None] * expected).sum(axis=-2) / n_users[..., None], 0, 1)
    variance = np.maximum(np.maximum(square - mean**2, implied * (1 - implied)), 1 / n_users[..., None])
    z = np.abs(mean) * np.sqrt(n_users[..., None] / variance)
    worst: Floats = 2 * norm.sf(z).min(axis=-1) * truth.size
    return np.minimum(worst, 1.0)


def sum_test(
    joint: Counts, reported: Counts, protocols: tuple[PureProtocol, ...], level_report: KRR, truth: Floats
) -> Floats:
    """The same for `sum`, however levels depend on values."""
    estimate = hidden_sum(joint, reported, protocols, level_report)
    z = np.abs(estimate.frequency - truth) / estimate.standard_error
    return np.minimum(2 * norm.sf(z).min(axis=-1) * truth.size, 1.0)
