"""Unary encodings: a value as a vector of bits with one set, every bit perturbed on its own."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from pldp.channels.bits import BitVectors, coins
from pldp.channels.exact import SCALE, logistic_threshold
from pldp.channels.octets import bernoulli_octets
from pldp.channels.protocol import Counts, Floats, Reports, Values
from pldp.channels.randomness import Keystream
from pldp.channels.tails import chernoff


class Unary(BitVectors):
    """The own bit is one with probability p, every other one with q, all independent."""

    level_free: ClassVar[bool] = True

    @property
    def exact_pairs(self) -> tuple[Fraction, Fraction]:
        return self.exact_p * self.exact_q, self.exact_q**2

    @property
    def free_cells(self) -> int:
        return self.domain_size

    def total_tail(self, observed: int, n: int) -> float:
        return chernoff(observed, ((n, self.p), (n * (self.domain_size - 1), self.q)))

    def log_unsupported(self, sizes: Counts) -> Floats:
        # The own bit is 0, of the others `sizes` are 1: (1 − p) q^s (1 − q)^(k−1−s).
        miss, hit, rest = (float(chance) for chance in (1 - self.exact_p, self.exact_q, 1 - self.exact_q))
        return np.log(miss) + sizes * np.log(hit) + (self.domain_size - 1 - sizes) * np.log(rest)

    def sample_support(self, true_counts: Counts, rng: np.random.Generator) -> Counts:
        others = true_counts.sum(axis=-1, keepdims=True) - true_counts
        drawn: Counts = rng.binomial(true_counts, self.p) + rng.binomial(others, self.q)
        return drawn


@dataclass(frozen=True)
class BRR(Unary):
    """Binary randomised response, symmetric unary encoding (SUE): each bit kept with p = keep / 2^64, else flipped.

    mpldp Theorem 1: two values differ in two bits, so the worst ratio is (p/q)² with q = 1 − p, and
    p = e^{ε/2} / (e^{ε/2} + 1), here rounded down to a threshold. Noise of one cell and report (Eq. 8):
    v(ε) = pq / (p − q)² = 1 / (4 sinh²(ε/4)), whatever the truth.
    """

    name: ClassVar[str] = "brr"
    words: ClassVar[str] = "every value is reported as yes or no, each told wrongly with a stated chance"
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
    def exact_p(self) -> Fraction:
        return Fraction(self.keep, SCALE)

    @property
    def exact_q(self) -> Fraction:
        return 1 - self.exact_p

    @property
    def worst_ratio(self) -> Fraction:
        # A domain of one value has no second value to tell apart; the bound still holds.
        return Fraction(self.keep, SCALE - self.keep) ** 2

    def perturb(self, values: Values, stream: Keystream) -> Reports:
        """mpldp Algorithm 1: flip every bit of the one-hot vector with probability q."""
        reports = self._noise(SCALE - self.keep, values, stream)
        self._flip_own(reports, values)
        return reports


@dataclass(frozen=True)
class OUE(Unary):
    """Optimised unary encoding: the own bit is a fair coin, every other one set with q = flip / 2^64.

    Wang et al. 2017, Section 4.3: p = 1/2 and q = 1 / (e^ε + 1), here rounded up to a threshold. Two values differ in
    two bits, so the worst ratio is p (1 − q) / ((1 − p) q) = (1 − q) / q. Noise of a rare cell and report:
    4 e^ε / (e^ε − 1)², the least that independent bits can have.
    """

    name: ClassVar[str] = "oue"
    words: ClassVar[str] = "every value is reported as yes or no, a wrong yes made rare"
    domain_size: int
    flip: int

    def __post_init__(self) -> None:
        # From one half on the other bits would be as likely as the own one; at 0 the ratio is infinite.
        if not 0 < self.flip < SCALE // 2:
            raise ValueError("flip must lie strictly between 0 and 2^63")

    @classmethod
    def for_budget(cls, domain_size: int, epsilon: Fraction) -> Self:
        flip = SCALE - logistic_threshold(epsilon)
        if flip >= SCALE // 2:
            raise ValueError(f"a budget of {float(epsilon):g} is too small to leave any signal")
        return cls(domain_size, flip)

    @property
    def exact_p(self) -> Fraction:
        return Fraction(1, 2)

    @property
    def exact_q(self) -> Fraction:
        return Fraction(self.flip, SCALE)

    @property
    def worst_ratio(self) -> Fraction:
        return Fraction(SCALE - self.flip, self.flip)

    def perturb(self, values: Values, stream: Keystream) -> Reports:
        """Noise in every bit; a fair coin then flips the own one, which makes it fair whatever the noise was."""
        reports = self._noise(self.flip, values, stream, bernoulli_octets)
        self._flip_own(reports, values, coins(SCALE // 2, values.size, stream))
        return reports
