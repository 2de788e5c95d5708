"""Tests that gates rest on, each with a probability to fail on a correct release."""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import chi2

from pldp.combine import Combined, Levels, linear_variance, noise_variances, spread
from pldp.postprocess import project_to_simplex
from pldp.protocol import Floats

_STEEPEST = 40.0


def homogeneity(levels: Levels, pooled: Floats) -> Floats:
    """p-value that the levels estimate one histogram: that the choice of a level does not depend on the value.

    χ² of the levels' distance from their common mean, each with covariance C_τ/n_τ. C_τ holds the noise *and* the
    sampling of users (diag f − ffᵀ): the levels are different people, so noise alone would reject for certain at
    large budgets. C_τ is diagonal minus rank one, the common mean's is diagonal plus rank t, so nothing is k × k.
    Estimates move in steps of one report, so noise below 1/n_τ counts as 1/n_τ: a single flipped bit is no evidence,
    and C_τ stays invertible however large the budget.
    """
    cells = min(protocol.free_cells for protocol in levels.protocols)
    if levels.n.size == 1 or cells == 0:
        return np.ones(levels.frequencies.shape[:-2])
    centre = project_to_simplex(pooled)
    parts = [protocol.covariance(centre) for protocol in levels.protocols]
    diagonal = np.stack([d[..., :cells] for d, _ in parts], axis=-2)
    factor = np.stack([u[..., :cells] for _, u in parts], axis=-2)
    sizes = levels.n.astype(np.float64)
    noise = noise_variances(levels.protocols, centre)[..., :cells]
    diagonal += np.maximum(1 / sizes[:, None] - noise, 0)
    away = (levels.frequencies - centre[..., None, :])[..., :cells]
    # Ω_τ = n_τ C_τ⁻¹ = n_τ (D⁻¹ + D⁻¹u uᵀD⁻¹ / (1 − uᵀD⁻¹u)), Sherman–Morrison.
    lever = factor / diagonal
    core = sizes / (1 - (factor * lever).sum(axis=-1))
    along = (lever * away).sum(axis=-1)
    precise = sizes[:, None] * away / diagonal + (core * along)[..., None] * lever
    total = precise.sum(axis=-2)
    mean = woodbury((sizes[:, None] / diagonal).sum(axis=-2), lever, core, total)
    statistic = (precise * away).sum(axis=(-2, -1)) - (total * mean).sum(axis=-1)
    freedom = (levels.n.size - 1) * cells
    p_value: Floats = chi2.sf(statistic, freedom)
    return p_value


def unbiasedness(combined: Combined, levels: Levels, truth: Floats) -> Floats:
    """p-value of an evaluation's combined estimate against the truth, all cells of the attribute jointly.

    Mahalanobis distance with the covariance that the truth implies: independent noise per cell, and the sampling
    that unequal weights leave in, which ties the cells together (diagonal minus rank t).
    Holds for protocols whose bits are independent.
    """
    sizes = levels.n[:, None].astype(np.float64)
    n_users = levels.n_reports
    noise = noise_variances(levels.protocols, truth)
    uneven = combined.weights - sizes / sizes.sum()
    finite = n_users / max(n_users - 1, 1)
    # Noise below one report counts as one, as in `homogeneity`.
    drawn = np.maximum((combined.weights**2 * noise / sizes).sum(axis=-2), 1 / n_users**2)
    own = drawn + (uneven**2 / sizes).sum(axis=-2) * truth * finite
    shared = uneven * truth * np.sqrt(finite / sizes)
    error = combined.frequency - truth
    minus = np.full(shared.shape[:-1], -1.0)
    statistic = (error * woodbury(own, shared, minus, error)).sum(axis=-1)
    p_value: Floats = chi2.sf(statistic, truth.shape[-1])
    return p_value


def z_scores(combined: Combined, levels: Levels, truth: Floats) -> Floats:
    """Errors in units of the standard error that the truth implies."""
    noise = noise_variances(levels.protocols, truth)
    variance = linear_variance(combined.weights, levels.n, noise, spread(truth, levels.n_reports))
    return (combined.frequency - truth) / np.sqrt(variance)


def total_support(observed: int, law: tuple[tuple[int, float], ...]) -> float:
    """Bound on the probability that a sum of binomials lies at least as far from its mean, on either side.

    Chernoff: Pr[T ≥ t] ≤ min_s exp(ln E e^{sT} − st). It holds for every number of reports, not only large ones;
    against the normal tail it costs about half a standard error.
    """
    mean = sum(trials * p for trials, p in law)
    if observed == mean:
        return 1.0
    side = 1.0 if observed > mean else -1.0

    def exponent(s: float) -> float:
        moment = sum(trials * np.log1p(p * np.expm1(side * s)) for trials, p in law)
        return float(moment - side * s * observed)

    best = minimize_scalar(exponent, bounds=(0.0, _STEEPEST), method="bounded", options={"xatol": 1e-12})
    return float(min(1.0, 2 * np.exp(min(0.0, best.fun))))


def woodbury(diagonal: Floats, rows: Floats, core: Floats, right: Floats) -> Floats:
    """Solve (diag(d) + Σ_τ core_τ row_τᵀ row_τ) x = right without a k × k matrix."""
    scaled = rows / diagonal[..., None, :]
    eye = np.eye(rows.shape[-2])
    small = eye / core[..., None] + np.einsum("...ik,...jk->...ij", rows, scaled)
    inner = np.einsum("...ik,...k->...i", scaled, right)
    return right / diagonal - np.einsum("...ik,...i->...k", scaled, np.linalg.solve(small, inner[..., None])[..., 0])
