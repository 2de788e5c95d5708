"""What the pipeline knows of a frequency protocol: a frozen value with exact privacy and known moments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.randomness import Keystream

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Values = NDArray[np.uint16]
Bits = NDArray[np.uint8]
Reports = NDArray[np.uint8]
"""One row a user, `report_bytes` wide."""


@dataclass(frozen=True)
class PureProtocol(ABC):
    """A report supports the user's own value with probability p, any other given one with q < p.

    Given a report, a value it supports is `worst_ratio` times as likely as one it does not: this is all that a
    likelihood needs (docs/frequencies.md). Subclasses are frozen dataclasses of integers; everything else follows from
    these once, in exact fractions, and nobody else recomputes p or q. A meaning never changes: another mechanism is
    another class.
    """

    name: ClassVar[str]
    words: ClassVar[str]
    """What it does to an answer, for readers of a page."""
    level_free: ClassVar[bool] = False
    """Whether reports look alike at every budget, as hidden levels need: one alphabet, no parameter in the report."""
    domain_size: int

    @classmethod
    @abstractmethod
    def for_budget(cls, domain_size: int, epsilon: Fraction) -> Self:
        """The best protocol whose exact ε is at most this; ValueError where none leaves a signal."""

    @property
    @abstractmethod
    def exact_p(self) -> Fraction:
        """Probability that a report supports the user's own value."""

    @property
    @abstractmethod
    def exact_q(self) -> Fraction:
        """Probability that a report supports a given other value."""

    @property
    @abstractmethod
    def exact_pairs(self) -> tuple[Fraction, Fraction]:
        """Probability that a report supports the own and a given other value, and two given others."""

    @property
    @abstractmethod
    def worst_ratio(self) -> Fraction:
        """max over reports z and values x, x′ of Pr[z|x] / Pr[z|x′]: e to the exact ε, as a rational."""

    @property
    @abstractmethod
    def report_bytes(self) -> int:
        """How many bytes a report has, of which columns of whole numbers are made."""

    @property
    @abstractmethod
    def free_cells(self) -> int:
        """Rank of the covariance of one report's estimate: k, or k − 1 where every report supports equally many."""

    @abstractmethod
    def perturb(self, values: Values, stream: Keystream) -> Reports:
        """One report for each value, which is a position in the domain: (user, byte)."""

    @abstractmethod
    def support(self, reports: Reports) -> Counts:
        """How many reports support each value; additive over any split of the reports."""

    @abstractmethod
    def members(self, reports: Reports) -> Bits:
        """Which values each report supports: (user, value), zero or one. As large as that: for blocks of reports."""

    @abstractmethod
    def invalid(self, reports: Reports) -> NDArray[np.intp]:
        """Rows that no value can have led to; a client that sends them did not follow the plan."""

    @abstractmethod
    def sample_support(self, true_counts: Counts, rng: np.random.Generator) -> Counts:
        """Support as `perturb` then `support` would give it; for plans and evaluations. (…, value)."""

    @abstractmethod
    def total_tail(self, observed: int, n: int) -> float:
        """Bound on the probability that the support of n reports sums to something as far from its mean."""

    def log_unsupported(self, sizes: Counts) -> Floats:
        """ln Pr[z | a value z does not support], by the number of values that z supports; where `level_free`."""
        raise NotImplementedError(f"{self.name} reports depend on the level, so they cannot hide it")

    @cached_property
    def p(self) -> float:
        """`exact_p`, rounded once."""
        return float(self.exact_p)

    @cached_property
    def q(self) -> float:
        """`exact_q`, rounded once."""
        return float(self.exact_q)

    @cached_property
    def gap(self) -> float:
        """p − q, without cancellation."""
        return float(self.exact_p - self.exact_q)

    @cached_property
    def _variances(self) -> tuple[float, float]:
        """Noise of one report's estimate at the own value and at another."""
        gap = self.exact_p - self.exact_q
        held, other = (float(chance * (1 - chance) / gap**2) for chance in (self.exact_p, self.exact_q))
        return held, other

    @cached_property
    def ties(self) -> tuple[float, float]:
        """(c, e) of the covariance between the cells of one report's estimate; both zero where bits are independent.

        The data being fixed, two cells with shares f, f′ have covariance −[c (f + f′) + e]; a user drawn at random adds
        −f f′. With a, b the `exact_pairs`: c = (q(p − q) − a + b) / (p − q)², e = (q² − b) / (p − q)².
        """
        p, q = self.exact_p, self.exact_q
        held_pair, others = self.exact_pairs
        return float((q * (p - q) - held_pair + others) / (p - q) ** 2), float((q * q - others) / (p - q) ** 2)

    @property
    def moments(self) -> dict[str, float]:
        """What an analyst needs to find the error of any sum of values: columns of the published budgets."""
        names = ("noise_own", "noise_other", "covariance_slope", "covariance_base")
        return dict(zip(names, (*self._variances, *self.ties), strict=True))

    def noise_variance(self, frequency: Floats) -> Floats:
        """Variance that one report's noise adds to a cell of this frequency, the data being fixed."""
        held, other = self._variances
        return frequency * held + (1 - frequency) * other

    def estimate(self, support: Counts, n: int) -> Floats:
        """f̂ = (c/n − q) / (p − q): unbiased shares; may be negative or sum to something other than one."""
        return (support / n - self.q) / self.gap

    def _check(self, values: Values) -> None:
        if values.size and int(values.max()) >= self.domain_size:
            raise ValueError("a value lies outside the declared domain")
