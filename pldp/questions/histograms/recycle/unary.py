"""Protocols that are two or more perturbations of a report in a row, each exactly a protocol of its own.

The first draw sees the value, every later one (`_step`) only the report before it. p, q and the worst ratio of the
whole are rationals that follow from all thresholds (docs/frequencies.md, 10).
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from pldp.channels.exact import SCALE
from pldp.channels.protocol import PureProtocol, Reports, Values
from pldp.channels.randomness import Keystream
from pldp.channels.unary import BRR, OUE, Unary


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
        """The chance that the last recycling leaves a bit as it is."""
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
        return flipped(self, threshold, reports, stream)


@dataclass(frozen=True)
class RecycledOUE(Recycled, Unary):
    """OUE bits, each kept once more with r = again / 2^64, else flipped: a fair own bit stays fair.

    p = r/2 + (1 − r)/2 = 1/2 and q = q_a r + (1 − q_a)(1 − r): OUE once more, with another q.
    """

    name: ClassVar[str] = "oue-recycled"
    domain_size: int
    flip: int

    @property
    def first(self) -> OUE:
        return OUE(self.domain_size, self.flip)

    @property
    def exact_p(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def exact_q(self) -> Fraction:
        chance = self.first.exact_q
        for threshold in self.steps:
            retain = Fraction(threshold, SCALE)
            chance = chance * retain + (1 - chance) * (1 - retain)
        return chance

    @property
    def worst_ratio(self) -> Fraction:
        return (1 - self.exact_q) / self.exact_q

    def _step(self, threshold: int, reports: Reports, stream: Keystream) -> Reports:
        return flipped(self, threshold, reports, stream)


def flipped(encoding: Unary, threshold: int, reports: Reports, stream: Keystream) -> Reports:
    """Every bit kept with threshold / 2^64, else flipped; only the number of reports matters to the noise."""
    return reports ^ encoding._noise(SCALE - threshold, np.zeros(len(reports), dtype=np.uint16), stream)
