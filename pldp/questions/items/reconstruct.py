"""Shares of all combinations of attributes from counts of reported ones, axis by axis, with their covariance.

The channel of several attributes is the Kronecker product of theirs, and so is its inverse: applying one factor to each
axis costs Σ k_i multiplications a cell (2m · 2^m for m items) instead of the number of cells (4^m).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Counts
from pldp.questions.items.levels import Floats


def apply_axes(table: Floats, factors: Sequence[Floats]) -> Floats:
    """(F₁ ⊗ ⋯ ⊗ F_m) applied to the last m axes, one after the other."""
    lead = table.ndim - len(factors)
    for axis, factor in enumerate(factors):
        table = np.moveaxis(np.tensordot(table, factor, axes=([lead + axis], [1])), -1, lead + axis)
    return table


def reconstruct(counts: NDArray[np.number], inverses: Sequence[Floats]) -> Floats:
    """f̂ = (P₁ ⊗ ⋯ ⊗ P_m)⁻¹ c / n (aprr Eq. 5): unbiased shares; may be negative, always sum to one."""
    _check(counts, inverses)
    return apply_axes(counts / counts.sum(), inverses)


def variances(counts: NDArray[np.number], inverses: Sequence[Floats], *, population: bool = False) -> Floats:
    """Estimated variance of every reconstructed share, at the cost of a second reconstruction.

    With Q the inverse and ĉ the shares of reports, Σ_y Q_xy² ĉ_y estimates the mean square of what a report adds to
    cell x. The share is that of these users: their values are fixed, which takes away f_x. For the population they come
    from, reports are a multinomial sample, which takes away f_x².
    """
    share = reconstruct(counts, inverses)
    square = apply_axes(counts / counts.sum(), [factor**2 for factor in inverses])
    return np.maximum(square - (share**2 if population else share), 0) / counts.sum()


def covariance(counts: NDArray[np.number], inverses: Sequence[Floats], *, population: bool = False) -> Floats:
    """Covariance of all reconstructed shares, (cell, cell) with cells in C order; for small tables.

    [Q diag(ĉ) Qᵀ − diag(f̂)] / n for these users, [Q diag(ĉ) Qᵀ − f̂ f̂ᵀ] / n for their population.
    """
    share = reconstruct(counts, inverses).ravel()
    cells = share.size
    spread = np.diag(counts.ravel() / counts.sum()).reshape(cells, *counts.shape)
    half = apply_axes(spread, inverses).reshape(cells, cells)  # (reported, true): rows of diag(ĉ) Qᵀ
    whole = apply_axes(half.T.reshape(cells, *counts.shape), inverses).reshape(cells, cells)
    taken = np.outer(share, share) if population else np.diag(share)
    return (whole - taken) / counts.sum()


def noise_covariance(inverse: Floats, matrix: Floats, frequency: Floats) -> Floats:
    """What one report's noise is predicted to add, for assumed shares: Q diag(Pᵀ f) Qᵀ − diag(f)."""
    return inverse @ np.diag(matrix.T @ frequency) @ inverse.T - np.diag(frequency)


def patterns(supersets: Counts) -> Counts:
    """From how many rows have all items of a subset (bits of the index) to how many have just these, (…, 2^m).

    Möbius inversion, one subtraction a cell and axis; whole numbers.
    """
    m = supersets.shape[-1].bit_length() - 1
    table = supersets.reshape(*supersets.shape[:-1], *(2,) * m).copy()
    lead = supersets.ndim - 1
    for axis in range(m):
        here = np.moveaxis(table, lead + axis, 0)
        here[0] -= here[1]
    return table.reshape(supersets.shape)


def _check(counts: NDArray[np.number], inverses: Sequence[Floats]) -> None:
    if counts.shape != tuple(len(factor) for factor in inverses):
        raise ValueError("counts must have one axis for each attribute, as long as it has values")
    if counts.sum() <= 0:
        raise ValueError("there are no reports to reconstruct from")
