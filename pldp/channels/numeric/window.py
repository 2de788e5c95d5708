"""Mechanisms whose likely outputs are a window that slides with the value: PM for means, SW for histograms.

Inputs are indices i = 0 … G, G = 2^bits, x = 2i/G − 1. Outputs are the cells 0 … G + w − 1, the same for every input.
The w cells from i on are the window: together they have probability w · weight / 2^(64−bits), each of them the same;
the G cells outside share the rest equally. So with W = 2^(64−bits)

    Pr[j | i] = weight / W  in the window,      (W − w · weight) / (W · G)  outside.

Every cell is likely under some input and unlikely under another, so the worst ratio is
weight · G / (W − w · weight), exactly. One random word makes a report: its upper 64 − bits bits decide between window
and outside and, divided by `weight`, pick the cell of the window; its lower bits pick the cell outside.
No draw is rejected and nothing is rounded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import BITS, exp_below
from pldp.channels.numeric.domain import CHUNK, Codes, Floats, position, round_codes, rounded_square
from pldp.channels.numeric.mechanism import Reports, Tally, centred_tally
from pldp.channels.randomness import Keystream

GRID_BITS = 15
"""Steps of the input grid, as a power of two: the largest for which reports fit into 16 bits."""


def _ones(condition: NDArray[np.bool_]) -> NDArray[np.uint16]:
    """All bits set where true."""
    mask = condition.view(np.uint8).astype(np.uint16)
    return np.negative(mask, out=mask)


@dataclass(frozen=True)
class Window:
    """A sliding window of `window` cells, each of `weight` / 2^(64 − bits)."""

    name: ClassVar[str] = "window"
    report_type: ClassVar[type[np.uint16]] = np.uint16
    bits: int
    window: int
    weight: int

    def __post_init__(self) -> None:
        if not 1 <= self.bits <= GRID_BITS or not 1 <= self.window <= self.steps:
            raise ValueError(f"bits must lie in 1 … {GRID_BITS} and the window in 1 … 2^bits")
        # More than half of the probability inside: then the window's cells are the likelier ones.
        if not self._whole // 2 < self.window * self.weight < self._whole:
            raise ValueError("the window must have more than half of the probability, and less than all")

    @classmethod
    def ideal_window(cls, epsilon: Fraction) -> Fraction:
        """Width of the window as a share of the range of inputs."""
        raise NotImplementedError

    @classmethod
    def for_budget(cls, epsilon: Fraction, bits: int = GRID_BITS) -> Self:
        """The ideal window rounded up to whole cells, then the largest weight within the budget for *that* window."""
        steps, whole = 1 << bits, 1 << (BITS - bits)
        # Up, so that the window keeps more than half of the probability however small the budget.
        window = min(max(math.ceil(cls.ideal_window(epsilon) * steps), 1), steps)
        odds = exp_below(epsilon)
        # weight · G / (W − w · weight) ≤ e^ε, solved for the weight; at least 1/2^64 stays outside.
        weight = whole * odds.numerator // (steps * odds.denominator + window * odds.numerator)
        weight = min(weight, (whole - 1) // window)
        if weight * (steps + window) <= whole or 2 * window * weight <= whole:
            raise ValueError(f"a budget of {float(epsilon):g} is too small to leave any signal")
        return cls(bits, window, weight)

    @property
    def steps(self) -> int:
        return 1 << self.bits

    @property
    def cells(self) -> int:
        return self.steps + self.window

    @property
    def _whole(self) -> int:
        return 1 << (BITS - self.bits)

    @cached_property
    def inside(self) -> Fraction:
        """Probability of one cell in the window."""
        return Fraction(self.weight, self._whole)

    @cached_property
    def outside(self) -> Fraction:
        """Probability of one cell outside it."""
        return Fraction(self._whole - self.window * self.weight, self._whole * self.steps)

    @property
    def worst_ratio(self) -> Fraction:
        return self.inside / self.outside

    @cached_property
    def scales(self) -> tuple[Fraction]:
        """The centred cell c = 2j − (cells − 1) has mean (inside − outside) · w · G · x."""
        return (1 / ((self.inside - self.outside) * self.window * self.steps),)

    @cached_property
    def gain(self) -> Fraction:
        # Σc² over the window around centre Gx: w (Gx)² + w(w²−1)/3; over all cells: M(M²−1)/3.
        return self.scales[0] ** 2 * (self.inside - self.outside) * self.window * self.steps**2

    @cached_property
    def base(self) -> Fraction:
        def spread(cells: int) -> Fraction:
            return Fraction(cells * (cells**2 - 1), 3)

        centred = (self.inside - self.outside) * spread(self.window) + self.outside * spread(self.cells)
        return self.scales[0] ** 2 * centred

    @cached_property
    def largest(self) -> Fraction:
        return self.scales[0] * (self.cells - 1)

    @property
    def furthest(self) -> Fraction:
        return self.largest

    def variance(self, code: int) -> Fraction:
        return self.gain * rounded_square(code, self.bits) + self.base - position(code) ** 2

    def perturb(self, codes: Codes, stream: Keystream) -> NDArray[np.uint16]:
        """pmpm Algorithm 1 on the grid."""
        reports = np.empty(codes.size, dtype=np.uint16)
        window, weight = np.uint16(self.window), np.uint64(self.weight)
        low, shift = np.uint16(self.steps - 1), np.uint64(self.bits)
        for start in range(0, codes.size, CHUNK):
            out = reports[start : start + CHUNK]
            first = round_codes(codes[start : start + CHUNK], self.bits, stream).astype(np.uint16)
            words = stream.words(out.size)
            outside = words.astype(np.uint16)
            outside &= low
            words >>= shift
            # Below 2w, because the window has more than half: it fits into 16 bits.
            offset = np.floor_divide(words, weight, out=words).astype(np.uint16)
            np.add(outside, _ones(outside >= first) & window, out=out)
            hit = _ones(offset < window)
            offset += first
            # out = offset where hit, without a branch: three times as fast as a masked copy.
            offset ^= out
            offset &= hit
            out ^= offset
        return reports

    def tally(self, reports: Reports) -> Tally:
        return centred_tally(reports, 2, self.cells - 1)

    def invalid(self, reports: Reports) -> NDArray[np.intp]:
        return np.flatnonzero(reports >= self.cells)

    def below(self, cell: Floats, index: Floats) -> Floats:
        """Pr[report < cell | input index], broadcast; linear between whole numbers."""
        reached = np.clip(cell - index, 0, self.window)
        return float(self.outside) * cell + float(self.inside - self.outside) * reached


class PM(Window):
    """Piecewise mechanism, pmpm Eq. 3–6.

    l(x) slides over C + 1 while the window is C − 1 wide (Eq. 5): their ratio is e^{−ε/2}.
    """

    name: ClassVar[str] = "pm"

    @classmethod
    def ideal_window(cls, epsilon: Fraction) -> Fraction:
        return exp_below(-epsilon / 2)


class SquareWave(Window):
    """Square wave of Li et al. (SIGMOD 2020): the window of largest mutual information, for histograms.

    Its half-width is b = (ε e^ε − e^ε + 1) / (2 e^ε (e^ε − 1 − ε)) of the range, from 1/2 down to 0.
    """

    name: ClassVar[str] = "sw"

    @classmethod
    def ideal_window(cls, epsilon: Fraction) -> Fraction:
        if epsilon < Fraction(1, 1000):  # the series, where both sides of the fraction cancel: b = 1/2 − ε/3 + …
            return 1 - 2 * epsilon / 3
        power = exp_below(epsilon)
        return (epsilon * power - power + 1) / (power * (power - 1 - epsilon))
