"""From the information that reports hold about shares to the covariance of the estimate and its standard errors.

Shares sum to one, so the information counts along the changes that keep their sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pldp.channels.protocol import Floats

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_FLAT = 1e-12  # share of the largest curvature below which a direction counts as unobserved


def gram(matrix: Floats | csr_array, weight: Floats) -> Floats:
    """Mᵀ diag(weight) M, dense."""
    if isinstance(matrix, np.ndarray):
        return matrix.T @ (matrix * weight[:, None])
    return np.asarray((matrix.T @ matrix.multiply(weight[:, None])).todense())


def tangent_inverse(information: Floats, sizes: tuple[int, ...]) -> Floats:
    """Inverse information where every group of parameters sums to one: T (TᵀIT)⁻¹ Tᵀ, T a basis of such changes.

    A direction in which the reports hold no information gets a large variance, not an infinite one.
    """
    basis = tangent(sizes)
    values, vectors = np.linalg.eigh(basis @ information @ basis.T)
    floor = max(_FLAT * float(values.max(initial=0.0)), float(np.finfo(np.float64).tiny) ** 0.5)
    spread = (basis.T @ vectors) / np.sqrt(np.maximum(values, floor))
    return spread @ spread.T


def tangent(sizes: tuple[int, ...]) -> Floats:
    """Orthonormal rows: the changes of parameters that leave each group's sum alone."""
    from scipy.linalg import helmert  # slow to import, and seldom needed

    rows = np.zeros((sum(sizes) - len(sizes), sum(sizes)))
    row = column = 0
    for size in sizes:
        if size > 1:
            rows[row : row + size - 1, column : column + size] = helmert(size)
        row, column = row + size - 1, column + size
    return rows


def own_shares(covariance: Floats, frequency: Floats, n: float) -> Floats:
    """Covariance of the error against the n users' own shares: Var p̂ − (diag p − ppᵀ)/n.

    The own shares f are what the users' values themselves would give, the efficient estimate. An inefficient one
    differs from it by something uncorrelated with it, so Cov(p̂, f) = Var f, and Var(p̂ − f) = Var p̂ − Var f.
    """
    return covariance - (np.diag(frequency) - np.outer(frequency, frequency)) / n


def errors(covariance: Floats, n: float) -> Floats:
    """Standard errors; the difference above is never negative but for rounding, and no share errs by more than one."""
    least = np.finfo(np.float64).eps / n
    return np.sqrt(np.clip(np.diag(covariance), least, 1.0))
