"""Tail bounds that hold for every number of reports, not only for large ones."""

from __future__ import annotations

import numpy as np

_STEEPEST = 40.0


def chernoff(observed: int, law: tuple[tuple[int, float], ...]) -> float:
    """Bound on the probability that a sum of binomials lies at least as far from its mean, on either side.

    Chernoff: Pr[T ≥ t] ≤ min_s exp(ln E e^{sT} − st). It holds for every number of reports, not only large ones;
    against the normal tail it costs about half a standard error.
    """
    from scipy.optimize import minimize_scalar  # slow to import, and seldom needed

    mean = sum(trials * p for trials, p in law)
    if observed == mean:
        return 1.0
    side = 1.0 if observed > mean else -1.0

    def exponent(s: float) -> float:
        moment = sum(trials * np.log1p(p * np.expm1(side * s)) for trials, p in law)
        return float(moment - side * s * observed)

    best = minimize_scalar(exponent, bounds=(0.0, _STEEPEST), method="bounded", options={"xatol": 1e-12})
    return float(min(1.0, 2 * np.exp(min(0.0, best.fun))))


def bernstein(observed: int, mean: float, variance: float, largest: float) -> float:
    """The same for a sum of independent terms with this mean and variance, each at most `largest` from its own mean."""
    away = abs(observed - mean)
    if away == 0:
        return 1.0
    return float(min(1.0, 2 * np.exp(-(away**2) / 2 / (variance + largest * away / 3))))
