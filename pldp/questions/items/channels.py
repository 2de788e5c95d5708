"""Item sets: one binary attribute an item, each bit kept with a chance of its own value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.exact import SCALE, logistic_threshold
from pldp.channels.randomness import Keystream, bernoulli_bits
from pldp.questions.items.levels import ZERO_SHARE, Floats, declared_levels, level_budgets
from pldp.questions.items.transactions import Columns
from pldp.questions.items.values import exact_epsilon


@dataclass(frozen=True)
class ItemChannels:
    """Item j's "0" stays with keep_zero[j] / 2^64, its "1" with keep_one[j] / 2^64; 2^64 leaves it as it is."""

    keep_zero: tuple[int, ...]
    keep_one: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.keep_zero or len(self.keep_zero) != len(self.keep_one):
            raise ValueError("a channel needs both thresholds for every item, at least one item")
        for zero, one in zip(self.keep_zero, self.keep_one, strict=True):
            if not (0 <= zero <= SCALE and 0 <= one <= SCALE):
                raise ValueError("thresholds must lie in 0 … 2^64")
            if zero + one <= SCALE:
                raise ValueError("the channel is singular (p = 1/2) or worse: keep_zero + keep_one must exceed 2^64")

    @classmethod
    def aprr(cls, levels: Sequence[int], n_levels: int, epsilon: Fraction) -> Self:
        """aprr 6.1: the level's budget, split again: two thirds for "0", one third for "1"; level 0 is open."""
        budgets = level_budgets(n_levels, epsilon)
        levels = declared_levels(levels, n_levels)
        keeps = {}
        for level in set(levels):
            budget = budgets[level]
            keeps[level] = (
                (SCALE, SCALE)
                if budget is None
                else (logistic_threshold(budget * ZERO_SHARE), logistic_threshold(budget * (1 - ZERO_SHARE)))
            )
        return cls(*(tuple(keeps[level][side] for level in levels) for side in (0, 1)))

    @classmethod
    def symmetric(cls, keeps: Sequence[int]) -> Self:
        """The same chance for both values."""
        return cls(tuple(keeps), tuple(keeps))

    @property
    def n_items(self) -> int:
        return len(self.keep_zero)

    @cached_property
    def ratios(self) -> tuple[Fraction | None, ...]:
        """Of each item the worst ratio max(p₁ / (1 − p₀), p₀ / (1 − p₁)); None if infinite."""
        worst: list[Fraction | None] = []
        for zero, one in zip(self.keep_zero, self.keep_one, strict=True):
            finite = zero < SCALE and one < SCALE
            worst.append(max(Fraction(one, SCALE - zero), Fraction(zero, SCALE - one)) if finite else None)
        return tuple(worst)

    def row_ratio(self, items: Sequence[int] | None = None) -> Fraction | None:
        """Of a whole row, or of these items: bits are independent, so the report at which every item is at its worst
        has the product. aprr Lemma 1 adds up budgets of levels instead, whatever the number of items in them."""
        chosen = [self.ratios[item] for item in (range(self.n_items) if items is None else items)]
        finite = [ratio for ratio in chosen if ratio is not None]
        return prod(finite, start=Fraction(1)) if len(finite) == len(chosen) else None

    @property
    def row_epsilon(self) -> float:
        return exact_epsilon(self.row_ratio())

    @cached_property
    def false_one(self) -> Floats:
        """q_j = Pr[1|0]."""
        return np.array([(SCALE - zero) / SCALE for zero in self.keep_zero])

    @cached_property
    def gap(self) -> Floats:
        """p₁ − q = p₀ + p₁ − 1, without cancellation."""
        return np.array([(zero + one - SCALE) / SCALE for zero, one in zip(self.keep_zero, self.keep_one, strict=True)])

    def responses(self, items: NDArray[np.integer], within: int | None = None) -> Floats:
        """What a report with each of the 2^m patterns adds to the estimated support of each set, (set, pattern).

        (y − q)/(p₁ − q) is unbiased for one bit, so the product over the items is for all being there. In pattern t
        item i is there if bit i of t is set. `within` leaves out the items whose bits it does not have.
        """
        sets, m = items.shape
        out = np.ones((sets, 1))
        for place in range(m):
            q, gap = self.false_one[items[:, place], None], self.gap[items[:, place], None]
            if within is None or within >> place & 1:
                out = np.concatenate([out * (-q / gap), out * ((1 - q) / gap)], axis=1)
            else:
                out = np.concatenate([out, out], axis=1)
        return out

    def expected_noise(self, items: NDArray[np.integer], support: float) -> Floats:
        """Noise of one report's estimate of each set, if so many hold it whole and nobody else any of its items.

        One item alone: E z² is q(1 − q)/gap² without it, 1 + p₁(1 − p₁)/gap² with it; items are independent.
        """
        q, gap = self.false_one[items], self.gap[items]
        p = q + gap
        without, whole = (q * (1 - q) / gap**2).prod(axis=1), (1 + p * (1 - p) / gap**2).prod(axis=1)
        return (1 - support) * without + support * (whole - 1)

    def perturb(self, columns: Columns, stream: Keystream) -> Columns:
        """Each bit on its own; the result holds the reports and no probability (aprr Algorithm 1 adds p_i: never)."""
        if len(columns.words) != self.n_items:
            raise ValueError(f"transactions.items must be the {self.n_items} of the plan")
        out = np.empty_like(columns.words)
        for item, (zero, one) in enumerate(zip(self.keep_zero, self.keep_one, strict=True)):
            truth = columns.words[item]
            if zero == one:
                out[item] = truth ^ _bits(SCALE - zero, truth.size, stream)
            else:
                ones, zeros = _bits(one, truth.size, stream), _bits(SCALE - zero, truth.size, stream)
                out[item] = (truth & ones) | (~truth & zeros)
        out &= columns.mask
        return Columns(out, columns.n_rows)


def _bits(threshold: int, words: int, stream: Keystream) -> NDArray[np.uint64]:
    if threshold == SCALE:
        return np.full(words, np.uint64(0xFFFF_FFFF_FFFF_FFFF))
    if threshold == 0:
        return np.zeros(words, dtype=np.uint64)
    return bernoulli_bits(threshold, 8 * words, stream).view(np.uint64)
