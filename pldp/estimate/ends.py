"""Tests of shares that might be true, and the interval of those that are not rejected.

A test combines the levels with its own weights and accepts its share if the result lies within its reach; `invert`
makes the tests. Inverting a whole table of them is one matrix product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pldp.channels.protocol import Counts, Floats
from pldp.estimate.score import Interval

_BATCH = 4096  # cells at a time, so that memory does not grow with them


@dataclass(frozen=True)
class Table:
    """What is tested: `share` (hypothesis,) rising, `weights` (hypothesis, level), and how far below or above the
    share the combined estimate may fall, (hypothesis,)."""

    share: Floats
    weights: Floats
    below: Floats
    above: Floats
    n: int
    exact: int
    """How many hypotheses were judged by the exact law."""
    whole: bool = True
    """Whether only whole numbers of people can be true; not of a population."""

    @property
    def reach(self) -> Floats:
        """How far from the share the estimate may fall, away from the nearer bound, (hypothesis,)."""
        return np.minimum(self.below, self.above)

    def weights_at(self, share: Floats) -> Floats:
        """Of the test of any share, (…, level, cell), for an estimate that goes with the tests."""
        levels = [np.interp(share, self.share, level) for level in self.weights.T]
        return np.stack(levels, axis=-2)


def invert_table(table: Table, frequencies: Floats, estimate: Floats | None = None) -> Interval:
    """Ends of the accepted shares, (…, value); `frequencies` are the levels' estimates, (…, level, value).

    With D(f) the combined estimate minus f, the low end is the first f with D ≤ above, the high end the last with
    D ≥ −below: interpolated between hypotheses, and whole people where neighbours differ by one person. The published
    `estimate`, where there is one, is always inside, cut to [0, 1].
    """
    cells = np.swapaxes(frequencies, -1, -2)
    flat = cells.reshape(-1, cells.shape[-1])
    ends = [_ends(table, flat[start : start + _BATCH]) for start in range(0, len(flat), _BATCH)]
    low, high = (np.concatenate([part[side] for part in ends]).reshape(cells.shape[:-1]) for side in (0, 1))
    if estimate is None:
        return Interval(low, high)
    inside = np.clip(estimate, 0, 1)
    return Interval(np.minimum(low, inside), np.maximum(high, inside))


def _ends(table: Table, cells: Floats) -> tuple[Floats, Floats]:
    """Of a batch of cells, (cell, level)."""
    away = cells @ table.weights.T - table.share
    # Not quite zero: a law without spread is compared up to rounding.
    above, below = table.above + 1e-12, table.below + 1e-12
    last = table.share.size - 1
    low_enough, high_enough = away <= above, (away >= -below)[:, ::-1]
    rows = np.arange(len(cells))
    first, final = low_enough.argmax(axis=-1), last - high_enough.argmax(axis=-1)
    first = np.where(low_enough[rows, first], first, last)
    final = np.where(high_enough[rows, last - final], final, 0)
    low = _crossing(table, away, above, -1.0, first, first - 1)
    high = _crossing(table, away, below, 1.0, final, final + 1)
    # Between two whole numbers of people nothing may be accepted: then both are ends.
    return np.minimum(low, high), np.maximum(low, high)


def _crossing(table: Table, away: Floats, reach: Floats, sign: float, accepted: Counts, rejected: Counts) -> Floats:
    """The share where the margin, reach + sign·away, crosses zero, between an accepted hypothesis and its rejected
    neighbour."""
    outside, rows = np.clip(rejected, 0, table.share.size - 1), np.arange(len(away))
    at, beyond = (reach[index] + sign * away[rows, index] for index in (accepted, outside))
    crossed, inside = beyond < 0, np.maximum(at, 0)
    part = np.where(crossed, inside / np.where(crossed, inside - beyond, 1.0), 0.0)
    gap = table.share[outside] - table.share[accepted]
    part = np.where(table.whole & (np.abs(gap) * table.n <= 1.5), 0.0, part)
    return np.asarray(table.share[accepted] + part * gap)
