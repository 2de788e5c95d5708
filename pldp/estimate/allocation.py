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
_ABSOLUTE, _RELATIVE = 1e-12, 4 * float(np.finfo(np.float64).eps)  # of a root
_STEPS = 100
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
    cheapest = float(np.min(weight + _log_slope(variance, np.full(weight.size, total))))
    dearest = float(np.max(weight + _log_slope(variance, np.full(weight.size, total * _LOWEST_SHARE))))
    budgets = spend(root(lambda price: float(spend(price).sum()) - total, cheapest, dearest))
    return budgets / budgets.sum()


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function changes its sign between two places: Brent's method, step by step as SciPy's `brentq` has it.

    Importing SciPy's takes longer than most plans. Equal steps, because a plan's identity hangs on the last bit.
    """
    before, here, other = low, high, 0.0
    f_before, f_here, f_other = function(before), function(here), 0.0
    last = step = 0.0
    if f_before == 0 or f_here == 0:
        return before if f_before == 0 else here
    if (f_before < 0) == (f_here < 0):
        raise ValueError("the function must have different signs at the two ends")
    for _ in range(_STEPS):
        if f_here != 0 and (f_before < 0) != (f_here < 0):
            other, f_other, last = before, f_before, here - before
            step = last
        if abs(f_other) < abs(f_here):
            before, here, other = here, other, here
            f_before, f_here, f_other = f_here, f_other, f_here
        near, half = (_ABSOLUTE + _RELATIVE * abs(here)) / 2, (other - here) / 2
        if f_here == 0 or abs(half) < near:
            return here
        tried = _tried(before, here, other, f_before, f_here, f_other) if abs(last) > near else None
        if tried is not None and 2 * abs(tried) < min(abs(last), 3 * abs(half) - near):
            last, step = step, tried
        else:
            last = step = half
        before, f_before = here, f_here
        here += step if abs(step) > near else near if half > 0 else -near
        f_here = function(here)
    raise RuntimeError(f"no root after {_STEPS} steps")


def _tried(a: float, b: float, c: float, f_a: float, f_b: float, f_c: float) -> float | None:
    """The step from b by a line through two places or a hyperbola through three, if b is better than a."""
    if not abs(f_b) < abs(f_a):
        return None
    if a == c:
        return -f_b * (b - a) / (f_b - f_a)
    slope, rise = (f_a - f_b) / (a - b), (f_c - f_b) / (c - b)
    return -f_b * (f_c * rise - f_a * slope) / (rise * slope * (f_c - f_a))


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
