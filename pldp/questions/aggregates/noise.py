"""Two-sided geometric noise made of exact coins: its law, its worst ratio and its moments, all rational.

The noise is Z = ±N, N = Σ_{i<k} 2^i B_i + 2^k Q with independent coins B_i, Pr[B_i = 1] = T_i/2^64, and Q geometric,
Pr[Q ≥ q] = (T/2^64)^q. Were the odds of B_i exactly β^{2^i} and T/2^64 exactly β^{2^k}, N would be geometric of ratio
β. Rounded thresholds make a law of their own, and that law is what we account for. Q has no end, so neither has the
support: no output tells two inputs apart for certain, and nothing needs clamping.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Self

from pldp.channels.exact import SCALE, exp_below
from pldp.questions.aggregates.budgets import LEAST_TICKS, TICK_BITS

FIXED_BITS = 256
"""Fractional bits of a worst ratio that is rounded up to be multiplied."""
_SAFETY = Fraction((1 << 120) - 1, 1 << 120)


@dataclass(frozen=True)
class TwoSidedGeometric:
    """Thresholds of the coins, lowest digit first, and that of the geometric part."""

    digits: tuple[int, ...]
    tail: int

    def __post_init__(self) -> None:
        if not all(0 < digit <= SCALE // 2 for digit in self.digits) or not 0 < self.tail < SCALE:
            raise ValueError("digit thresholds must lie in 1 … 2^63 and the tail's in 1 … 2^64 − 1")

    @classmethod
    def for_ticks(cls, ticks: int) -> Self:
        """The noise that spends at most x = ticks/2^40 on a shift of one grid unit.

        From N = n to n + 1 the digits below some i fall from 1 to 0 and digit i (or Q) rises, so with odds r_i the
        ratio Pr[n]/Pr[n+1] is r_0 ⋯ r_{i−1} / r_i. Rounding each threshold up, after those below it, keeps every one of
        these k + 1 ratios at or below e^x; the safety of 2^-120 keeps products of them below `exp_below` of sums too.
        """
        if ticks < LEAST_TICKS:
            raise ValueError(f"a grid unit must spend at least {LEAST_TICKS} ticks of 2^-{TICK_BITS} (got {ticks})")
        growth = exp_below(Fraction(ticks, 1 << TICK_BITS)) * _SAFETY
        top, bottom = growth.denominator, growth.numerator  # the least odds that the next digit may have
        digits: list[int] = []
        while ticks << len(digits) < 1 << TICK_BITS:  # until β^{2^k} ≤ 1/e: then Q is zero more often than not
            digit = -(-SCALE * top // (top + bottom))
            digits.append(digit)
            top, bottom = top * digit, bottom * (SCALE - digit)
        return cls(tuple(digits), -(-SCALE * top // bottom))

    def _ratios(self) -> Iterator[tuple[int, int]]:
        """Pr[N = n] / Pr[N = n + 1], one for each number of trailing ones of n, as top and bottom."""
        top, bottom = 1, 1
        for digit in self.digits:
            yield top * (SCALE - digit), bottom * digit
            top, bottom = top * digit, bottom * (SCALE - digit)
        yield top * SCALE, bottom * self.tail

    @cached_property
    def worst_ratio(self) -> Fraction:
        """max over z of Pr[Z = z] / Pr[Z = z ± 1]: the exact e^ε of one grid unit."""
        return max(Fraction(top, bottom) for top, bottom in self._ratios())

    @cached_property
    def fixed_ratio(self) -> int:
        """The worst ratio in steps of 2^-256, rounded up; the largest of the rounded ones is the rounded largest."""
        return max(-((-top << FIXED_BITS) // bottom) for top, bottom in self._ratios())

    def shift_ratio(self, units: int) -> int:
        """Bound of the ratio for a shift by several grid units, in steps of 2^-256: the worst ratio's power, upwards.

        Exact for one unit but for the rounding. For more, a window of as many ratios need not hold the worst one only;
        the bound is above it by less than units · 2^-60.
        """
        result, base = 1 << FIXED_BITS, self.fixed_ratio
        while units:
            if units & 1:
                result = fixed_product(result, base)
            base = fixed_product(base, base)
            units >>= 1
        return result

    @cached_property
    def moments(self) -> tuple[float, float]:
        """E|Z| and Var Z in grid units: 1/sinh x and 1/(2 sinh²(x/2)) but for rounding; the mean is zero by symmetry.

        The parts of N are independent, so means and variances add; all terms are positive, so doubles lose nothing.
        """
        tail = self.tail / (SCALE - self.tail)  # odds: the mean of Q
        step = 2.0 ** len(self.digits)
        mean, variance, zero = tail * step, tail * (1 + tail) * step**2, (SCALE - self.tail) / SCALE
        for place, digit in enumerate(self.digits):
            chance = digit / SCALE
            mean += chance * 2.0**place
            variance += chance * (1 - chance) * 4.0**place
            zero *= 1 - chance
        return 2 * mean / (2 - zero), 2 * (variance + mean**2) / (2 - zero)

    @property
    def mean_size(self) -> float:
        """E|Z| in grid units; a little below the Laplace noise's 1/x."""
        return self.moments[0]

    @property
    def variance(self) -> float:
        """Var Z in grid units squared."""
        return self.moments[1]


@lru_cache(maxsize=1 << 18)
def noise_for(ticks: int) -> TwoSidedGeometric:
    """The noise of a spend; profiles share many."""
    return TwoSidedGeometric.for_ticks(ticks)


def fixed_product(first: int, second: int) -> int:
    """Product of two numbers in steps of 2^-256, rounded up."""
    return -((-first * second) >> FIXED_BITS)


def fixed_to_ratio(number: int) -> Fraction:
    """The fraction that a fixed-point number of FIXED_BITS stands for."""
    return Fraction(number, 1 << FIXED_BITS)


def fixed_excess(number: int) -> float:
    """The number less one, as a double."""
    return (number - (1 << FIXED_BITS)) / (1 << FIXED_BITS)
