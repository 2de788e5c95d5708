"""How improbable it is that estimated supports lie so far apart, by bounds that need no approximation."""

from __future__ import annotations

import numpy as np

from pldp.channels.protocol import Counts
from pldp.estimate.combine import spread
from pldp.questions.items.levels import Floats

_REACH = 6.0


def bernstein(distance: Floats, variance: Floats, largest: Floats) -> Floats:
    """Bound of Pr[|Σ| ≥ |distance|] for a sum of independent terms of mean zero, none beyond `largest`.

    2 exp(−d² / (2 (V + L d / 3))). It holds as well for users drawn without replacement (Hoeffding 1963).
    """
    d = np.abs(distance)
    scale = 2 * (variance + largest * d / 3)
    exponent = np.divide(d**2, scale, out=np.zeros_like(scale), where=d > 0)
    return np.minimum(1.0, 2 * np.exp(-exponent))


def agreement(support: Floats, noise: Floats, largest: Floats, n: Counts) -> float:
    """Least tail of any level's supports against all others', times their number; (item, level).

    If levels were chosen independently of the items, each level is a random part of all users, and its supports differ
    from those of the rest by noise and by who happens to be where. `noise` is the most that one report can have,
    `largest` the most that it can be away from its mean. The spread between users is taken at the largest supports that
    six standard errors leave. One level alone agrees.
    """
    items, levels = support.shape
    if levels < 2:
        return 1.0
    total = int(n.sum())
    sums = support * n
    pooled = sums.sum(axis=1) / total
    error = np.sqrt((noise * n).sum(axis=1)) / total
    between = np.maximum(spread(pooled - _REACH * error, total), spread(pooled + _REACH * error, total))
    between = np.where(np.abs(pooled - 0.5) <= _REACH * error, spread(np.array(0.5), total), between)
    tails = []
    for level in range(levels):
        others = np.arange(levels) != level
        left = total - n[level]
        distance = support[:, level] - sums[:, others].sum(axis=1) / left
        quiet = noise[:, level] / n[level] + (noise[:, others] * n[others]).sum(axis=1) / left**2
        most = np.maximum(largest[:, level] / n[level], largest[:, others].max(axis=1) / left) + 1 / min(n[level], left)
        tails.append(bernstein(distance, quiet + between * (1 / n[level] + 1 / left), most))
    return float(min(1.0, np.min(tails) * items * levels))
