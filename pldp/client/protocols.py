"""Frequency protocols for one person: a value below k in, one whole number out.

Each is the channel of the class with the same name in pldp/channels, drawn one person at a time; the tests enumerate
both and compare the chances as rationals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from pldp.client.dice import HALF, SCALE, Dice
from pldp.client.spend import spend

PRIME = 32749


@dataclass(frozen=True)
class Protocol(ABC):
    """A report points to some of the k values: to the own one more often than to any other."""

    domain_size: int

    def draw(self, value: int, dice: Dice) -> int:
        """A report on the value; ValueError for one beyond the domain, which would be sent as it is."""
        if not 0 <= value < self.domain_size:
            raise ValueError("the value lies beyond the channel's domain")
        return self._draw(value, dice)

    @abstractmethod
    def _draw(self, value: int, dice: Dice) -> int: ...

    @abstractmethod
    def possible(self, report: int) -> bool:
        """Whether some value can have led to it."""

    @property
    @abstractmethod
    def bits(self) -> int:
        """Of a report as a whole number."""

    @property
    def spend(self) -> int:
        """The logarithm of the worst-case ratio over all reports and values; nothing where there is one value only."""
        return 0 if self.domain_size == 1 else spend(*self._worst)

    @property
    @abstractmethod
    def _worst(self) -> tuple[int, int]:
        """That ratio of two chances, or its inverse."""

    @property
    @abstractmethod
    def held(self) -> Fraction:
        """Chance that a report points to the own value."""

    @property
    @abstractmethod
    def other(self) -> Fraction:
        """Chance that it points to a given other one."""


@dataclass(frozen=True)
class KRR(Protocol):
    """Any of the k values with redraw / 2^64, all alike; else the own one."""

    redraw: int

    def _draw(self, value: int, dice: Dice) -> int:
        return dice.below(self.domain_size) if dice.coin(self.redraw) else value

    def possible(self, report: int) -> bool:
        return 0 <= report < self.domain_size

    @property
    def bits(self) -> int:
        return 8 if self.domain_size <= 1 << 8 else 16

    @property
    def _worst(self) -> tuple[int, int]:
        return (SCALE - self.redraw) * self.domain_size + self.redraw, self.redraw

    @property
    def held(self) -> Fraction:
        return 1 - Fraction(self.redraw, SCALE) + self.other

    @property
    def other(self) -> Fraction:
        return Fraction(self.redraw, SCALE * self.domain_size)


@dataclass(frozen=True)
class Vector(Protocol):
    """A report is k bits, that of value j worth 2^j."""

    def possible(self, report: int) -> bool:
        return 0 <= report < 1 << self.domain_size

    @property
    def bits(self) -> int:
        return self.domain_size


@dataclass(frozen=True)
class BRR(Vector):
    """Only the own bit is set; then every bit is kept with keep / 2^64, else flipped."""

    keep: int

    def _draw(self, value: int, dice: Dice) -> int:
        flips = sum(dice.coin(SCALE - self.keep) << j for j in range(self.domain_size))
        return flips ^ 1 << value

    @property
    def _worst(self) -> tuple[int, int]:
        # Two values differ in two bits.
        return self.keep**2, (SCALE - self.keep) ** 2

    @property
    def held(self) -> Fraction:
        return Fraction(self.keep, SCALE)

    @property
    def other(self) -> Fraction:
        return 1 - self.held


@dataclass(frozen=True)
class OUE(Vector):
    """The own bit is a fair coin; every other one is set with flip / 2^64."""

    flip: int

    def _draw(self, value: int, dice: Dice) -> int:
        return sum(dice.coin(HALF if j == value else self.flip) << j for j in range(self.domain_size))

    @property
    def _worst(self) -> tuple[int, int]:
        return SCALE - self.flip, self.flip

    @property
    def held(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def other(self) -> Fraction:
        return Fraction(self.flip, SCALE)


@dataclass(frozen=True)
class Subset(Vector):
    """With include / 2^64 the own value and size − 1 of the others, else size of the others; all such sets alike."""

    size: int
    include: int

    def _draw(self, value: int, dice: Dice) -> int:
        if self.domain_size == 1:
            return 1
        included = dice.coin(self.include)
        others = dice.choose(self.domain_size - 1, self.size - included)
        return (included << value) + sum(1 << (j if j < value else j + 1) for j in others)

    def possible(self, report: int) -> bool:
        return super().possible(report) and report.bit_count() == self.size

    @property
    def _worst(self) -> tuple[int, int]:
        # Sets with the value are C(k − 1, size − 1), sets without it C(k − 1, size).
        return self.include * (self.domain_size - self.size), (SCALE - self.include) * self.size

    @property
    def held(self) -> Fraction:
        return Fraction(self.include, SCALE)

    @property
    def other(self) -> Fraction:
        return (self.size - self.held) / max(self.domain_size - 1, 1)


@dataclass(frozen=True)
class OLH(Protocol):
    """A hash function of the report's own, c + d·x + e·x(x−1)/2 mod 32749, and the bucket of the own value's hash, or
    with redraw / 2^64 any of the buckets. It points to all values whose hash lies in that bucket."""

    buckets: int
    redraw: int

    def _draw(self, value: int, dice: Dice) -> int:
        c, d, e = (dice.below(PRIME) for _ in range(3))
        bucket = self.bucket((c + d * value + e * (value * (value - 1) // 2)) % PRIME)
        if dice.coin(self.redraw):
            bucket = dice.below(self.buckets)
        return c | d << 16 | e << 32 | bucket << 48

    def bucket(self, residue: int) -> int:
        """The first PRIME mod buckets of them hold one residue more than the others."""
        floor, larger = divmod(PRIME, self.buckets)
        if residue < larger * (floor + 1):
            return residue // (floor + 1)
        return larger + (residue - larger * (floor + 1)) // floor

    def possible(self, report: int) -> bool:
        hashes = (report >> shift & 0xFFFF for shift in (0, 16, 32))
        return report >= 0 and all(one < PRIME for one in hashes) and report >> 48 < self.buckets

    @property
    def bits(self) -> int:
        return 64

    @property
    def _worst(self) -> tuple[int, int]:
        # Of a hash function k-RR with as many values as there are buckets.
        return (SCALE - self.redraw) * (self.buckets if self.buckets > 1 else 0) + self.redraw, self.redraw

    @property
    def held(self) -> Fraction:
        redraw = Fraction(self.redraw, SCALE)
        return 1 - redraw + redraw / self.buckets

    @property
    def other(self) -> Fraction:
        floor, larger = divmod(PRIME, self.buckets)
        same = Fraction(larger * (floor + 1) ** 2 + (self.buckets - larger) * floor**2, PRIME**2)
        redraw = Fraction(self.redraw, SCALE)
        return (1 - redraw) * same + redraw / self.buckets


PROTOCOLS: Mapping[str, type[Protocol]] = {"krr": KRR, "brr": BRR, "oue": OUE, "subset": Subset, "olh": OLH}
