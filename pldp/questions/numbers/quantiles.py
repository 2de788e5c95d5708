"""Quantiles from a histogram and its covariance.

Works for the histograms of histogram.py and for those of the frequency protocols over bins: estimates may
be negative and need not sum to one. Values inside a bin count as spread evenly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from pldp.channels.numeric.domain import Floats
from pldp.estimate.distributions import norm

_POINTS = 16  # of the search grid in each bin


@dataclass(frozen=True)
class Quantile:
    probability: float
    quantile: float
    standard_error: float
    ci_low: float
    ci_high: float


def quantiles(
    edges: ArrayLike,
    frequency: Floats,
    covariance: Floats,
    probabilities: Sequence[float],
    confidence: float = 0.95,
    step: float = 0.0,
) -> tuple[Quantile, ...]:
    """Where the distribution function F̂ reaches each probability, with a Woodruff interval.

    F̂(q) is a weighted sum of bins, so its standard error follows from the covariance. The interval holds every q with
    |F̂(q) − p| ≤ z · se(q) + step: it needs no estimate of the density, stays right where that is nearly zero, and is
    wide there. `step` is what one report moves, where so few are flipped that no normal law counts them. The standard
    error is the interval's half-width over z. F̂ is made to rise (running maximum) for the quantile only.
    """
    ends = np.asarray(edges, dtype=np.float64)
    z = float(norm.ppf(0.5 + confidence / 2))
    parts = np.linspace(0, 1, _POINTS, endpoint=False)
    grid = np.append((ends[:-1, None] + np.diff(ends)[:, None] * parts).reshape(-1), ends[-1])
    reached = np.clip((grid[:, None] - ends[:-1]) / np.diff(ends), 0, 1)  # share of each bin below a grid point
    below = reached @ frequency
    error = np.sqrt(np.maximum(np.einsum("gi,ij,gj->g", reached, covariance, reached, optimize=True), 0))
    rising = np.maximum.accumulate(below)
    points = []
    for p in probabilities:
        if not 0 < p < 1:
            raise ValueError(f"a probability must lie between 0 and 1 (got {p})")
        point = _crossing(grid, rising, p)
        low, high = _outermost(grid, below + z * error + step, below - z * error - step, p)
        points.append(Quantile(float(p), point, (high - low) / (2 * z), min(low, point), max(high, point)))
    return tuple(points)


def _crossing(grid: Floats, rising: Floats, p: float) -> float:
    """The first point at which a rising function reaches p, linear between grid points."""
    i = int(np.searchsorted(rising, p))
    if i == 0 or i == grid.size:
        return float(grid[min(i, grid.size - 1)])
    share = (p - rising[i - 1]) / (rising[i] - rising[i - 1])
    return float(grid[i - 1] + share * (grid[i] - grid[i - 1]))


def _outermost(grid: Floats, upper: Floats, lower: Floats, p: float) -> tuple[float, float]:
    """First point where the upper limit reaches p, last point where the lower limit has not passed it."""
    low = _crossing(grid, np.maximum.accumulate(upper), p)
    # Read from the right, the lower limit falls: its last crossing is the first of the mirrored function.
    high = -_crossing(-grid[::-1], np.maximum.accumulate(-lower[::-1]), -p)
    return low, high
