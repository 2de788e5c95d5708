"""Recycled reports that name values: one of them (k-RR), or a set of them (subset selection)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from pldp.channels.bits import BitVectors, coins
from pldp.channels.exact import SCALE
from pldp.channels.krr import KRR
from pldp.channels.protocol import Bits, Counts, Floats, Reports
from pldp.channels.randomness import Keystream, uniform_below
from pldp.channels.subset import Subset
from pldp.questions.histograms.recycle.unary import Recycled


@dataclass(frozen=True)
class RecycledKRR(Recycled):
    """k-RR reports of threshold `redraw`, each kept once more with r = again / 2^64, else redrawn among all values.

    Two redrawings are one: the own value stays with (1 − redraw/2^64) r, else the report is uniform.
    """

    name: ClassVar[str] = "krr-recycled"
    level_free: ClassVar[bool] = True
    domain_size: int
    redraw: int

    @property
    def first(self) -> KRR:
        return KRR(self.domain_size, self.redraw)

    @property
    def kept(self) -> Fraction:
        """Probability that no redrawing touched the own value."""
        kept = 1 - Fraction(self.redraw, SCALE)
        for threshold in self.steps:
            kept *= Fraction(threshold, SCALE)
        return kept

    @property
    def exact_p(self) -> Fraction:
        return self.kept + self.exact_q

    @property
    def exact_q(self) -> Fraction:
        return (1 - self.kept) / self.domain_size

    @property
    def exact_pairs(self) -> tuple[Fraction, Fraction]:
        return Fraction(0), Fraction(0)

    @property
    def worst_ratio(self) -> Fraction:
        return self.exact_p / self.exact_q

    @property
    def report_bytes(self) -> int:
        return self.first.report_bytes

    @property
    def free_cells(self) -> int:
        return self.domain_size - 1

    def _step(self, threshold: int, reports: Reports, stream: Keystream) -> Reports:
        said = self.first.members(reports).argmax(axis=1).astype(np.uint16)
        return KRR(self.domain_size, SCALE - threshold).perturb(said, stream)

    def support(self, reports: Reports) -> Counts:
        return self.first.support(reports)

    def members(self, reports: Reports) -> Bits:
        return self.first.members(reports)

    def invalid(self, reports: Reports) -> NDArray[np.intp]:
        return self.first.invalid(reports)

    def sample_support(self, true_counts: Counts, rng: np.random.Generator) -> Counts:
        support = self.first.sample_support(true_counts, rng)
        for threshold in self.steps:
            support = KRR(self.domain_size, SCALE - threshold).sample_support(support, rng)
        return support

    def total_tail(self, observed: int, n: int) -> float:
        return self.first.total_tail(observed, n)

    def log_unsupported(self, sizes: Counts) -> Floats:
        return np.full(np.shape(sizes), np.log(self.q))


@dataclass(frozen=True)
class RecycledSubset(Recycled, BitVectors):
    """Sets of ω values, each kept once more with r = again / 2^64, else replaced by a set drawn among all of its size.

    The own value is in with p = p_a r + (1 − r) ω/k, and given that, all sets are equally likely before and after:
    subset selection of the same ω with another p.
    """

    name: ClassVar[str] = "subset-recycled"
    domain_size: int
    size: int
    include: int

    @property
    def first(self) -> Subset:
        return Subset(self.domain_size, self.size, self.include)

    @property
    def kept(self) -> Fraction:
        """Probability that no recycling replaced the first set."""
        return prod((Fraction(threshold, SCALE) for threshold in self.steps), start=Fraction(1))

    @property
    def exact_p(self) -> Fraction:
        return self.first.exact_p * self.kept + (1 - self.kept) * Fraction(self.size, self.domain_size)

    @property
    def exact_q(self) -> Fraction:
        return (self.size - self.exact_p) / (self.domain_size - 1)

    @property
    def exact_pairs(self) -> tuple[Fraction, Fraction]:
        k, w = self.domain_size, self.size
        uniform = Fraction(w * (w - 1), k * (k - 1))
        held_pair, others = (pair * self.kept + (1 - self.kept) * uniform for pair in self.first.exact_pairs)
        return held_pair, others

    @property
    def worst_ratio(self) -> Fraction:
        return self.exact_p / (1 - self.exact_p) * Fraction(self.domain_size - self.size, self.size)

    @property
    def free_cells(self) -> int:
        return self.domain_size - 1

    def invalid(self, reports: Reports) -> NDArray[np.intp]:
        return self.first.invalid(reports)

    def _step(self, threshold: int, reports: Reports, stream: Keystream) -> Reports:
        """A set drawn for a value that is itself drawn among all is a uniform one, whatever p: all sets are alike."""
        keep = coins(threshold, len(reports), stream).astype(bool)
        anybody = uniform_below(self.domain_size, len(reports), stream).astype(np.uint16)
        return np.where(keep[:, None], reports, self.first.perturb(anybody, stream))

    def sample_support(self, true_counts: Counts, rng: np.random.Generator) -> Counts:
        """Of the subset selection that it is, p rounded up to a threshold."""
        include = -(-self.exact_p.numerator * SCALE // self.exact_p.denominator)
        return Subset(self.domain_size, self.size, include).sample_support(true_counts, rng)

    def total_tail(self, observed: int, n: int) -> float:
        return self.first.total_tail(observed, n)
