"""`op`: weights over levels that make the largest error against a reference small (mpldp Algorithm 3), and its limit.

The reference H is explicit. The paper takes the true histogram, which no collector has; we take it only in an
evaluation, and a public table or the previous release otherwise. The result is biased towards the reference.
"""

from __future__ import annotations

import numpy as np

from pldp.channels.protocol import Floats

DEFAULT_STEPS = 20
_TIE = 1e-15


def perturbation_method(
    estimates: Floats, reference: Floats, steps: int = DEFAULT_STEPS, sum_to_one: bool = False
) -> Floats:
    """mpldp Algorithm 3 and Theorem 3, on shares: (…, level, value) and (value,) give (…, value).

    Least-squares weights first. Each step then moves the regression's target at the cell k of largest error by δ:
    all fitted cells move by δ L_k, where L = H̃ᵀ(H̃H̃ᵀ)⁻¹H̃ projects onto the span of the levels. δ has the error's
    sign and |δ| = min(|e_k|/L_kk, min_{t≠k} (|e_k| − |e_t|)/|L_kt|), so the largest error never rises.

    Departures: the paper's pseudocode prints L_tt for L_kt (its Eq. 34 has L_kt) and measures the error against the
    moved target (its Eq. 33 against the original); we follow the equations. The regression drops Σω = 1;
    `sum_to_one` keeps it by regressing on differences from the last level.
    """
    if sum_to_one:
        last = estimates[..., -1, :]
        basis = estimates[..., :-1, :] - last[..., None, :]
        shift = last
    else:
        basis, shift = estimates, np.zeros_like(estimates[..., 0, :])
    projector = _row_space(basis)
    return descend(projector, reference, shift + _project(projector, reference - shift), steps)


def descend(projector: Floats, reference: Floats, fitted: Floats, steps: int) -> Floats:
    """The steps alone, from a fit; L = QᵀQ for the orthonormal rows Q of `projector`, (…, level, value)."""
    for _ in range(steps):
        error = reference - fitted
        size = np.abs(error)
        worst = np.argmax(size, axis=-1)[..., None]
        row = _row(projector, worst)
        largest = np.take_along_axis(size, worst, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            limits = np.where(np.abs(row) > _TIE, (largest - size) / np.abs(row), np.inf)
            entry = np.take_along_axis(row, worst, axis=-1)
            np.put_along_axis(limits, worst, np.where(entry > _TIE, largest / entry, 0.0), axis=-1)
        delta = limits.min(axis=-1, keepdims=True)
        if not np.any(delta > 0):  # exact ties: no step lowers the largest error
            break
        fitted = fitted + np.sign(np.take_along_axis(error, worst, axis=-1)) * delta * row
    return fitted


def smallest_maximum(estimates: Floats, reference: Floats, sum_to_one: bool = False) -> Floats:
    """`op-exact` (ours): min over weights of the largest error, a linear program with one variable a level."""
    from scipy.optimize import linprog  # slow to import, and seldom needed

    n_levels, n_values = estimates.shape
    cost = np.r_[np.zeros(n_levels), 1.0]
    slack = np.ones((n_values, 1))
    bounds = [(None, None)] * n_levels + [(0, None)]
    solution = linprog(
        cost,
        A_ub=np.block([[estimates.T, -slack], [-estimates.T, -slack]]),
        b_ub=np.r_[reference, -reference],
        A_eq=np.r_[np.ones(n_levels), 0.0][None, :] if sum_to_one else None,
        b_eq=np.ones(1) if sum_to_one else None,
        bounds=bounds,
        method="highs",
    )
    if solution.x is None:
        raise ArithmeticError(f"the linear program of op-exact did not solve: {solution.message}")
    weights: Floats = solution.x[:n_levels]
    return weights @ estimates


def _row_space(basis: Floats) -> Floats:
    """Orthonormal rows Q with L = QᵀQ; rows of zeros where the levels are linearly dependent."""
    _, singular, rows = np.linalg.svd(basis, full_matrices=False)
    largest = singular.max(axis=-1, keepdims=True, initial=0.0)
    full_rank = singular > largest * max(basis.shape[-2:]) * np.finfo(np.float64).eps
    kept: Floats = np.where(full_rank[..., None], rows, 0.0)
    return kept


def _project(projector: Floats, target: Floats) -> Floats:
    return np.einsum("...tk,...t->...k", projector, np.einsum("...tk,...k->...t", projector, target))


def _row(projector: Floats, cell: np.ndarray[tuple[int, ...], np.dtype[np.intp]]) -> Floats:
    """Row `cell` of L, the only one a step needs."""
    column = np.take_along_axis(projector, cell[..., None, :], axis=-1)[..., 0]
    return np.einsum("...tk,...t->...k", projector, column)
