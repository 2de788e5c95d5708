"""Duchi's mechanism: one of two extremes. Every report says ± on its own fixed grid."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE, logistic_threshold
from pldp.channels.numeric.domain import CHUNK, Codes, position
from pldp.channels.numeric.draws import bernoulli
from pldp.channels.numeric.mechanism import Reports, Tally
from pldp.channels.randomness import Keystream

Signs = NDArray[np.uint8]


def check_keep(keep: int) -> None:
    """ValueError unless a sign is kept more often than not, and not always."""
    if not SCALE // 2 < keep < SCALE:
        raise ValueError("keep must lie strictly between 2^63 and 2^64")


def threshold(epsilon: Fraction) -> int:
    """How often, of 2^64 times, a sign is kept at this budget; ValueError where that leaves no signal."""
    keep = logistic_threshold(epsilon)
    if keep <= SCALE // 2:
        raise ValueError(f"a budget of {float(epsilon):g} is too small to leave any signal")
    return keep


def random_signs(codes: Codes, stream: Keystream) -> Signs:
    """1 with probability (1 + x)/2, else 0: the code rounded at random to the nearest bounds, exactly unbiased."""
    draws = stream.words(-(-codes.size // 2)).view(np.uint32)[: codes.size]
    return ((draws >> np.uint32(1)) < codes).view(np.uint8)


@dataclass(frozen=True)
class Duchi:
    """One dimension: a random sign of mean x, told truly with probability keep / 2^64; ±B, B = 2^64/(2 keep − 2^64).

    Both roundings together give Pr[+] = 1/2 + x (e^ε − 1)/(2e^ε + 2), Duchi's mechanism as pmpm section 2 states it.
    A report is 1 for +B, 0 for −B. y² is always B², so Var[y] = B² − x².
    """

    name: ClassVar[str] = "duchi"
    report_type: ClassVar[type[np.uint8]] = np.uint8
    keep: int

    def __post_init__(self) -> None:
        check_keep(self.keep)

    @classmethod
    def for_budget(cls, epsilon: Fraction) -> Self:
        return cls(threshold(epsilon))

    @property
    def worst_ratio(self) -> Fraction:
        return Fraction(self.keep, SCALE - self.keep)

    @cached_property
    def scales(self) -> tuple[Fraction]:
        return (Fraction(SCALE, 2 * self.keep - SCALE),)

    @property
    def gain(self) -> Fraction:
        return Fraction(0)

    @property
    def base(self) -> Fraction:
        return self.scales[0] ** 2

    @property
    def largest(self) -> Fraction:
        return self.scales[0]

    @property
    def furthest(self) -> Fraction:
        return self.largest

    def variance(self, code: int) -> Fraction:
        return self.base - position(code) ** 2

    def perturb(self, codes: Codes, stream: Keystream) -> Signs:
        reports = np.empty(codes.size, dtype=np.uint8)
        for start in range(0, codes.size, 8 * CHUNK):
            out = reports[start : start + 8 * CHUNK]
            out[:] = random_signs(codes[start : start + 8 * CHUNK], stream)
            out ^= bernoulli(SCALE - self.keep, out.size, stream)
        return reports

    def tally(self, reports: Reports) -> Tally:
        n = int(reports.size)
        return Tally((n,), (2 * int(np.count_nonzero(reports)) - n,), (n,))

    def invalid(self, reports: Reports) -> NDArray[np.intp]:
        return np.flatnonzero(reports > 1)
