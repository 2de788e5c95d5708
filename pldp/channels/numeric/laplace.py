"""Laplace on the grid, the yardstick: two-sided geometric noise, sampled exactly (Canonne, Kamath, Steinke 2020)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import exp_below
from pldp.channels.numeric.domain import CHUNK, Codes, position, round_codes, rounded_square
from pldp.channels.numeric.draws import bernoulli_exp, fair_bits, uniform_long
from pldp.channels.numeric.mechanism import Reports, Tally, centred_tally
from pldp.channels.numeric.window import GRID_BITS
from pldp.channels.randomness import Keystream, Words

_FINE = 1 << 10
"""Noise is drawn on a grid this many times finer, so that the budget is met to 1 in 2^25/ε."""
_LONGEST = 1 << 50
_SMALLEST = Fraction(1, 1000)
_MIDDLE = 1 << 31
_FAR = 64


@dataclass(frozen=True)
class Laplace:
    """Index i plus noise Z, Pr[Z = z] ∝ exp(−|z| · 2^10 / length) on all integers; a report is i + Z + 2^31.

    The largest and the smallest input are 2^bits steps apart: the exact ε is the rational 2^(bits + 10) / length.
    The ends of the 32-bit range take what falls beyond them: no more private information, and the chance of it is below
    e^−65 for the smallest budget allowed, so the bias it makes cannot be seen.
    """

    name: ClassVar[str] = "laplace"
    report_type: ClassVar[type[np.uint32]] = np.uint32
    bits: int
    length: int

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= GRID_BITS or not 1 <= self.length <= _LONGEST:
            raise ValueError(f"bits must lie in 1 … {GRID_BITS} and length in 1 … 2^50")

    @classmethod
    def for_budget(cls, epsilon: Fraction, bits: int = GRID_BITS) -> Self:
        if epsilon < _SMALLEST:
            raise ValueError(f"a budget of {float(epsilon):g} is below 0.001, the least for Laplace noise in 32 bits")
        return cls(bits, int((_FINE << bits) / epsilon) + 1)

    @property
    def exact_epsilon(self) -> Fraction:
        return Fraction(_FINE << self.bits, self.length)

    @property
    def worst_ratio(self) -> Fraction:
        """A rational just above e^exact_epsilon, which is itself irrational."""
        return 1 / exp_below(-self.exact_epsilon)

    @cached_property
    def scales(self) -> tuple[Fraction]:
        return (Fraction(1, 1 << self.bits),)

    @cached_property
    def gain(self) -> Fraction:
        return Fraction(1)

    @cached_property
    def base(self) -> Fraction:
        """Var Z = 2α/(1−α)² = 1 / (2 sinh²(s/2)), α = e^−s, in steps of 2/2^bits; to a double's precision."""
        rate = _FINE / self.length
        steps = 0.0 if rate > 1000 else 1 / (2 * math.sinh(rate / 2) ** 2)
        return Fraction(steps) * Fraction(2, 1 << self.bits) ** 2

    @cached_property
    def largest(self) -> Fraction:
        return 1 + Fraction(21 * 2) / self.exact_epsilon + Fraction(2, 1 << self.bits)

    @property
    def _far(self) -> int:
        """Steps of noise that an honest report goes beyond with a probability below e^−64."""
        return min(_FAR * -(-self.length // _FINE), _MIDDLE - (1 << self.bits))

    @property
    def furthest(self) -> Fraction:
        return 1 + self._far * Fraction(2, 1 << self.bits)

    def variance(self, code: int) -> Fraction:
        return rounded_square(code, self.bits) - position(code) ** 2 + self.base

    def perturb(self, codes: Codes, stream: Keystream) -> NDArray[np.uint32]:
        reports = np.empty(codes.size, dtype=np.uint32)
        for start in range(0, codes.size, 4 * CHUNK):
            index = round_codes(codes[start : start + 4 * CHUNK], self.bits, stream).astype(np.int64)
            index += self._noise(index.size, stream) + _MIDDLE
            reports[start : start + 4 * CHUNK] = np.clip(index, 0, 2 * _MIDDLE - 1)
        return reports

    def _noise(self, count: int, stream: Keystream) -> NDArray[np.int64]:
        out = np.empty(count, dtype=np.int64)
        done = 0
        while done < count:
            magnitude = self._geometric(2 * (count - done), stream)
            negative = fair_bits(magnitude.size, stream).view(np.bool_)
            # Minus zero is drawn again, or zero would count twice.
            kept = ~(negative & (magnitude == 0))
            signed = np.where(negative, -magnitude, magnitude)[kept][: count - done]
            out[done : done + signed.size] = signed
            done += signed.size
        return out

    def _geometric(self, tries: int, stream: Keystream) -> NDArray[np.int64]:
        """Pr[Y = y] ∝ exp(−y · 2^10 / length): about two thirds of the tries give one.

        X = U + length · V, U < length accepted with probability e^{−U/length} and V the successes of probability 1/e,
        has Pr[X = x] ∝ e^{−x/length}; the whole multiples of 2^10 in it follow the coarser law.
        """
        low = uniform_long(self.length, tries, stream)
        low = low[bernoulli_exp(low, self.length, stream)]
        high: Words = np.zeros(low.size, dtype=np.uint64)
        active = np.arange(low.size)
        while active.size:
            active = active[bernoulli_exp(np.ones(active.size, dtype=np.uint64), 1, stream)]
            high[active] += np.uint64(1)
        low += np.uint64(self.length) * high
        low //= np.uint64(_FINE)
        return low.astype(np.int64)

    def tally(self, reports: Reports) -> Tally:
        return centred_tally(reports, 2, 2 * _MIDDLE + (1 << self.bits))

    def invalid(self, reports: Reports) -> NDArray[np.intp]:
        """Noise has no bound, but what lies `_far` beyond all inputs was not drawn: a client could send anything."""
        index = reports.astype(np.int64) - _MIDDLE
        return np.flatnonzero((index < -self._far) | (index > (1 << self.bits) + self._far))
