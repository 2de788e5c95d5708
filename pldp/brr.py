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
_STRIPE_BYTES = 1 << 10  # so that all stripes stay in the cache
_FOLDS = (  # field width, stripes whose fields add up without carry in twice the width, mask of every other field
    (np.uint64(1), 3, np.uint64(0x5555_5555_5555_5555)),
    (np.uint64(2), 5, np.uint64(0x3333_3333_3333_3333)),
    (np.uint64(4), 17, np.uint64(0x0F0F_0F0F_0F0F_0F0F)),
)
_STRIPES = 3 * 5 * 17


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

    def __post_init__(self) -> None:
        # Below one half the worst ratio would be the inverse of the one computed here; at 0 or 2^64 it is infinite.
        if not SCALE // 2 < self.keep < SCALE:
            raise ValueError("keep must lie strictly between 2^63 and 2^64")

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
        # Rows of 1, 2, 4 or 8 bytes are single numbers, whose bits are faster shifted than looked up.
        number = np.dtype(f"<u{width}") if width in (1, 2, 4, 8) else None
        for start in range(0, n, _ROWS):
            own, part = values[start : start + _ROWS], reports[start : start + _ROWS]
            if number:
                part.view(number)[:, 0] ^= np.left_shift(1, own.astype(number))
            else:
                # mode="clip" skips the bounds check already made above.
                part ^= self._one_hot.take(own, axis=0, mode="clip")
        return reports

    def support(self, reports: Reports) -> Counts:
        width = self.report_bytes
        # A stripe is a multiple of 8 rows, whole words at any width; equal blocks leave little to pad.
        eights = max(-(-len(reports) // (8 * _STRIPES)), 1)
        blocks = -(-8 * eights * width // _STRIPE_BYTES)
        rows = 8 * -(-eights // blocks)
        block = _STRIPES * rows
        totals = np.zeros((8, rows * width), dtype=np.int64)
        for start in range(0, len(reports), block):
            part = reports[start : start + block]
            if len(part) < block:
                part = np.concatenate([part, np.zeros((block - len(part), width), dtype=np.uint8)])
            # Bits of 3 stripes add up in 2-bit fields, those of 5 in 4-bit fields, those of 17 in bytes.
            fields = np.ascontiguousarray(part).reshape(1, -1).view(np.uint64)
            for shift, stripes, mask in _FOLDS:
                stacked = fields.reshape(len(fields), stripes, -1)
                halves = np.empty((2, *stacked.shape), dtype=np.uint64)
                np.bitwise_and(stacked, mask, out=halves[0])
                np.bitwise_and(stacked >> shift, mask, out=halves[1])
                fields = np.add.reduce(halves, axis=2).reshape(2 * len(fields), -1)
            totals += fields.view(np.uint8)
        return totals.reshape(8, -1, width).sum(axis=1).T.reshape(-1)[: self.domain_size]

    def invalid(self, reports: Reports) -> NDArray[np.intp]:
        padding = np.uint8(0xFF) << np.uint8(self.domain_size % 8) if self.domain_size % 8 else np.uint8(0)
        return np.flatnonzero(reports[:, -1] & padding)

    def estimate(self, support: Counts, n: int) -> Floats:
        """mpldp Algorithm 2, as shares."""
        return estimate_shares(support, n, self.q, self.gap)

    def sample_support(self, true_counts: Counts, rng: np.random.Generator) -> Counts:
        others = true_counts.sum(axis=-1, keepdims=True) - true_counts
        drawn: Counts = rng.binomial(true_counts, self.p) + rng.binomial(others, self.q)
        return drawn
