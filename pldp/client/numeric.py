"""Mechanisms for numbers of one person: a code from 0 (the lower bound) to 2^31 (the upper one) in, a number out.

Each is the channel of the class with the same name in pldp/channels/numeric, drawn one person at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from pldp.client.dice import HALF, SCALE, Dice
from pldp.client.spend import exponential, spend

CODE_BITS = 31
CODES = 1 << CODE_BITS
_FINE = 1 << 10
_MIDDLE = 1 << 31


def encode(number: float, low: float, high: float) -> int:
    """The code of a number within bounds, the nearest, half to even; beyond a bound it counts as the bound."""
    inside = min(max(number, low), high)
    return round((inside - low) / (high - low) * CODES)


def round_code(code: int, bits: int, dice: Dice) -> int:
    """One of 0 … 2^bits, at random such that its expectation is the code, exactly."""
    shift = CODE_BITS - bits
    return code + dice.below(1 << shift) >> shift


class Mechanism(ABC):
    @abstractmethod
    def draw(self, code: int, dice: Dice) -> int:
        """One report of a code of the input grid."""

    @abstractmethod
    def possible(self, report: int) -> bool:
        """Whether some code can have led to it."""

    @property
    @abstractmethod
    def spend(self) -> int:
        """The logarithm of the worst-case ratio over all reports and codes."""


@dataclass(frozen=True)
class Window(Mechanism):
    """PM and SW: of 2^bits + window cells those of a window that slides with the number are the likelier ones.

    One word decides: its upper bits, divided by `weight`, name a cell of the window or one beyond its end; then its
    lower bits name one of the 2^bits cells outside.
    """

    bits: int
    window: int
    weight: int

    def draw(self, code: int, dice: Dice) -> int:
        first = round_code(code, self.bits, dice)
        word = dice.word()
        offset, outside = (word >> self.bits) // self.weight, word & (1 << self.bits) - 1
        if offset < self.window:
            return first + offset
        return outside + self.window if outside >= first else outside

    def possible(self, report: int) -> bool:
        return 0 <= report < (1 << self.bits) + self.window

    @property
    def spend(self) -> int:
        # Words by which a cell of the window is told, and those by which a cell outside is.
        outside = (SCALE >> self.bits) - self.window * self.weight
        return spend(self.weight << self.bits, max(outside, 0))


@dataclass(frozen=True)
class Duchi(Mechanism):
    """1 or 0: rounded at random to one of the bounds, and told truly with keep / 2^64."""

    keep: int

    def draw(self, code: int, dice: Dice) -> int:
        upper = dice.below(CODES) < code
        return int(upper ^ dice.coin(SCALE - self.keep))

    def possible(self, report: int) -> bool:
        return report in (0, 1)

    @property
    def spend(self) -> int:
        return spend(self.keep, SCALE - self.keep)


@dataclass(frozen=True)
class HM(Mechanism):
    """PM's cell plus 2 with mix / 2^64, else Duchi's 0 or 1."""

    bits: int
    window: int
    weight: int
    keep: int
    mix: int

    def draw(self, code: int, dice: Dice) -> int:
        if self.mix and dice.coin(self.mix):
            return 2 + Window(self.bits, self.window, self.weight).draw(code, dice)
        return Duchi(self.keep).draw(code, dice)

    def possible(self, report: int) -> bool:
        return 0 <= report < (2 + (1 << self.bits) + self.window if self.mix else 2)

    @property
    def spend(self) -> int:
        branches: list[Mechanism] = [Duchi(self.keep)] if self.mix < SCALE else []
        branches += [Window(self.bits, self.window, self.weight)] if self.mix else []
        return max(branch.spend for branch in branches)


@dataclass(frozen=True)
class Laplace(Mechanism):
    """The rounded code plus two-sided geometric noise, Pr[z] ∝ exp(−|z| · 2^10 / length), plus 2^31; 32 bits."""

    bits: int
    length: int

    def draw(self, code: int, dice: Dice) -> int:
        report = round_code(code, self.bits, dice) + self._noise(dice) + _MIDDLE
        return min(max(report, 0), 2 * _MIDDLE - 1)

    def _noise(self, dice: Dice) -> int:
        while True:
            low = dice.below(self.length)
            if not _exp(low, self.length, dice):
                continue
            high = 0
            while _exp(1, 1, dice):
                high += 1
            size = (low + self.length * high) // _FINE
            negative = dice.coin(HALF)
            if size or not negative:  # minus zero is drawn again, or zero would count twice
                return -size if negative else size

    def possible(self, report: int) -> bool:
        return 0 <= report < 2 * _MIDDLE

    @property
    def spend(self) -> int:
        # The bounds are 2^bits steps apart.
        return exponential(Fraction(_FINE << self.bits, self.length))


def _exp(numerator: int, denominator: int, dice: Dice) -> bool:
    """True with probability exp(−numerator / denominator), for numerators up to the denominator (von Neumann): of draws
    of probability γ/1, γ/2, γ/3 … an even number succeeds before the first failure."""
    tries = 1
    while dice.below(denominator * tries) < numerator:
        tries += 1
    return tries % 2 == 1


MECHANISMS: Mapping[str, type[Mechanism]] = {"pm": Window, "sw": Window, "duchi": Duchi, "hm": HM, "laplace": Laplace}
