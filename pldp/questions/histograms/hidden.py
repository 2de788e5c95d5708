"""From reports under hidden levels to one published histogram with its errors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.estimate.combine import Combined, spread
from pldp.estimate.distributions import norm
from pldp.estimate.hidden import Estimate, auem, draw_hidden, level_shares, self_calibrated
from pldp.estimate.inference import REPEATS, Histogram, Recipe, interval
from pldp.estimate.likelihood import Blocks
from pldp.estimate.mixture import correct_em, emoa_paper
from pldp.estimate.postprocess import postprocess, project_to_simplex
from pldp.estimate.simulate import draw_levels, whole_counts

Moments = Callable[[Counts, Counts], Estimate]
"""An estimate from support by told level, (…, level, value), and how many told each level, (…, level)."""


def estimate_hidden(
    joint: Counts,
    told: Counts,
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
    the method before post-processing, for likelihoods AUEM's: a ratio, unbiased as n grows.
    """
    n_users = int(told.sum())
    plain = auem(joint, told, protocols, level_report)
    found, converged, covariance = plain, True, None
    frequency, error = plain.frequency, plain.standard_error
    if recipe.method in ("em", "emoa-paper"):
        if blocks is None:
            raise ValueError(f"method {recipe.method!r} needs the reports")
        if recipe.method == "em":
            fitted = correct_em(blocks, protocols, level_report)
            converged, covariance = fitted.converged, fitted.covariance if with_covariance else None
            found = Estimate(fitted.frequency, fitted.standard_error)
            frequency, error = found.frequency, found.standard_error
        else:
            # febsf prints no error for it, and it has none: it is wrong. AUEM's stands there so that a row is complete.
            shares = level_shares(told, level_report).frequency
            frequency, _ = emoa_paper(blocks, protocols, plain.frequency, shares)
    else:
        moments = moments_of(recipe.method, protocols, level_report)
        found = moments(joint, told)
        frequency = postprocess(recipe.postprocess, found.frequency, found.standard_error)
        error = found.standard_error
        if recipe.postprocess != "none":
            error = _bootstrap(moments, recipe, told, protocols, level_report, found.frequency, rng)
    unbiased = found if recipe.method in ("auem", "self-calibrated") else plain
    if with_covariance and covariance is None:
        moments = moments_of(
            "self-calibrated" if recipe.method == "self-calibrated" else "auem", protocols, level_report
        )
        again, truth = _redraw(moments, told, protocols, level_report, unbiased.frequency, rng)
        away = again.frequency - truth
        covariance = away.T @ away / REPEATS
    beyond = spread(found.frequency, n_users) / n_users if recipe.population else np.zeros(1)
    low, high = interval(found.frequency, found.standard_error, beyond, recipe)
    return Histogram(
        method=recipe.method,
        biased=recipe.method in ("em", "emoa-paper") or recipe.postprocess != "none",
        frequency=frequency,
        standard_error=np.sqrt(error**2 + beyond),
        ci_low=low,
        ci_high=high,
        unbiased=Combined(unbiased.frequency, unbiased.standard_error, np.ones((1, frequency.size))),
        agreement=1.0,
        agreed=True,
        converged=converged,
        covariance=covariance,
    )


def moments_of(method: str, protocols: tuple[PureProtocol, ...], level_report: KRR) -> Moments:
    if method == "auem":
        return lambda joint, told: auem(joint, told, protocols, level_report)
    return lambda joint, told: self_calibrated(joint.sum(axis=-2), int(told[..., :].sum(axis=-1).flat[0]), protocols)


def _bootstrap(
    moments: Moments,
    recipe: Recipe,
    told: Counts,
    protocols: tuple[PureProtocol, ...],
    level_report: KRR,
    unbiased: Floats,
    rng: np.random.Generator,
) -> Floats:
    """Root mean squared error per cell of what is published."""
    again, truth = _redraw(moments, told, protocols, level_report, unbiased, rng)
    error = postprocess(recipe.postprocess, again.frequency, again.standard_error) - truth
    rmse: Floats = np.sqrt(np.mean(error**2, axis=0))
    return np.maximum(rmse, 1 / int(told.sum()) / np.sqrt(REPEATS))


def _redraw(
    moments: Moments,
    told: Counts,
    protocols: tuple[PureProtocol, ...],
    level_report: KRR,
    unbiased: Floats,
    rng: np.random.Generator,
) -> tuple[Estimate, Floats]:
    """Estimates over again if the projected ones were the truth and levels were chosen blindly, and that truth."""
    n_users = int(told.sum())
    counts = whole_counts(project_to_simplex(unbiased), n_users)
    sizes = whole_counts(project_to_simplex(level_shares(told, level_report).frequency), n_users)
    dealt = draw_levels(counts, sizes, REPEATS, rng)
    return moments(*draw_hidden(dealt, protocols, level_report, rng)), counts / n_users


def moment_test(
    joint: Counts, told: Counts, protocols: tuple[PureProtocol, ...], level_report: KRR, truth: Floats
) -> Floats:
    """p-value of an evaluation's reports against the truth, the worst value times their number (Bonferroni).

    AUEM is a ratio, so its own error has heavy tails. What it solves for is a mean: with c_l(b) the unbiased indicator
    of level l, ψ = 1{Z supports j} − Σ_l [q_l + f_j (p_l − q_l)] c_l(b) has mean zero at the truth f, whatever level
    anybody chose. Its variance is taken between users, no less than with users fixed: the test is conservative.
    Holds if levels are chosen independently of the value.
    """
    n_users = told.sum(axis=-1)
    unit = (np.eye(len(protocols)) - level_report.q) / level_report.gap  # c_l(b) as (told, level)
    p, q = (np.array([getattr(protocol, side) for protocol in protocols]) for side in "pq")
    expected = unit @ (q[:, None] + (p - q)[:, None] * truth)  # (told, value)
    tail = told[..., None] - joint
    mean = (joint - told[..., None] * expected).sum(axis=-2) / n_users[..., None]
    square = (joint * (1 - expected) ** 2 + tail * expected**2).sum(axis=-2) / n_users[..., None]
    # A value that hardly any report supports shows no variance of its own: it has at least what the truth implies.
    implied = np.clip((told[..., None] * expected).sum(axis=-2) / n_users[..., None], 0, 1)
    variance = np.maximum(np.maximum(square - mean**2, implied * (1 - implied)), 1 / n_users[..., None])
    z = np.abs(mean) * np.sqrt(n_users[..., None] / variance)
    worst: Floats = 2 * norm.sf(z).min(axis=-1) * truth.size
    return np.minimum(worst, 1.0)
