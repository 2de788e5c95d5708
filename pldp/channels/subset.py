"""Subset selection: the report is a set of ω values, the own one among them more often than any other."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.bits import BitVectors, coins
from pldp.channels.exact import SCALE, exp_below
from pldp.channels.krr import redrawn_support
from pldp.channels.protocol import Bits, Counts, Floats, Reports, Values
from pldp.channels.randomness import Keystream, bernoulli_bits, uniform_below

_BLOCK_ROWS = 1 << 16  # users handled at a time: enough to hide what a step costs by itself
_BLOCK_BYTES = 1 << 22  # of reports handled at a time, at most
_NORMAL = 100  # variance of a count from which on it is taken for normal
_SIMULATED = 1 << 20  # users × values up to which support is sampled by perturbing


@dataclass(frozen=True)
class Subset(BitVectors):
    """With p = include / 2^64 the own value and ω − 1 uniform others, else ω uniform others.

    A given set is p / C(k−1, ω−1) likely for a value in it and (1 − p) / C(k−1, ω) for one outside, so the worst ratio
    is p/(1−p) · (k−ω)/ω; p = ω e^ε / (ω e^ε + k − ω), here rounded down to a threshold (Ye and Barg 2018; Wang et al.
    2016). Another given value is in with q = (ω − p) / (k − 1). At ω = 1 this is k-RR.
    """

    name: ClassVar[str] = "subset"
    domain_size: int
    size: int
    include: int

    def __post_init__(self) -> None:
        if self.domain_size == 1:
            # The only set; there is nothing to tell apart.
            if (self.size, self.include) != (1, SCALE):
                raise ValueError("a domain of one value has size 1 and include 2^64")
        elif not 1 <= self.size < self.domain_size:
            raise ValueError(f"size must lie between 1 and {self.domain_size - 1} (got {self.size})")
        # At ω/k a set says nothing; at 2^64 a set without a value rules it out.
        elif not SCALE * self.size < self.domain_size * self.include < SCALE * self.domain_size:
            raise ValueError("include must lie strictly between 2^64 · size / domain_size and 2^64")

    @classmethod
    def for_budget(cls, domain_size: int, epsilon: Fraction) -> Self:
        if domain_size == 1:
            return cls(1, 1, SCALE)
        size = _best_size(domain_size, float(epsilon))
        chosen = size * exp_below(epsilon)
        include = SCALE * chosen // (chosen + domain_size - size)
        if domain_size * include <= SCALE * size:
            raise ValueError(f"a budget of {float(epsilon):g} is too small to leave any signal")
        return cls(domain_size, size, int(include))

    @property
    def exact_p(self) -> Fraction:
        return Fraction(self.include, SCALE)

    @property
    def exact_q(self) -> Fraction:
        return (self.size - self.exact_p) / max(self.domain_size - 1, 1)

    @property
    def exact_pairs(self) -> tuple[Fraction, Fraction]:
        k, w, p = self.domain_size, self.size, self.exact_p
        own = p * (w - 1) / max(k - 1, 1)
        others = (p * (w - 1) * (w - 2) + (1 - p) * w * (w - 1)) / max((k - 1) * (k - 2), 1)
        return own, others

    @property
    def worst_ratio(self) -> Fraction:
        if self.domain_size == 1:
            return Fraction(1)
        return Fraction(self.include, SCALE - self.include) * Fraction(self.domain_size - self.size, self.size)

    @property
    def free_cells(self) -> int:
        return self.domain_size - 1

    def perturb(self, values: Values, stream: Keystream) -> Reports:
        """Independent bits first, then single values added until ω are in.

        The own bit is drawn once and never touched again. Given it, everything that happens to the other bits treats
        them alike: they start independent with one probability, in rows with too many each is dropped with one
        probability, and a value to add is uniform among all, ignored where it is the own one or already in. When to
        stop depends on the number of ones only. So at every time the other bits are exchangeable, and a set of given
        size among them is uniform, exactly, whatever these probabilities are.
        """
        self._check(values)
        if self.domain_size == 1:
            return np.ones((values.size, 1), dtype=np.uint8)
        reports = self._noise(self._thresholds[0], values, stream)
        included = coins(self.include, values.size, stream)
        block = min(_BLOCK_ROWS, -(-_BLOCK_BYTES // self.report_bytes))
        for start in range(0, values.size, block):
            rows = slice(start, start + block)
            self._complete(reports[rows], values[rows], included[rows], stream)
        return reports

    def invalid(self, reports: Reports) -> NDArray[np.intp]:
        padded = super().invalid(reports)
        return np.union1d(padded, np.flatnonzero(_weights(reports) != self.size))

    def sample_support(self, true_counts: Counts, rng: np.random.Generator) -> Counts:
        """Exact at ω = 1 and for few users, whose reports are drawn; else normal, with the exact means and covariances.

        Few: n q (1 − q) < 100: beyond, a normal count misses a skewness below 0.1. The normal draw is rounded to
        whole numbers with the exact sum n ω. With many values and small ω it also stands in for few users, for the
        time's sake: cells that expect a handful of reports are too symmetric then, and may be negative.
        """
        if self.domain_size == 1:
            return true_counts.copy()
        if self.size == 1:
            return redrawn_support(true_counts, float(self.exact_q * self.domain_size), rng)
        n = int(true_counts.sum(axis=-1).max(initial=0))
        if n * self.q * (1 - self.q) > _NORMAL or n * self.domain_size > _SIMULATED:
            return self._normal_support(true_counts, rng)
        stream = Keystream(rng.bytes(16))
        every = np.arange(self.domain_size, dtype=np.uint16)
        rows = [self.support(self.perturb(every.repeat(row), stream)) for row in true_counts.reshape(-1, every.size)]
        return np.array(rows, dtype=np.int64).reshape(true_counts.shape)

    def total_tail(self, observed: int, n: int) -> float:
        return 1.0 if observed == n * self.size else 0.0

    @cached_property
    def _thresholds(self) -> tuple[int, int]:
        """Of the first bits and of those that stay in rows with too many. They decide the speed, nothing else.

        About one standard deviation below ω, most rows need a few more values, and few rows have too many.
        """
        spread = np.sqrt(self.size * (1 - self.size / self.domain_size))
        first = max(self.size - spread, 0) / self.domain_size
        stay = max(1 - 2 / np.sqrt(self.size), 0)
        return int(first * SCALE), int(stay * SCALE)

    def _locate(self, rows: NDArray[np.intp], values: NDArray[np.unsignedinteger]) -> tuple[NDArray[np.intp], Bits]:
        """Where the bits of these values stand in the flat array of whole numbers or bytes: index and mask."""
        number = self._number
        if number:
            return rows, np.left_shift(1, values, dtype=number, casting="unsafe")
        return rows * self.report_bytes + (values >> 3), np.left_shift(1, values & 7, dtype=np.uint8, casting="unsafe")

    def _complete(self, reports: Reports, own: Values, included: Bits, stream: Keystream) -> None:
        """Put in the own bits and bring every row to ω ones, in place."""
        cells = reports.view(self._number or np.uint8).reshape(-1)
        where, bit = self._locate(np.arange(own.size), own)
        owned = bit * included
        cells[where] = cells[where] & ~bit | owned
        weights = _weights(reports)
        over = np.flatnonzero(weights > self.size)
        while over.size:
            stay = bernoulli_bits(self._thresholds[1], over.size * self.report_bytes, stream)
            reports[over] &= stay.reshape(over.size, -1)
            cells[where[over]] |= owned[over]
            weights[over] = _weights(reports[over])
            over = over[weights[over] > self.size]
        under = np.flatnonzero(weights < self.size)
        missing = self.size - weights[under]
        while under.size:
            value = uniform_below(self.domain_size, under.size, stream)
            where, bit = self._locate(under, value)
            before = cells[where]
            new = ((before & bit) == 0) & (value != own[under])
            cells[where] = before | bit * new
            missing -= new
            still = np.flatnonzero(missing)
            under, missing = under[still], missing[still]

    def _normal_support(self, true_counts: Counts, rng: np.random.Generator) -> Counts:
        """N(mean, D − F K Fᵀ) with D diagonal and F = [counts, 1], as `ties` have it, without a k × k matrix.

        D − F K Fᵀ = √D (I − U K Uᵀ) √D with U = F/√D = QR, and I − U K Uᵀ differs from I in the two dimensions of Q
        only, where R K Rᵀ has the eigenvalues λ: there a standard normal is scaled by √(1 − λ).
        """
        own = true_counts.astype(np.float64)
        n = own.sum(axis=-1, keepdims=True)
        p, q, (c, e) = self.p, self.q, (tie * self.gap**2 for tie in self.ties)
        diagonal = own * (p * (1 - p) + 2 * c) + (n - own) * q * (1 - q) + n * e
        root = np.sqrt(np.maximum(diagonal, np.finfo(np.float64).eps * n))
        basis, upper = np.linalg.qr(np.stack([own, np.ones_like(own)], axis=-1) / root[..., None])
        inner = c * np.array([[0.0, 1.0], [1.0, 0.0]]) + e * n[..., None] * np.array([[0.0, 0.0], [0.0, 1.0]])
        values, vectors = np.linalg.eigh(upper @ inner @ np.swapaxes(upper, -1, -2))
        axes = basis @ vectors
        normal = rng.standard_normal(own.shape)
        along = np.einsum("...kj,...k->...j", axes, normal) * (np.sqrt(np.maximum(1 - values, 0)) - 1)
        drawn = own * p + (n - own) * q + root * (normal + np.einsum("...kj,...j->...k", axes, along))
        return _whole(drawn, n * self.size)


def _weights(reports: Reports) -> NDArray[np.int32]:
    """How many bits of each row are one."""
    weights: NDArray[np.int32] = np.bitwise_count(reports).sum(axis=1, dtype=np.int32)
    return weights


def _whole(drawn: Floats, total: Floats) -> Counts:
    """Rounded to whole numbers with this sum: the largest remainders go up."""
    even = drawn + (total - drawn.sum(axis=-1, keepdims=True)) / drawn.shape[-1]
    counts: Counts = np.floor(even).astype(np.int64)
    rest = np.rint(total).astype(np.int64) - counts.sum(axis=-1, keepdims=True)
    ranks = np.argsort(np.argsort(counts - even, axis=-1, kind="stable"), axis=-1, kind="stable")
    return counts + (ranks < rest)


def _best_size(domain_size: int, epsilon: float) -> int:
    """ω of least noise over a whole histogram, own cell and k − 1 others, with e^−ε so that nothing overflows."""
    k, w = domain_size, np.arange(1, domain_size)
    odds = w + (k - w) * np.exp(-epsilon)
    p, missed = w / odds, (k - w) * np.exp(-epsilon) / odds
    q = (w - p) / (k - 1)
    gap = w * (k - w) / (k - 1) * -np.expm1(-epsilon) / odds
    return int(w[np.argmin((p * missed + (k - 1) * q * (1 - q)) / gap**2)])
