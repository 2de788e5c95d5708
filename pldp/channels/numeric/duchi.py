"""Duchi's mechanisms: one of two extremes, or a corner of a cube. Every report says ± on its own fixed grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE, logistic_threshold
from pldp.channels.numeric.domain import CHUNK, Codes, Floats, position
from pldp.channels.numeric.draws import bernoulli, fair_bits
from pldp.channels.numeric.mechanism import Reports, Tally
from pldp.channels.randomness import Keystream

Signs = NDArray[np.uint8]


def _check_keep(keep: int) -> None:
    if not SCALE // 2 < keep < SCALE:
        raise ValueError("keep must lie strictly between 2^63 and 2^64")


def _threshold(epsilon: Fraction) -> int:
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
        _check_keep(self.keep)

    @classmethod
    def for_budget(cls, epsilon: Fraction) -> Self:
        return cls(_threshold(epsilon))

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


@dataclass(frozen=True)
class DuchiMany:
    """d dimensions at once, for evaluations: a corner of {−B, B}^d from the half-space of a random corner x̃.

    A uniform corner, mirrored if it disagrees with x̃ in more than half of its coordinates, is uniform on the half-space
    of x̃, corners on its boundary (even d) counting half: so both half-spaces have the same mass. It is told truly with
    probability keep / 2^64, else mirrored. With K = keep / 2^64 a corner has probability 2K/2^d, 2(1−K)/2^d or, on the
    boundary, 1/2^d. (Closed half-spaces without the halves give ln(e^ε + 1), open ones infinity.)
    A coordinate agrees with x̃ on average by E|S_d|/d = C(d−1, ⌊(d−1)/2⌋) / 2^(d−1), which with 2K − 1 gives B.
    """

    name: ClassVar[str] = "duchi-many"
    dimensions: int
    keep: int

    def __post_init__(self) -> None:
        _check_keep(self.keep)
        if self.dimensions < 1:
            raise ValueError("there must be at least one dimension")

    @classmethod
    def for_budget(cls, dimensions: int, epsilon: Fraction) -> Self:
        return cls(dimensions, _threshold(epsilon))

    @property
    def worst_ratio(self) -> Fraction:
        return Fraction(self.keep, SCALE - self.keep)

    @property
    def scale(self) -> Fraction:
        """B."""
        d = self.dimensions
        agreement = Fraction(math.comb(d - 1, (d - 1) // 2), 1 << (d - 1))
        return Fraction(SCALE, 2 * self.keep - SCALE) / agreement

    def perturb(self, codes: Codes, stream: Keystream) -> Signs:
        """One row a user, one sign a coordinate."""
        n, d = codes.shape
        if d != self.dimensions:
            raise ValueError(f"rows must have {self.dimensions} coordinates")
        reports = np.empty((n, d), dtype=np.uint8)
        rows = max(CHUNK // d, 1)
        for start in range(0, n, rows):
            out = reports[start : start + rows]
            own = random_signs(codes[start : start + rows].reshape(-1), stream).reshape(-1, d)
            out[:] = fair_bits(out.size, stream).reshape(-1, d)
            disagree = (out ^ own).sum(axis=1, dtype=np.int64)
            mirrored = (2 * disagree > d).astype(np.uint8) ^ bernoulli(SCALE - self.keep, len(out), stream)
            out ^= mirrored[:, None]
        return reports

    def estimate(self, reports: Signs) -> Floats:
        """Unbiased means of the coordinates, in [−1, 1] terms."""
        return float(self.scale) * (2 * reports.mean(axis=0) - 1)
