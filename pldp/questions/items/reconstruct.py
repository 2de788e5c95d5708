"""Reconstruction: patterns of items from how many rows hold their subsets, and the noise of an inverted channel."""

from __future__ import annotations

import numpy as np

from pldp.channels.protocol import Counts
from pldp.questions.items.levels import Floats


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
