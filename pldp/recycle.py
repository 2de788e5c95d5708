"""Recycling (RCF): reports of a weak level perturbed once more, so that they keep a stricter promise.

An analyst cleared up to budget ε uses reports of at most ε as they are, and those of a larger budget after a second
perturbation, which needs the reports only. The result is a protocol of its own, whose exact ratio is at most the bound
of e^ε that every other protocol keeps. The first reports must stay away from that analyst.

Two recyclings of the same reports would add up. A smaller budget therefore starts from the reports of the next larger
one, never from the first again: whoever holds several then learns no more than the largest tells.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pldp.exact import SCALE, exp_below
from pldp.mechanisms.krr import KRR
from pldp.mechanisms.protocol import Bits, Counts, Floats, PureProtocol, Reports, Values
from pldp.mechanisms.unary import BRR, Unary
from pldp.randomness import Keystream


@dataclass(frozen=True, kw_only=True)
class Recycled(PureProtocol):
    """Reports of `first`, perturbed once more with the threshold of every recycling, the last of them `again`."""

    again: int
    before: tuple[int, ...] = ()
    """Thresholds of the recyclings before this one."""

    @classmethod
    def for_budget(cls, domain_size: int, epsilon: Fraction) -> Self:
        raise ValueError("a recycled protocol starts from another one: use recycle()")

    @property
    @abstractmethod
    def first(self) -> PureProtocol:
        """Whose reports are recycled."""

    @property
    def steps(self) -> tuple[int, ...]:
        """Thresholds of all recyclings, in order."""
        return (*self.before, self.again)

    @property
    def retain(self) -> Fraction:
        return Fraction(self.again, SCALE)

    def perturb(self, values: Values, stream: Keystream) -> Reports:
        reports = self.first.perturb(values, stream)
        for threshold in self.steps:
            reports = self._step(threshold, reports, stream)
        return reports

    def perturb_again(self, reports: Reports, stream: Keystream) -> Reports:
        """The last step alone, on reports of the one before."""
        return self._step(self.again, reports, stream)

    @abstractmethod
    def _step(self, threshold: int, reports: Reports, stream: Keystream) -> Reports: ...


@dataclass(frozen=True)
class RecycledBRR(Recycled, Unary):
    """BRR bits of threshold `keep`, each kept once more with r = again / 2^64, else flipped.

    p = p_a r + (1 − p_a)(1 − r), so r = (p_a + p_d − 1)/(2 p_a − 1) would make p the p_d of the smaller budget.
    """

    name: ClassVar[str] = "brr-recycled"
    domain_size: int
    keep: int

    @property
    def first(self) -> BRR:
        return BRR(self.domain_size, self.keep)

    @property
    def exact_p(self) -> Fraction:
        kept = self.first.exact_p
        for threshold in self.steps:
            retain = Fraction(threshold, SCALE)
            kept = kept * retain + (1 - kept) * (1 - retain)
        return kept

    @property
    def exact_q(self) -> Fraction:
        return 1 - self.exact_p

    @property
    def worst_ratio(self) -> Fraction:
        return (self.exact_p / self.exact_q) ** 2

    def _step(self, threshold: int, reports: Reports, stream: Keystream) -> Reports:
        """Only the number of reports matters to the noise."""
        return reports ^ self._noise(SCALE - threshold, np.zeros(len(reports), dtype=np.uint16), stream)


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


def recycle(source: PureProtocol, epsilon: Fraction) -> Recycled:
    """The least further perturbation after which `source`'s reports keep the promise of ε exactly."""
    if source.worst_ratio <= exp_below(epsilon):
        raise ValueError(f"{source.name} reports already keep a budget of {float(epsilon):g}: use them as they are")
    before = source.steps if isinstance(source, Recycled) else ()
    if isinstance(source, BRR | RecycledBRR):
        odds = exp_below(epsilon / 2)
        again = _floor((odds / (1 + odds) + source.exact_p - 1) / (2 * source.exact_p - 1) * SCALE)
        found: Recycled = RecycledBRR(source.domain_size, source.keep, again=again, before=before)
    elif isinstance(source, KRR | RecycledKRR):
        odds = exp_below(epsilon)
        kept = source.exact_p - source.exact_q
        again = _floor((odds - 1) / (odds - 1 + source.domain_size) / kept * SCALE)
        found = RecycledKRR(source.domain_size, source.redraw, again=again, before=before)
    else:
        raise ValueError(f"{source.name} reports cannot be recycled: only brr and krr")
    # The square of the bound of e^{ε/2} may pass that of e^ε in its last digit.
    while found.worst_ratio > exp_below(epsilon):
        found = replace(found, again=found.again - 1)
    if found.exact_p <= found.exact_q:
        raise ValueError(f"a budget of {float(epsilon):g} is too small to leave any signal")
    return found


def clear(protocols: Sequence[PureProtocol], epsilon: Fraction) -> tuple[PureProtocol, ...]:
    """Each level's protocol as an analyst cleared up to ε sees it: as it is where it keeps ε."""
    bound = exp_below(epsilon)
    return tuple(protocol if protocol.worst_ratio <= bound else recycle(protocol, epsilon) for protocol in protocols)


def _floor(number: Fraction) -> int:
    return number.numerator // number.denominator
