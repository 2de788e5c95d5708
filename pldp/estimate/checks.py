"""Tests that gates rest on, each with a probability to fail on a correct release.

One report's estimate of a histogram f has the covariance C = D − F K Fᵀ with D diagonal and F = [f, 1], two columns:
what a protocol's `ties` say (docs/methods.md section 8). So nothing here is k × k.
"""

from __future__ import annotations

import numpy as np

from pldp.channels.protocol import Floats
from pldp.estimate.combine import Combined, Levels, noise_variances
from pldp.estimate.distributions import chi2
from pldp.estimate.postprocess import project_to_simplex


def homogeneity(levels: Levels, pooled: Floats) -> Floats:
    """p-value that the levels estimate one histogram: that the choice of a level does not depend on the value.

    χ² of the levels' distance from their common mean, each with covariance C_τ/n_τ. C_τ holds the noise *and* the
    sampling of users (diag f − ffᵀ): the levels are different people, so noise alone would reject for certain at
    large budgets.
    Estimates move in steps of one report, so noise below 1/n_τ counts as 1/n_τ: a single flipped bit is no evidence,
    and C_τ stays invertible however large the budget.
    """
    cells = _free_cells(levels)
    if levels.n.size == 1 or cells == 0:
        return np.ones(levels.frequencies.shape[:-2])
    centre = project_to_simplex(pooled)
    sizes = levels.n.astype(np.float64)
    noise = noise_variances(levels.protocols, centre)
    inner = _ties(levels)
    inner[:, 0, 0] = 1  # a user drawn at random
    floor = np.maximum(1 / sizes[:, None] - noise, 0)
    factor = np.stack([centre, np.ones_like(centre)], axis=-2)[..., :cells]
    diagonal = (noise + floor + _untied(levels, centre) + centre[..., None, :])[..., :cells]
    away = (levels.frequencies - centre[..., None, :])[..., :cells]
    # Ω_τ = n_τ C_τ⁻¹ = n_τ (D⁻¹ + L M Lᵀ), L = D⁻¹F, M = K (I − FᵀL K)⁻¹ (Woodbury).
    lever = factor[..., None, :, :] / diagonal[..., None, :]
    gram = np.einsum("...ik,...tjk->...tij", factor, lever)
    core = sizes[:, None, None] * (inner @ np.linalg.inv(np.eye(2) - gram @ inner))
    along = np.einsum("...tij,...tjk,...tk->...ti", core, lever, away)
    precise = sizes[:, None] * away / diagonal + np.einsum("...tik,...ti->...tk", lever, along)
    total = precise.sum(axis=-2)
    mean = woodbury((sizes[:, None] / diagonal).sum(axis=-2), _rows(lever), _blocks(core), total)
    statistic = (precise * away).sum(axis=(-2, -1)) - (total * mean).sum(axis=-1)
    freedom = (levels.n.size - 1) * cells
    p_value: Floats = chi2.sf(statistic, freedom)
    return p_value


def unbiasedness(combined: Combined, levels: Levels, truth: Floats) -> Floats:
    """p-value of an evaluation's combined estimate against the truth, all cells of the attribute jointly.

    Mahalanobis distance with the covariance that the truth implies: the noise of each level, and the sampling that
    unequal weights leave in, which ties the cells together (diagonal minus rank three a level).
    """
    cells = _free_cells(levels)
    if cells == 0:
        return np.ones(combined.frequency.shape[:-1])
    sizes = levels.n[:, None].astype(np.float64)
    n_users = levels.n_reports
    uneven = combined.weights - sizes / sizes.sum()
    finite = n_users / max(n_users - 1, 1)
    share = combined.weights**2 / sizes
    # Noise below one report counts as one, as in `homogeneity`.
    drawn = np.maximum((share * noise_variances(levels.protocols, truth)).sum(axis=-2), 1 / n_users**2)
    diagonal = drawn + (share * _untied(levels, truth)).sum(axis=-2) + (uneven**2 / sizes).sum(axis=-2) * truth * finite
    tied = np.stack([combined.weights * truth, combined.weights], axis=-2)
    core = -_ties(levels) / sizes[..., None]
    rows = np.concatenate([_rows(tied), uneven * truth * np.sqrt(finite / sizes)], axis=-2)[..., :cells]
    inner = np.zeros((rows.shape[-2], rows.shape[-2]))
    inner[: 2 * len(core), : 2 * len(core)] = _blocks(core)
    inner[2 * len(core) :, 2 * len(core) :] = -np.eye(len(core))
    error = (combined.frequency - truth)[..., :cells]
    statistic = (error * woodbury(diagonal[..., :cells], rows, inner, error)).sum(axis=-1)
    p_value: Floats = chi2.sf(statistic, cells)
    return p_value


def woodbury(diagonal: Floats, rows: Floats, core: Floats, right: Floats) -> Floats:
    """Solve (diag(d) + rowsᵀ core rows) x = right without a k × k matrix; `core` may be singular."""
    scaled = rows / diagonal[..., None, :]
    small = np.eye(rows.shape[-2]) + core @ np.einsum("...ik,...jk->...ij", rows, scaled)
    inner = core @ np.einsum("...ik,...k->...i", scaled, right)[..., None]
    return right / diagonal - np.einsum("...ik,...i->...k", scaled, np.linalg.solve(small, inner)[..., 0])


def _free_cells(levels: Levels) -> int:
    """Cells that are compared: where one protocol's cells sum to a constant, the last one tells nothing new."""
    return min(protocol.free_cells for protocol in levels.protocols)


def _ties(levels: Levels) -> Floats:
    """K of the noise alone, (level, 2, 2)."""
    return np.array([[[0.0, c], [c, e]] for c, e in (protocol.ties for protocol in levels.protocols)])


def _untied(levels: Levels, frequency: Floats) -> Floats:
    """What D has beyond the noise variance, because F K Fᵀ has a diagonal too: (…, level, value)."""
    return np.stack([2 * c * frequency + e for c, e in (protocol.ties for protocol in levels.protocols)], axis=-2)


def _rows(by_level: Floats) -> Floats:
    """(…, level, 2, value) as (…, 2 · level, value)."""
    return by_level.reshape(*by_level.shape[:-3], -1, by_level.shape[-1])


def _blocks(by_level: Floats) -> Floats:
    """(…, level, 2, 2) on the diagonal of one matrix."""
    t = by_level.shape[-3]
    whole = np.zeros((*by_level.shape[:-3], t, 2, t, 2))
    for level in range(t):
        whole[..., level, :, level, :] = by_level[..., level, :, :]
    return whole.reshape(*by_level.shape[:-3], 2 * t, 2 * t)
