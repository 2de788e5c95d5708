"""Binary randomised response (BRR): symmetric unary encoding, mpldp's mechanism."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pldp.exact import SCALE, logistic_threshold
from pldp.protocol import Counts, Floats, Reports, Values, estimate_shares
from pldp.randomness import Keystream, bernoulli_bits

_ROWS = 1 << 14  # users whose own bits are set at a time, so that they stay in the cache
_STRIPES = 255  # reports whose bits add up in one byte
_STRIPE_ROWS = 128  # a multiple of 8, so that a stripe is whole words at any width
_LOW_BITS = np.uint64(0x0101_0101_0101_0101)


@dataclass(frozen=True)
class BRR:
    """One-hot vector of `domain_size` bits, each kept with probability p = keep / 2^64, else flipped.

    mpldp Theorem 1: two values differ in two bits, so the worst ratio is (p/q)² with q = 1 − p, and
    p = e^{ε/2} / (e^{ε/2} + 1), here rounded down to a threshold. Noise of one cell and report (Eq. 8):
    v(ε) = pq / (p − q)² = 1 / (4 sinh²(ε/4)), whatever the truth.

    A report is the vector packed into bytes, value j in bit j mod 8 of byte j // 8, padding bits zero.
    """

    name: ClassVar[str] = "brr"
    domain_size: int
    keep: int

    @classmethod
    def for_budget(cls, domain_size: int, epsilon: Fraction) -> Self:
        keep = logistic_threshold(epsilon / 2)
        if keep <= SCALE // 2:
            raise ValueError(f"a budget of {float(epsilon):g} is too small to leave any signal")
        return cls(domain_size, keep)

    @property
    def p(self) -> float:
        return self.keep / SCALE

    @property
    def q(self) -> float:
        return (SCALE - self.keep) / SCALE

    @property
    def gap(self) -> float:
        return (2 * self.keep - SCALE) / SCALE

    @property
    def worst_ratio(self) -> Fraction:
        # A domain of one value has no second value to tell apart; the bound still holds.
        return Fraction(self.keep, SCALE - self.keep) ** 2

    @property
    def report_bytes(self) -> int:
        return -(-self.domain_size // 8)

    @property
    def free_cells(self) -> int:
        return self.domain_size

    def noise_variance(self, frequency: Floats) -> Floats:
        return np.full_like(frequency, self.p * self.q / self.gap**2)

    def covariance(self, frequency: Floats) -> tuple[Floats, Floats]:
        return self.noise_variance(frequency) + frequency, frequency

    def total_law(self, n: int) -> tuple[tuple[int, float], ...]:
        return (n, self.p), (n * (self.domain_size - 1), self.q)

    @cached_property
    def _one_hot(self) -> NDArray[np.uint8]:
        table = np.eye(self.domain_size, 8 * self.report_bytes, dtype=np.uint8)
        return np.packbits(table, axis=1, bitorder="little")

    def perturb(self, values: Values, stream: Keystream) -> Reports:
        """mpldp Algorithm 1: flip every bit of the one-hot vector with probability q."""
        n, width = values.size, self.report_bytes
        if n and int(values.max()) >= self.domain_size:
            raise ValueError("a value lies outside the declared domain")
        reports = bernoulli_bits(SCALE - self.keep, n * width, stream).reshape(n, width)
        padding = 8 * width - self.domain_size
        if padding:
            reports[:, -1] &= np.uint8(0xFF >> padding)
        # Rows of 1, 2, 4 or 8 bytes are single numbers, three times faster to look up.
        number = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}.get(width)
        rows = reports.view(number) if number else reports
        one_hot = self._one_hot.view(number) if number else self._one_hot
        for start in range(0, n, _ROWS):
            # mode="clip" skips the bounds check already made above.
            rows[start : start + _ROWS] ^= one_hot.take(values[start : start + _ROWS], axis=0, mode="clip")
        return reports

    def support(self, reports: Reports) -> Counts:
        width = self.report_bytes
        counts = np.zeros((8, width), dtype=np.int64)
        block = _STRIPES * _STRIPE_ROWS
        whole = len(reports) // block * block
        for start in range(0, whole, block):
            # 255 stripes of whole words: the same bit of 255 bytes adds up in one byte without carry.
            words = reports[start : start + block].reshape(-1).view(np.uint64).reshape(_STRIPES, -1)
            for bit in range(8):
                stripes = words >> np.uint64(bit)
                stripes &= _LOW_BITS
                sums = np.add.reduce(stripes, axis=0).view(np.uint8)
                counts[bit] += sums.reshape(-1, width).sum(axis=0, dtype=np.int64)
        rest = np.unpackbits(reports[whole:], axis=1, bitorder="little").sum(axis=0, dtype=np.int64)
        return (counts.T.reshape(-1) + rest)[: self.domain_size]

    def estimate(self, support: Counts, n: int) -> Floats:
        """mpldp Algorithm 2, as shares."""
        return estimate_shares(support, n, self.q, self.gap)

    def sample_support(self, true_counts: Counts, rng: np.random.Generator) -> Counts:
        others = true_counts.sum(axis=-1, keepdims=True) - true_counts
        drawn: Counts = rng.binomial(true_counts, self.p) + rng.binomial(others, self.q)
        return drawn
