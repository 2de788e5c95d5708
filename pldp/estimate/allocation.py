"""Splitting the total budget over attributes (OBRR), never overspending."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

import numpy as np

from pldp.channels.protocol import Floats

Variance = Callable[[Floats], Floats]
"""Noise variance of one cell and report as a function of the budget: positive, falling, convex."""

UNITS = 1 << 40
"""The total is cut into this many equal units, and every attribute gets a whole number of them."""

_LOWEST_SHARE = 1e-9
_HALVINGS = 46  # of a range of nine decades: 3e-13 of a budget
_STEP = 1e-5
_STEEP = 300.0


def brr_variance(epsilon: Floats) -> Floats:
    """v(ε) = 1 / (4 sinh²(ε/4)), mpldp Eq. 8 in the form that does not overflow."""
    return 1 / (4 * np.sinh(epsilon / 4) ** 2)


def oue_variance(epsilon: Floats) -> Floats:
    """4e^ε / (e^ε − 1)² = 1 / sinh²(ε/2): optimal unary encoding, and hashing with the best range."""
    return 4 * _odds(epsilon) / np.expm1(-epsilon) ** 2


def subset_variance(cells: Sequence[int], *, single: bool = False) -> Variance:
    """Mean over values of subset selection's noise, the size of the subset taken as continuous: what `auto` comes to.

    ω = max(1, k / (e^ε + 1)); at ω = 1 it is k-RR, and `single` keeps it there. With u = e^{−ε}:
    p = ω / (ω + (k − ω) u), q = (ω − p) / (k − 1), and p − q = (k p − ω) / (k − 1).
    """
    k = np.asarray(cells, dtype=np.float64)

    def variance(epsilon: Floats) -> Floats:
        u = _odds(epsilon)
        size = np.ones_like(k) if single else np.maximum(1, k * u / (1 + u))
        rest = np.maximum(k - size, 0.5)
        p = size / (size + rest * u)
        miss = rest * u / (size + rest * u)
        q = np.maximum(size - p, 0) / np.maximum(k - 1, 1)
        # k p − ω = ω (k − ω)(1 − u) / (ω + (k − ω) u).
        gap = size * rest * -np.expm1(-epsilon) / (size + rest * u) / np.maximum(k - 1, 1)
        return (p * miss / k + (1 - 1 / k) * q * (1 - q)) / gap**2

    return variance


def _odds(epsilon: Floats) -> Floats:
    """e^{−ε}; beyond what a double can hold it goes on falling, so that every split has one optimum."""
    return np.exp(-np.minimum(epsilon, _STEEP)) / (1 + np.maximum(epsilon - _STEEP, 0))


def optimal_shares(total: float, cells: Sequence[int], variance: Variance = brr_variance) -> Floats:
    """Shares that minimise Σ cells_i · v(ε_i) subject to Σ ε_i = total (mpldp, OBRR).

    The problem is convex, so the optimum has one price λ = −cells_i · v′(ε_i) for all attributes. For small budgets
    v ~ 4/ε² and ε_i ∝ cells_i^{1/3}.
    """
    weight = np.log(np.asarray(cells, dtype=np.float64))

    def spend(log_price: float) -> Floats:
        low = np.full(weight.size, total * _LOWEST_SHARE)
        high = np.full(weight.size, total)
        for _ in range(_HALVINGS):
            middle = np.sqrt(low * high)
            dear = weight + _log_slope(variance, middle) > log_price
            low, high = np.where(dear, middle, low), np.where(dear, high, middle)
        return np.sqrt(low * high)

    if weight.size == 1:
        return np.ones(1)
    from scipy.optimize import brentq  # slow to import, and seldom needed

    cheapest = float(np.min(weight + _log_slope(variance, np.full(weight.size, total))))
    dearest = float(np.max(weight + _log_slope(variance, np.full(weight.size, total * _LOWEST_SHARE))))
    log_price = brentq(lambda price: float(spend(price).sum()) - total, cheapest, dearest, xtol=1e-12)
    budgets = spend(float(log_price))
    return budgets / budgets.sum()


def _log_slope(variance: Variance, epsilon: Floats) -> Floats:
    """ln(−v′(ε)); through ln v, because v itself spans hundreds of orders of magnitude."""
    above, below = np.log(variance(epsilon * (1 + _STEP))), np.log(variance(epsilon * (1 - _STEP)))
    return (above + below) / 2 + np.log((below - above) / (2 * _STEP * epsilon))


def split(total: Fraction, shares: Floats) -> tuple[Fraction, ...]:
    """Budgets in whole units whose sum is the total, exactly."""
    units = [int(share * UNITS) for share in shares]
    largest = max(range(len(units)), key=units.__getitem__)
    units[largest] += UNITS - sum(units)
    return tuple(total * Fraction(unit, UNITS) for unit in units)
