"""HM: a mixture of PM and Duchi whose worst variance is never above either's (Wang et al., ICDE 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE, exp_below
from pldp.channels.numeric.domain import CHUNK, Codes
from pldp.channels.numeric.draws import bernoulli
from pldp.channels.numeric.duchi import Duchi
from pldp.channels.numeric.mechanism import Reports, Tally
from pldp.channels.numeric.window import GRID_BITS, PM
from pldp.channels.randomness import Keystream

SWITCH = Fraction(61, 100)
"""Up to this budget Duchi alone has the smaller worst variance."""


@dataclass(frozen=True)
class HM:
    """PM with probability mix / 2^64, else Duchi, each with the whole budget.

    Which of the two was drawn does not depend on the value and shows in the report: 0 and 1 are Duchi's signs, j + 2 is
    PM's cell j. So the worst ratio is the larger of the two, each branch is unbiased by itself, and second moments mix.
    """

    name: ClassVar[str] = "hm"
    report_type: ClassVar[type[np.uint32]] = np.uint32
    bits: int
    window: int
    weight: int
    keep: int
    mix: int

    def __post_init__(self) -> None:
        if not 0 <= self.mix < SCALE:
            raise ValueError("mix must lie between 0 and 2^64 − 1")
        _ = self.pm, self.duchi

    @classmethod
    def for_budget(cls, epsilon: Fraction, bits: int = GRID_BITS) -> Self:
        pm, duchi = PM.for_budget(epsilon, bits), Duchi.for_budget(epsilon)
        share = 1 - exp_below(-epsilon / 2) if epsilon > SWITCH else Fraction(0)
        return cls(pm.bits, pm.window, pm.weight, duchi.keep, min(int(share * SCALE), SCALE - 1))

    @cached_property
    def pm(self) -> PM:
        return PM(self.bits, self.window, self.weight)

    @cached_property
    def duchi(self) -> Duchi:
        return Duchi(self.keep)

    @property
    def share(self) -> Fraction:
        return Fraction(self.mix, SCALE)

    @property
    def worst_ratio(self) -> Fraction:
        return max(self.duchi.worst_ratio, self.pm.worst_ratio) if self.mix else self.duchi.worst_ratio

    @cached_property
    def scales(self) -> tuple[Fraction, Fraction]:
        return self.pm.scales[0], self.duchi.scales[0]

    @cached_property
    def gain(self) -> Fraction:
        return self.share * self.pm.gain

    @cached_property
    def base(self) -> Fraction:
        return self.share * self.pm.base + (1 - self.share) * self.duchi.base

    @cached_property
    def largest(self) -> Fraction:
        return max(self.pm.largest, self.duchi.largest) if self.mix else self.duchi.largest

    @property
    def furthest(self) -> Fraction:
        return self.largest

    def variance(self, code: int) -> Fraction:
        # Both branches have the same mean, so variances mix like second moments.
        return self.share * self.pm.variance(code) + (1 - self.share) * self.duchi.variance(code)

    def perturb(self, codes: Codes, stream: Keystream) -> NDArray[np.uint32]:
        reports = np.empty(codes.size, dtype=np.uint32)
        if not self.mix:
            reports[:] = self.duchi.perturb(codes, stream)
            return reports
        pm, duchi = self.pm, self.duchi
        for start in range(0, codes.size, CHUNK):
            part, out = codes[start : start + CHUNK], reports[start : start + CHUNK]
            # Both branches are drawn for everybody and one is taken: faster than gathering and scattering.
            out[:] = pm.perturb(part, stream)
            out += np.uint32(2)
            signs = duchi.perturb(part, stream)
            signs_taken = bernoulli(SCALE - self.mix, part.size, stream).astype(np.uint32)
            np.negative(signs_taken, out=signs_taken)
            out ^= (out ^ signs) & signs_taken
        return reports

    def tally(self, reports: Reports) -> Tally:
        cells = reports[reports >= 2] - reports.dtype.type(2)
        return Tally.join((self.pm.tally(cells), self.duchi.tally(reports[reports < 2])))

    def invalid(self, reports: Reports) -> NDArray[np.intp]:
        return np.flatnonzero(reports >= self.pm.cells + 2 if self.mix else reports >= 2)
