"""The chance that a set is frequent, given its estimate and what supports of such sets are like.

Of many sets most are rare, so one whose estimate just reaches the minimum is likelier to be lifted there by noise
than an estimate alone tells. The prior says how many: before any report, a support is as likely to lie between x and 2x
as between 2x and 4x (log-uniform, 1/f), and counts for `BELIEF` sets; the estimates of all sets of the same length that
were looked at, frequent or not, count for one each (a mixture on a grid, by EM).
"""

from __future__ import annotations

import numpy as np

from pldp.estimate.distributions import norm
from pldp.questions.items.levels import Floats

BELIEF = 4.0
"""Sets that the law before any report counts for."""
_LEAST = 1e-4
"""Of supports that are told apart from none."""
_GRID = 300
_SHOWN = 400
"""Sets that tell the law; of more, evenly by rank."""
_STEPS = 4
"""Of EM from the law before: more would make peaks of the noise in the estimates."""
_CHUNK = 4096


def frequent_chance(support: Floats, error: Floats, minimum: float) -> Floats:
    """Pr[true support ≥ minimum | estimate], by set; certain where there is no noise."""
    out = np.where(support >= minimum, 1.0, 0.0)
    noisy = np.flatnonzero(error > 0)
    if not noisy.size:
        return out
    grid = np.concatenate([[0.0], np.geomspace(min(_LEAST, minimum / 10), 1.0, _GRID)])
    law = _law(support, error, grid, minimum)
    reaches = _reaching(grid, minimum)
    for start in range(0, noisy.size, _CHUNK):
        part = noisy[start : start + _CHUNK]
        weights = _likelihood(support[part], error[part], grid) * law
        # Far from every support of the law only the estimate is left to speak.
        sums = weights.sum(axis=1)
        alone = norm.cdf((support[part] - minimum) / error[part])
        out[part] = np.divide(weights @ reaches, sums, out=alone, where=sums > 0)
    return out


def _law(support: Floats, error: Floats, grid: Floats, minimum: float) -> Floats:
    """Of supports, on the grid: what is believed before, and what the estimates say, weighed by their numbers."""
    noisy = np.flatnonzero(error > 0)
    ranked = noisy[np.argsort(support[noisy], kind="stable")]
    shown = ranked[np.linspace(0, ranked.size - 1, min(ranked.size, _SHOWN)).round().astype(np.intp)]
    before = np.full(grid.size, 1 / grid.size)
    likelihood = _likelihood(support[shown], error[shown], grid)
    law = before
    for _ in range(_STEPS):
        joint = likelihood * law
        sums = joint.sum(axis=1, keepdims=True)
        shares = np.divide(joint, sums, out=np.zeros_like(joint), where=sums > 0).sum(axis=0)
        law = (BELIEF * before + shares) / (BELIEF + shares.sum())
    return law


def _likelihood(support: Floats, error: Floats, grid: Floats) -> Floats:
    away = (support[:, None] - grid) / error[:, None]
    # The best point of the grid has 1, so that nothing vanishes.
    return np.exp(-(away**2 - (away**2).min(axis=1, keepdims=True)) / 2)


def _reaching(grid: Floats, minimum: float) -> Floats:
    """One at points that reach the minimum; the point next to it stands for both sides of it."""
    middle = np.sqrt(grid[1:-1] * grid[2:])
    edges = np.concatenate([[0.0, grid[1] / 2], middle, [1.0]])
    low, high = edges[:-1], edges[1:]
    return np.clip((high - minimum) / np.maximum(high - low, 1e-300), 0, 1)
