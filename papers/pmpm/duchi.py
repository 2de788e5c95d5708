"""Duchi's mechanism for many dimensions at once, which the paper compares with."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from pldp.channels.exact import SCALE
from pldp.channels.numeric.domain import CHUNK, Codes, Floats
from pldp.channels.numeric.draws import bernoulli, fair_bits
from pldp.channels.numeric.duchi import Signs, check_keep, random_signs, threshold
from pldp.channels.randomness import Keystream


@dataclass(frozen=True)
class DuchiMany:
    """d dimensions at once: a corner of {−B, B}^d from the half-space of a random corner x̃.

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
        check_keep(self.keep)
        if self.dimensions < 1:
            raise ValueError("there must be at least one dimension")

    @classmethod
    def for_budget(cls, dimensions: int, epsilon: Fraction) -> Self:
        return cls(dimensions, threshold(epsilon))

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
            signs = random_signs(codes[start : start + rows].reshape(-1), stream).reshape(-1, d)
            out[:] = fair_bits(out.size, stream).reshape(-1, d)
            disagree = (out ^ signs).sum(axis=1, dtype=np.int64)
            mirrored = (2 * disagree > d).astype(np.uint8) ^ bernoulli(SCALE - self.keep, len(out), stream)
            out ^= mirrored[:, None]
        return reports

    def estimate(self, reports: Signs) -> Floats:
        """Unbiased means of the coordinates, in [−1, 1] terms."""
        return float(self.scale) * (2 * reports.mean(axis=0) - 1)
