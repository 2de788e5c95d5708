"""Shares of all combinations of attributes from counts of reported ones, axis by axis, with their covariance.

The channel of several attributes is the Kronecker product of theirs, and so is its inverse: applying one factor to each
axis costs Σ k_i multiplications a cell (2m · 2^m for m items) instead of the number of cells (4^m). What mining finds
set by set is compared with it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.levels import Floats


def item_inverse(channels: ItemChannels, item: int) -> Floats:
    """aprr Eq. 5 for one item: f = Q c, (x, y)."""
    q, gap = channels.false_one[item], channels.gap[item]
    return np.array([[q + gap, q + gap - 1], [-q, 1 - q]]) / gap


def item_matrix(channels: ItemChannels, item: int) -> Floats:
    """Pr[y|x], (x, y)."""
    zero, one = channels.keep_zero[item], channels.keep_one[item]
    return np.array([[zero, SCALE - zero], [SCALE - one, one]], dtype=object).astype(np.float64) / SCALE


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


def _check(counts: NDArray[np.number], inverses: Sequence[Floats]) -> None:
    if counts.shape != tuple(len(factor) for factor in inverses):
        raise ValueError("counts must have one axis for each attribute, as long as it has values")
    if counts.sum() <= 0:
        raise ValueError("there are no reports to reconstruct from")
