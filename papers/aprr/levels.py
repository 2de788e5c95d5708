"""Levels as the paper makes them, from the frequencies of the items."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pldp.questions.items.levels import Levels, check_levels


def levels_from_frequency(frequency: Sequence[float] | NDArray[np.number], sizes: Sequence[int]) -> Levels:
    """Rarer is more sensitive (aprr 6.1): the `sizes[0]` most frequent are open, and so on; ties by position.

    True frequencies are private: for evaluations, or with frequencies that are public.
    """
    frequency = np.asarray(frequency)
    check_levels(len(sizes))
    if sum(sizes) != frequency.size or min(sizes) < 0:
        raise ValueError(f"levels.sizes must be ≥ 0 and sum to the {frequency.size} items (got {list(sizes)})")
    levels = np.empty(frequency.size, dtype=np.int64)
    levels[np.argsort(-frequency, kind="stable")] = np.repeat(np.arange(len(sizes)), sizes)
    return tuple(levels.tolist())
