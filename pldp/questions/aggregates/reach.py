"""How far summed noise falls from nothing: half of an interval of a total.

Noise is in whole units. Where its standard deviation is a few of them, 1.96 standard deviations are not its 95 %: of a
sum whose noise is a quarter of a unit squared on average, which is nothing 79 times in 100, an interval of ±0.98 holds
the truth as often. So the law is computed there, from the characteristic function of the two-sided geometric law of
ratio β = e^−x, and half of the interval is a whole number of units:

    E e^{isZ} = (1 − β)² / (1 − 2β cos s + β²),    of a sum their product.

Where it is many units the law is normal but for what one user's noise rules, whose tails are Laplace's: the quantile is
moved by the excess kurtosis κ, z + κ (z³ − 3z)/24 (Cornish and Fisher 1938), and by no more than Laplace's own.
"""

from __future__ import annotations

import math

import numpy as np

from pldp.estimate.distributions import norm
from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.objectives import Floats

COARSE = 12.5
"""Standard deviation in units from which on steps of one are below 0.08 of it, as for counts (docs/intervals.md)."""
_POINTS = 1 << 10  # more than 40 standard deviations on either side


def reach(spends: Floats, users: Units, confidence: float) -> float:
    """The least that |Z| stays within with this probability; `spends` are the users' x of a unit, by profile."""
    asked = users > 0
    ratio, n = np.exp(-spends[asked]), users[asked].astype(np.float64)
    rest = -np.expm1(-spends[asked])
    variance = float(n @ (2 * ratio / rest**2))
    if variance < COARSE**2:
        return _exact(ratio, n, confidence)
    fourth = float(n @ (2 * ratio * (1 + 4 * ratio + ratio**2) / rest**4))
    z = float(norm.isf((1 - confidence) / 2))
    laplace = -math.log1p(-confidence) / math.sqrt(2)
    moved = z + fourth / variance**2 * (z**3 - 3 * z) / 24
    low, high = sorted((z, laplace))
    # Half a unit more: whole numbers as a continuous law counts them.
    return min(max(moved, low), high) * math.sqrt(variance) + 0.5


def _exact(ratio: Floats, n: Floats, confidence: float) -> float:
    """By the transform of the characteristic function, which is real: the noise is symmetric."""
    cosine = np.cos(2 * np.pi * np.arange(_POINTS // 2 + 1) / _POINTS)
    log = np.zeros(cosine.size)
    spends, place = np.unique(ratio, return_inverse=True)
    for beta, people in zip(spends, np.bincount(place, n), strict=True):
        log += people * (2 * math.log1p(-beta) - np.log1p(beta**2 - 2 * beta * cosine))
    law = np.maximum(np.fft.irfft(np.exp(log), _POINTS), 0.0)
    within = law[0] + 2 * np.cumsum(np.append(0.0, law[1 : _POINTS // 2]))
    return float(np.searchsorted(within, confidence * (1 - 1e-12)))
