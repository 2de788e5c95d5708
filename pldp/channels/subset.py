"""Subset selection: the report is a set of ω values, the own one among them more often than any other."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from pldp.channels.bits import BitVectors, coins
from pldp.channels.exact import SCALE, exp_below
from pldp.channels.krr import redrawn_support
from pldp.channels.protocol import Bits, Counts, Floats, Reports, Values
from pldp.channels.randomness import Keystream
from pldp.channels.scratch import scratch
from pldp.channels.sets import LEAF, Masks, block_rows, uniform_sets

Number = TypeVar("Number", np.uint16, np.uint32, np.uint64)

_WIDEST_NUMBER = 64  # values whose set is one number
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
    words: ClassVar[str] = "a few values are reported together, the true answer among them with a stated chance"
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
        held_pair = p * (w - 1) / max(k - 1, 1)
        others = (p * (w - 1) * (w - 2) + (1 - p) * w * (w - 1)) / max((k - 1) * (k - 2), 1)
        return held_pair, others

    @property
    def worst_ratio(self) -> Fraction:
        if self.domain_size == 1:
            return Fraction(1)
        return Fraction(self.include, SCALE - self.include) * Fraction(self.domain_size - self.size, self.size)

    @property
    def free_cells(self) -> int:
        return self.domain_size - 1

    def perturb(self, values: Values, stream: Keystream) -> Reports:
        """The own value is in or not; then a uniform set of the right size of the k − 1 others.

        Up to 64 values the others stand in order, and the own bit is put between them. Beyond, a set is drawn on the
        first k − 1 places, and the value k − 1 takes the own one's place among them: any fixed bijection of the others
        leaves a uniform set uniform.
        """
        self._check(values)
        if self.domain_size == 1:
            return np.ones((values.size, 1), dtype=np.uint8)
        included = coins(self.include, values.size, stream)
        reports = np.zeros((values.size, self.report_bytes), dtype=np.uint8)
        place = self._place_number if self.domain_size <= _WIDEST_NUMBER else self._place_row
        block = block_rows(self.domain_size - 1)
        for start in range(0, values.size, block):
            rows = slice(start, start + block)
            others = uniform_sets(self.domain_size - 1, np.uint16(self.size) - included[rows], stream)
            place(reports[rows], values[rows], included[rows], others)
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

    def _place_number(self, reports: Reports, values: Values, included: Bits, others: Masks) -> None:
        """Write reports of up to 64 values: each is one number while the own bit is put in."""
        number = np.dtype(f"<u{2 if self.domain_size <= LEAF else 4 if self.domain_size <= 2 * LEAF else 8}")
        n = values.size
        sets = scratch("numbers", n, number)
        columns = sets.view("<u2").reshape(n, -1)
        for column in range(columns.shape[1]):
            columns[:, column] = others[column] if column < len(others) else 0
        places = scratch("places", n, number)
        np.copyto(places, values)
        sets = insert_bit(sets, places, included, scratch("inserted", n, number))
        if self.report_bytes == number.itemsize:
            reports.view(number)[:, 0] = sets
        else:
            octets = sets.view(np.uint8).reshape(values.size, -1)
            for column in range(self.report_bytes):
                reports[:, column] = octets[:, column]

    def _place_row(self, reports: Reports, values: Values, included: Bits, others: Masks) -> None:
        """Write reports of any number of values into rows of zeros."""
        n, width = reports.shape
        pairs = np.ndarray((n, width // 2), "<u2", reports.data, strides=(width, 2))
        for column, masks in enumerate(others[: width // 2]):
            pairs[:, column] = masks
        if len(others) > width // 2:
            # The last leaf has at most 8 values here.
            reports[:, -1] = others[-1]
        cells = reports.reshape(-1)
        where = np.arange(0, cells.size, width)
        where += values >> np.uint16(3)
        shift = (values & np.uint16(7)).astype(np.uint8)
        current = cells.take(where, mode="clip")
        there = current >> shift & np.uint8(1)
        cells[where] = current ^ ((there ^ included) << shift)
        # The bit k − 1 was zero; if it is the own one, `there` was that zero.
        last = self.domain_size - 1
        reports[:, last >> 3] |= there << np.uint8(last & 7)

    def _normal_support(self, true_counts: Counts, rng: np.random.Generator) -> Counts:
        """N(mean, D − F K Fᵀ) with D diagonal and F = [counts, 1], as `ties` have it, without a k × k matrix.

        D − F K Fᵀ = √D (I − U K Uᵀ) √D with U = F/√D = QR, and I − U K Uᵀ differs from I in the two dimensions of Q
        only, where R K Rᵀ has the eigenvalues λ: there a standard normal is scaled by √(1 − λ).
        """
        counts = true_counts.astype(np.float64)
        n = counts.sum(axis=-1, keepdims=True)
        p, q, (c, e) = self.p, self.q, (tie * self.gap**2 for tie in self.ties)
        diagonal = counts * (p * (1 - p) + 2 * c) + (n - counts) * q * (1 - q) + n * e
        root = np.sqrt(np.maximum(diagonal, np.finfo(np.float64).eps * n))
        basis, upper = np.linalg.qr(np.stack([counts, np.ones_like(counts)], axis=-1) / root[..., None])
        inner = c * np.array([[0.0, 1.0], [1.0, 0.0]]) + e * n[..., None] * np.array([[0.0, 0.0], [0.0, 1.0]])
        values, vectors = np.linalg.eigh(upper @ inner @ np.swapaxes(upper, -1, -2))
        axes = basis @ vectors
        normal = rng.standard_normal(counts.shape)
        along = np.einsum("...kj,...k->...j", axes, normal) * (np.sqrt(np.maximum(1 - values, 0)) - 1)
        drawn = counts * p + (n - counts) * q + root * (normal + np.einsum("...kj,...j->...k", axes, along))
        return _whole(drawn, n * self.size)


def insert_bit(
    sets: NDArray[Number], places: NDArray[Number], bits: Bits, out: NDArray[Number] | None = None
) -> NDArray[Number]:
    """Put a bit at each set's place; what stood there and above moves up by one."""
    upper = np.right_shift(sets, places, out=out)
    np.add(upper, bits, out=upper)
    np.left_shift(upper, places, out=upper)
    # The lower part, and the upper one twice, which is the upper one shifted by one.
    np.add(upper, sets, out=upper)
    return upper


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
