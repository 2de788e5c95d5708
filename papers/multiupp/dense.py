"""A catalogue from a whole matrix, as the paper's data sets come."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pldp.questions.aggregates.catalogue import Catalogue


def dense_catalogue(attributes: Sequence[str], weights: NDArray[Any], grid: Fraction = Fraction(1)) -> Catalogue:
    """A matrix with one row per item; every weight must be a multiple of the grid."""
    if weights.ndim != 2 or weights.shape[1] != len(attributes):
        raise ValueError(f"catalogue must have one column for each of the {len(attributes)} attributes")
    items, columns = np.nonzero(weights)
    return Catalogue.from_triples(attributes, items, columns, weights[items, columns], n_items=len(weights), grid=grid)
