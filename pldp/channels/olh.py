"""Optimal local hashing: a report is a hash function and the perturbed bucket of the own value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.bits import coins
from pldp.channels.exact import SCALE
from pldp.channels.krr import redraw_threshold
from pldp.channels.protocol import Bits, Counts, PureProtocol, Reports, Values
from pldp.channels.randomness import Keystream, uniform_below
from pldp.channels.tails import bernstein

PRIME = 32749
"""The largest below 2^15, so that a sum of two residues fits 16 bits; no domain may be larger."""
_HALF = np.dtype("<u2")
_BLOCK_ROWS = 1 << 16  # reports decoded at a time: one megabyte of arrays, and calls that cost little beside them


def hash_values(hashes: NDArray[np.uint32], x: Values, prime: int = PRIME) -> NDArray[np.uint32]:
    """v(x) = c + d·x + e·x(x−1)/2 mod P, for x < P: no sum passes 2^32. The rows of `hashes` are c, d and e."""
    c, d, e = hashes
    divisor, wide = np.uint32(prime), x.astype(np.uint32)
    choose = wide * (wide - np.uint32(1)) // np.uint32(2)
    value = c + d * wide + e * (choose - choose // divisor * divisor)
    return value - value // divisor * divisor


def bucket_sizes(buckets: int, prime: int = PRIME) -> NDArray[np.intp]:
    """Residues in each bucket: ⌈P/g⌉ in the first ones, ⌊P/g⌋ in the others."""
    floor, larger = divmod(prime, buckets)
    return floor + (np.arange(buckets) < larger)


def support_law(buckets: int, redraw: Fraction, prime: int = PRIME) -> tuple[Fraction, Fraction, Fraction, Fraction]:
    """Chances that a report supports the own value, another, the own and another, two others: the class's docstring."""
    floor, larger = divmod(prime, buckets)
    squares, cubes = (Fraction(larger * (floor + 1) ** m + (buckets - larger) * floor**m, prime**m) for m in (2, 3))
    held, spread = 1 - redraw + redraw / buckets, redraw / buckets
    return held, (1 - redraw) * squares + spread, held * squares, (1 - redraw) * cubes + spread * squares


@dataclass(frozen=True)
class OLH(PureProtocol):
    """The report is (c, d, e, y): v(x) = c + d·x + e·x(x−1)/2 mod P for uniform c, d, e < P, and a bucket y of g.

    P = 32749 is prime, so at three different x < P the values v are independent and uniform. The residues are cut into
    g intervals of ⌊P/g⌋ or ⌈P/g⌉, the buckets, with shares π_y. With r = redraw / 2^64 the bucket y is uniform over
    all g, else that of the own value: k-RR with g values, whose worst ratio 1 + g (1 − r) / r holds for every hash.
    A report supports the values in bucket y: the own one with p = 1 − r + r/g, another with q = (1 − r) Σ π² + r/g, own
    and another with p Σ π², two others with (1 − r) Σ π³ + (r/g) Σ π². Wang et al. 2017 take g = e^ε + 1 and
    Σ π² = 1/g; here g is the one of least noise. Four numbers of 16 bits, the lower byte first: 8 bytes at any domain.
    """

    name: ClassVar[str] = "olh"
    words: ClassVar[str] = "the answer is hashed to few values, of which one is reported by krr"
    domain_size: int
    buckets: int
    redraw: int

    def __post_init__(self) -> None:
        if self.domain_size > PRIME:
            raise ValueError(f"olh takes at most {PRIME} values (got {self.domain_size})")
        if not 2 <= self.buckets <= PRIME // 2:
            raise ValueError(f"buckets must lie between 2 and {PRIME // 2} (got {self.buckets})")
        if not 0 < self.redraw < SCALE:
            raise ValueError("redraw must lie strictly between 0 and 2^64")

    @classmethod
    def for_budget(cls, domain_size: int, epsilon: Fraction) -> Self:
        return cls.with_buckets(domain_size, _best_buckets(domain_size, float(epsilon)), epsilon)

    @classmethod
    def with_buckets(cls, domain_size: int, buckets: int, epsilon: Fraction) -> Self:
        return cls(domain_size, buckets, redraw_threshold(buckets, epsilon))

    @property
    def exact_p(self) -> Fraction:
        return self._law[0]

    @property
    def exact_q(self) -> Fraction:
        return self._law[1]

    @property
    def exact_pairs(self) -> tuple[Fraction, Fraction]:
        return self._law[2:]

    @property
    def worst_ratio(self) -> Fraction:
        return 1 + Fraction(self.buckets * (SCALE - self.redraw), self.redraw)

    @property
    def report_bytes(self) -> int:
        return 4 * _HALF.itemsize

    @property
    def free_cells(self) -> int:
        return self.domain_size

    def perturb(self, values: Values, stream: Keystream) -> Reports:
        self._check(values)
        n = values.size
        reports = np.empty((n, 4), dtype=_HALF)
        redrawn = coins(self.redraw, n, stream).view(np.bool_)
        for start in range(0, n, _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            held, part = values[rows], reports[rows]
            hashes = uniform_below(PRIME, 3 * held.size, stream).reshape(3, -1)
            bucket = self._bucket_of.take(hash_values(hashes, held))
            anything = uniform_below(self.buckets, held.size, stream)
            np.copyto(bucket, anything, where=redrawn[rows], casting="unsafe")
            for column, field in enumerate((*hashes, bucket)):
                part[:, column] = field
        return reports.view(np.uint8)

    def support(self, reports: Reports) -> Counts:
        counts = np.zeros(self.domain_size, dtype=np.int64)
        for start in range(0, len(reports), _BLOCK_ROWS):
            for value, supported in enumerate(self._decode(reports[start : start + _BLOCK_ROWS])):
                counts[value] += np.count_nonzero(supported)
        return counts

    def members(self, reports: Reports) -> Bits:
        out = np.empty((self.domain_size, len(reports)), dtype=np.uint8)
        for start in range(0, len(reports), _BLOCK_ROWS):
            for value, supported in enumerate(self._decode(reports[start : start + _BLOCK_ROWS])):
                out[value, start : start + _BLOCK_ROWS] = supported
        return out.T

    def invalid(self, reports: Reports) -> NDArray[np.intp]:
        fields = np.ascontiguousarray(reports).view(_HALF)
        return np.flatnonzero((fields >= np.array([PRIME, PRIME, PRIME, self.buckets])).any(axis=1))

    def sample_support(self, true_counts: Counts, rng: np.random.Generator) -> Counts:
        """Binomials, cell by cell. Mean and variance are exact; between cells the true covariance is not zero.

        It is that of `ties`, which would be zero with equal intervals: two cells have a correlation below 10⁻³.
        """
        others = true_counts.sum(axis=-1, keepdims=True) - true_counts
        drawn: Counts = rng.binomial(true_counts, self.p) + rng.binomial(others, self.q)
        return drawn

    def total_tail(self, observed: int, n: int) -> float:
        mean, variance = self._total_moments
        return bernstein(observed, n * mean, n * variance, self.domain_size)

    @cached_property
    def _law(self) -> tuple[Fraction, Fraction, Fraction, Fraction]:
        return support_law(self.buckets, Fraction(self.redraw, SCALE))

    @cached_property
    def _total_moments(self) -> tuple[float, float]:
        """Mean and variance of the number of values that one report supports."""
        k, (held_pair, others) = self.domain_size, self.exact_pairs
        mean = self.exact_p + (k - 1) * self.exact_q
        square = mean + 2 * (k - 1) * held_pair + (k - 1) * (k - 2) * others
        return float(mean), float(square - mean**2)

    @cached_property
    def _bucket_of(self) -> NDArray[np.uint16]:
        """By residue."""
        return np.repeat(np.arange(self.buckets, dtype=np.uint16), bucket_sizes(self.buckets))

    def _decode(self, reports: Reports) -> Iterator[NDArray[np.bool_]]:
        """Which reports support value 0, 1, …; each array is valid until the next.

        v(x + 1) = v(x) + d(x) and d(x + 1) = d(x) + e, so a value costs two additions modulo P: of t and t − P, which
        wraps round below zero, the smaller one. v lies in the interval iff v − low, wrapped round, is below its size.
        """
        # A copy, always: the sums are made in place.
        value, step, second, bucket = np.array(np.ascontiguousarray(reports).view(_HALF).T, dtype=np.uint16, order="C")
        floor, larger = divmod(PRIME, self.buckets)
        low = bucket * np.uint16(floor) + np.minimum(bucket, np.uint16(larger))
        size = np.uint16(floor) + (bucket < larger)
        total, wrapped = np.empty_like(value), np.empty_like(value)
        inside = np.empty(value.shape, dtype=np.bool_)
        prime = np.uint16(PRIME)
        for x in range(self.domain_size):
            if x:
                for residue, addend in ((value, step), (step, second)):
                    np.add(residue, addend, out=total)
                    np.subtract(total, prime, out=wrapped)
                    np.minimum(total, wrapped, out=residue)
            np.subtract(value, low, out=wrapped)
            yield np.less(wrapped, size, out=inside)


def _best_buckets(domain_size: int, epsilon: float) -> int:
    """g of least noise over a whole histogram, own cell and k − 1 others, with e^−ε so that nothing overflows."""
    g = np.arange(2, PRIME // 2 + 1)
    floor, larger = PRIME // g, PRIME % g
    squares = (larger * (floor + 1.0) ** 2 + (g - larger) * floor.astype(float) ** 2) / PRIME**2
    odds = 1 + (g - 1) * np.exp(-epsilon)
    kept = -np.expm1(-epsilon) / odds  # 1 − r
    p, q = 1 / odds, kept * squares + (1 - kept) / g
    noise = (p * (1 - p) + (domain_size - 1) * q * (1 - q)) / (kept * (1 - squares)) ** 2
    return int(g[np.argmin(noise)])
