"""Single values of k ≥ 2: everybody keeps the own value with a chance that depends on it, else draws a common one.

This family holds k-RR, aprr's channel (Eq. 1) and the bounded one: Pr[y|x] = (1 − r_x)[y = x] + r_x π_y.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.bits import coins
from pldp.channels.exact import SCALE, log_above
from pldp.channels.krr import redraw_threshold
from pldp.channels.protocol import Counts
from pldp.channels.randomness import Keystream, uniform_below
from pldp.questions.items.levels import Floats, declared_levels, level_budgets

Numbers = NDArray[np.uint16]
_FEW = 1 << 32
MOST_VALUES = 1 << 16


def exact_epsilon(ratio: Fraction | None) -> float:
    """ln of a worst ratio, never below it; None is an infinite one."""
    return math.inf if ratio is None else log_above(ratio)


@dataclass(frozen=True)
class ValueChannel:
    """r_x = redraw[x] / 2^64 and π_y = mass[y] / Σ mass, where Σ mass is 2^64 or at most 2^32.

    The report is a value and nothing else. aprr Algorithm 1 returns p_i beside y_i, which tells x_i's level and, where
    levels are few, x_i itself.
    """

    redraw: tuple[int, ...]
    mass: tuple[int, ...]

    def __post_init__(self) -> None:
        if not 2 <= len(self.redraw) <= MOST_VALUES or len(self.redraw) != len(self.mass):
            raise ValueError(f"a channel needs 2 to {MOST_VALUES} values, a redraw and a mass for each")
        if not all(0 <= redraw <= SCALE for redraw in self.redraw):
            raise ValueError("redraw must lie in 0 … 2^64")
        total = sum(self.mass)
        if min(self.mass) < 0 or not (0 < total <= _FEW or total == SCALE):
            raise ValueError("mass must be ≥ 0 and sum to 2^64, or to at most 2^32")
        # det P = Π (1 − r_x) + Σ_x π_x r_x Π_{x' ≠ x} (1 − r_x').
        blind = [mass for redraw, mass in zip(self.redraw, self.mass, strict=True) if redraw == SCALE]
        if len(blind) > 1 or blind == [0]:
            raise ValueError(
                "the channel is singular (p = 1/k): reports say nothing of some values; raise their budget"
            )

    @classmethod
    def aprr(cls, levels: Sequence[int], n_levels: int, epsilon: Fraction) -> Self:
        """aprr Eq. 1: k-RR with the budget of the true value's level; level 0 is open."""
        levels = declared_levels(levels, n_levels)
        budgets = level_budgets(n_levels, epsilon)
        k = len(levels)
        redraw = {
            level: 0 if (budget := budgets[level]) is None else redraw_threshold(k, budget) for level in set(levels)
        }
        return cls(tuple(redraw[level] for level in levels), (1,) * k)

    @classmethod
    def krr(cls, size: int, epsilon: Fraction) -> Self:
        """Plain k-RR: one budget for all."""
        return cls((redraw_threshold(size, epsilon),) * size, (1,) * size)

    @property
    def size(self) -> int:
        return len(self.redraw)

    @cached_property
    def _total(self) -> int:
        return sum(self.mass)

    @cached_property
    def _landings(self) -> int:
        return sum(mass > 0 for mass in self.mass)

    def probability(self, x: int, y: int) -> Fraction:
        """Pr[y|x], exactly."""
        landed = Fraction(self.redraw[x] * self.mass[y], SCALE * self._total)
        return landed + Fraction(SCALE - self.redraw[x], SCALE) if x == y else landed

    def pair_ratio(self, x: int, other: int) -> Fraction | None:
        """max over y of Pr[y|x] / Pr[y|other]; None if infinite."""
        if x == other:
            return Fraction(1)
        worst = Fraction(0)
        elsewhere = self._landings > (self.mass[x] > 0) + (self.mass[other] > 0)
        pairs = [(self.probability(x, y), self.probability(other, y)) for y in (x, other)]
        if elsewhere:
            pairs.append((Fraction(self.redraw[x]), Fraction(self.redraw[other])))
        for top, bottom in pairs:
            if top and not bottom:
                return None
            worst = max(worst, top / bottom) if top else worst
        return worst

    @cached_property
    def worst_ratio(self) -> Fraction | None:
        """max over y, x, x′ of Pr[y|x] / Pr[y|x′]; None if infinite, as an open value makes it."""
        order = sorted(range(self.size), key=self.redraw.__getitem__)
        worst = Fraction(1)
        for y in range(self.size):
            kept = self.probability(y, y)
            # Of all the others only the least and the most redrawn matter.
            low, high = (next(x for x in side if x != y) for side in (order, order[::-1]))
            chances = (kept, self.probability(low, y), self.probability(high, y))
            if min(chances) == 0:
                if max(chances) > 0:
                    return None
                continue
            worst = max(worst, max(chances) / min(chances))
        return worst

    @cached_property
    def value_ratios(self) -> tuple[Fraction | None, ...]:
        """Of each value the worst ratio against any other, both ways; None if infinite."""
        # Values alike are looked at once.
        rows = list(zip(self.redraw, self.mass, strict=True))
        kinds: dict[tuple[int, int], list[int]] = {}
        for value, row in enumerate(rows):
            kinds.setdefault(row, []).append(value)
        worst: dict[tuple[int, int], Fraction | None] = {}
        for row, (first, *_) in kinds.items():
            others = [next(z for z in alike if z != first) for alike in kinds.values() if alike != [first]]
            ratios = [self.pair_ratio(x, z) for other in others for x, z in ((first, other), (other, first))]
            finite = [ratio for ratio in ratios if ratio is not None]
            worst[row] = max(finite) if len(finite) == len(ratios) else None
        return tuple(worst[row] for row in rows)

    @cached_property
    def matrix(self) -> Floats:
        """Pr[y|x], (x, y), in doubles."""
        redraw = np.array([redraw / SCALE for redraw in self.redraw])
        kept = np.array([(SCALE - redraw) / SCALE for redraw in self.redraw])  # 1 − r without cancellation
        return np.diag(kept) + np.outer(redraw, [mass / self._total for mass in self.mass])

    @cached_property
    def inverse(self) -> Floats:
        """Q with f = Q c of shares c of reports (aprr Eq. 5), (x, y)."""
        return np.asarray(np.linalg.inv(self.matrix.T), dtype=np.float64)

    def perturb(self, values: Numbers, stream: Keystream) -> Numbers:
        if values.size and int(values.max()) >= self.size:
            raise ValueError("a value lies outside the declared domain; declare it or map it to `other` first")
        out = values.astype(np.uint16)
        for threshold, alike in self._redrawn:
            group = np.flatnonzero(alike[values])
            if threshold < SCALE:
                group = group[coins(threshold, group.size, stream).view(np.bool_)]
            out[group] = self._landing(group.size, stream)
        return out

    def support(self, reports: Numbers) -> Counts:
        """How many reports say each value; additive over any split of the reports."""
        return np.bincount(reports, minlength=self.size)[: self.size].astype(np.int64)

    def _landing(self, count: int, stream: Keystream) -> Numbers:
        """Draws of π, exactly: a uniform integer below Σ mass lies in one of the values' intervals."""
        total = self._total
        if total == self.size and max(self.mass) == 1:
            return uniform_below(total, count, stream).astype(np.uint16)
        drawn = stream.copy(count) if total == SCALE else uniform_below(total, count, stream).astype(np.uint64)
        return np.searchsorted(self._ends, drawn, side="right").astype(np.uint16)

    @cached_property
    def _redrawn(self) -> tuple[tuple[int, NDArray[np.bool_]], ...]:
        """Every threshold above 0, and of which values it is."""
        thresholds = np.array(self.redraw, dtype=object)
        return tuple((threshold, thresholds == threshold) for threshold in sorted(set(self.redraw) - {0}))

    @cached_property
    def _ends(self) -> NDArray[np.uint64]:
        """Of the values' intervals. The last may be 2^64, which no word reaches; values without mass at the end are
        never landed on."""
        ends = np.cumsum(np.array(self.mass, dtype=object))
        return np.array([int(end) for end in ends[:-1] if end < SCALE], dtype=np.uint64)
