"""k-ary randomised response: the report is one value, the own one or any."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.bits import coins
from pldp.channels.exact import SCALE, exp_below
from pldp.channels.protocol import Bits, Counts, Floats, PureProtocol, Reports, Values
from pldp.channels.randomness import Keystream, uniform_below
from pldp.channels.scratch import scratch

_BYTE = 256
_BLOCK_ROWS = 1 << 18  # values put in at a time; see scratch
_COUNTED_ROWS = 1 << 17  # an even number: reports of one byte are counted in pairs
_FEW = 8  # values that are faster compared one by one


def redraw_threshold(size: int, epsilon: Fraction) -> int:
    """The smallest r with 1 + size · (2^64 − r) / r ≤ e^ε: redrawing with r / 2^64 among `size` spends at most ε."""
    odds = exp_below(epsilon)
    wanted = size * SCALE / (odds - 1 + size)
    redraw = -(-wanted.numerator // wanted.denominator)
    if redraw >= SCALE:
        raise ValueError(f"a budget of {float(epsilon):g} is too small to leave any signal")
    return redraw


def redrawn_support(true_counts: Counts, chance: float, rng: np.random.Generator) -> Counts:
    """Support if everybody reports the own value or, with this chance, a uniform one of all: exact."""
    size = true_counts.shape[-1]
    moved = rng.binomial(true_counts, chance)
    landed = rng.multinomial(moved.sum(axis=-1), np.full(size, 1 / size))
    return np.asarray(true_counts - moved + landed, dtype=np.int64)


@dataclass(frozen=True)
class KRR(PureProtocol):
    """With probability r = redraw / 2^64 the report is uniform over all k values, else it is the own one.

    So p = 1 − r + r/k and q = r/k, and the worst ratio is p/q = 1 + k (1 − r) / r. With r = k / (e^ε + k − 1), here
    rounded up to a threshold, this is k-RR: p = e^ε / (e^ε + k − 1), q = 1 / (e^ε + k − 1) (Kairouz et al. 2016).
    A report is its value, one byte up to 256 values, else two, the lower one first.
    """

    name: ClassVar[str] = "krr"
    words: ClassVar[str] = "the true answer with a stated chance, else any other one"
    level_free: ClassVar[bool] = True
    domain_size: int
    redraw: int

    def __post_init__(self) -> None:
        # At 0 the report is the value; at 2^64 it says nothing.
        if not 0 < self.redraw < SCALE:
            raise ValueError("redraw must lie strictly between 0 and 2^64")

    @classmethod
    def for_budget(cls, domain_size: int, epsilon: Fraction) -> Self:
        return cls(domain_size, redraw_threshold(domain_size, epsilon))

    @property
    def exact_p(self) -> Fraction:
        return 1 - Fraction(self.redraw, SCALE) + self.exact_q

    @property
    def exact_q(self) -> Fraction:
        return Fraction(self.redraw, SCALE * self.domain_size)

    @property
    def exact_pairs(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), Fraction(0)

    @property
    def worst_ratio(self) -> Fraction:
        # A domain of one value has no second value to tell apart; the bound still holds.
        return self.exact_p / self.exact_q

    @property
    def report_bytes(self) -> int:
        return 1 if self.domain_size <= _BYTE else 2

    @property
    def free_cells(self) -> int:
        return self.domain_size - 1

    def perturb(self, values: Values, stream: Keystream) -> Reports:
        self._check(values)
        said = uniform_below(self.domain_size, values.size, stream, self._number)
        kept = coins(SCALE - self.redraw, values.size, stream)
        for start in range(0, values.size, _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            part = said[rows]
            moved = scratch("moved", part.size, self._number)
            # said + (own − said) · kept, whatever wraps around: a copy by a mask takes seven times as long.
            np.copyto(moved, values[rows], casting="unsafe")
            np.subtract(moved, part, out=moved)
            np.multiply(moved, kept[rows], out=moved)
            np.add(part, moved, out=part)
        return said.view(np.uint8).reshape(values.size, self.report_bytes)

    def support(self, reports: Reports) -> Counts:
        # Reports outside the domain support nothing; `invalid` names them.
        said = self._said(reports)
        if self.domain_size <= _FEW:
            return _compared(said, self.domain_size)
        if self.report_bytes == 1:
            return _paired(said)[: self.domain_size]
        counts = np.zeros(self.domain_size, dtype=np.int64)
        for start in range(0, said.size, _COUNTED_ROWS):
            counts += np.bincount(said[start : start + _COUNTED_ROWS], minlength=counts.size)[: counts.size]
        return counts

    def members(self, reports: Reports) -> Bits:
        return (self._said(reports)[:, None] == np.arange(self.domain_size)).view(np.uint8)

    def invalid(self, reports: Reports) -> NDArray[np.intp]:
        return np.flatnonzero(self._said(reports) >= self.domain_size)

    def sample_support(self, true_counts: Counts, rng: np.random.Generator) -> Counts:
        """Exact, cells that depend on one another included: those redrawn are a multinomial."""
        return redrawn_support(true_counts, self.redraw / SCALE, rng)

    def total_tail(self, observed: int, n: int) -> float:
        return 1.0 if observed == n else 0.0

    def log_unsupported(self, sizes: Counts) -> Floats:
        return np.full(np.shape(sizes), np.log(self.q))

    @property
    def _number(self) -> np.dtype[np.unsignedinteger]:
        return np.dtype(f"<u{self.report_bytes}")

    def _said(self, reports: Reports) -> NDArray[np.unsignedinteger]:
        return np.ascontiguousarray(reports).view(self._number)[:, 0]


def _compared(said: NDArray[np.unsignedinteger], values: int) -> Counts:
    """How often each of few values occurs."""
    counts = np.zeros(values, dtype=np.int64)
    for start in range(0, said.size, _BLOCK_ROWS):
        part = said[start : start + _BLOCK_ROWS]
        same = scratch("same", part.size, np.bool_)
        counts += [np.count_nonzero(np.equal(part, said.dtype.type(x), out=same)) for x in range(values)]
    return counts


def _paired(said: NDArray[np.unsignedinteger]) -> Counts:
    """How often each byte occurs, counted two at a time."""
    pairs = np.zeros(_BYTE * _BYTE, dtype=np.int64)
    even = said[: said.size & ~1]
    for start in range(0, even.size, _COUNTED_ROWS):
        part = np.bincount(even[start : start + _COUNTED_ROWS].view(np.uint16))
        pairs[: part.size] += part
    square = pairs.reshape(_BYTE, _BYTE)
    counts: Counts = square.sum(axis=0) + square.sum(axis=1)
    if said.size & 1:
        counts[said[-1]] += 1
    return counts
