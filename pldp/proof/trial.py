"""What made-up people come to: sums over their reports, beside what ε promises of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import bdtr, bdtrc

from pldp.channels.protocol import Floats
from pldp.proof.power import Count

OFF = 0.1
"""The share by which ε is wrong in what a rehearsal must see."""
AROUND = 1.0, 1 - OFF, 1 + OFF
FROM = 0.5
"""The ε from which on it must; smaller ones are rehearsed by as many people as this one."""
MOST = 1 << 26
"""People made up for one channel at most, where they take so little: at a large ε hardly any report errs."""
MOST_CELLS = 1 << 28
"""People × values that all rehearsals of a release may take together: about a third of a second."""
REACH = 9.7
"""Standard errors between two laws that can be told apart: 7.0 by Bernstein's bound at the least false alarm that a
release's channels share, 2.7 to be caught 99 times in 100."""


@dataclass(frozen=True)
class Trial:
    """Sums over made-up people through one channel: each of independent terms, with a mean, a variance and the most
    that one term is away from its own mean, all as ε promises them. `shift` is what the nearer of two ε that are 10 %
    off would add to each mean. `draws` is the number of terms where they are alike and 0 or 1: the sum is binomial;
    0 where it is not known to be."""

    channel: str
    epsilon: float
    people: int
    observed: Floats
    mean: Floats
    variance: Floats
    largest: Floats
    shift: Floats
    draws: Floats
    counts: tuple[Count, ...] = field(default=(), kw_only=True)
    """Those of the binomial sums that tell most of ε."""

    @classmethod
    def of(
        cls, channel: str, epsilon: float, people: int, sums: Sequence[tuple[Any, ...]], counts: Sequence[Count] = ()
    ) -> Trial:
        """From tuples of what was observed, mean, variance, largest term, shift and, where the sum is binomial, draws:
        numbers or arrays of one length."""
        rows = [np.broadcast_arrays(*map(np.atleast_1d, one if len(one) == 6 else (*one, 0.0))) for one in sums]
        columns = [np.concatenate([row[i] for row in rows]).astype(np.float64) for i in range(6)]
        return cls(channel, epsilon, people, *columns, counts=tuple(counts))

    @cached_property
    def tail(self) -> float:
        """Bound on the probability that any of the sums lies as far from its mean, times their number: the binomial
        tail itself where that is the law, else Bernstein's bound, which is far above it where few terms count."""
        away = np.abs(self.observed - self.mean)
        rounding = 1e-9 * np.maximum(np.abs(self.mean), 1)
        away = np.where(away <= rounding, 0, away)
        scale = 2 * (self.variance + self.largest * away / 3)
        exponent = np.divide(away**2, scale, out=np.where(away > 0, np.inf, 0.0), where=scale > 0)
        bound = np.exp(-exponent)
        exact = (self.draws > 0) & (away > 0)
        bound[exact] = _binomial_tail(
            self.observed[exact], self.draws[exact], (self.mean / np.maximum(self.draws, 1))[exact]
        )
        return float(min(1.0, 2 * away.size * bound.min(initial=1.0)))

    @cached_property
    def visible(self) -> float:
        """The relative deviation of ε that so many people show 99 times in 100, by the sum that tells most: by its
        own law where it is binomial, else by Bernstein's bound."""
        needed = REACH * np.sqrt(self.variance + self.largest * self.shift / 3)
        signals = np.divide(self.shift, needed, out=np.zeros_like(needed), where=needed > 0)
        sharpest = float(np.max(signals, initial=0.0))
        bound = OFF / sharpest if sharpest else np.inf
        if not self.counts:
            return bound
        seen = min(count.deviation(self.epsilon) for count in self.counts)
        # Beyond the 10 % that the bound was computed at, a law near its end tells less than proportion says.
        return min(seen, bound) if bound <= OFF else seen

    def power(self, factor: float) -> float | None:
        """At least how probable it is that an ε off by this factor is refused, by the law of the binomial sums; None
        where no sum has one."""
        return max((count.power(self.epsilon, factor) for count in self.counts), default=None)


def _binomial_tail(observed: Floats, draws: Floats, chance: Floats) -> Floats:
    """The smaller of Pr[X ≤ observed] and Pr[X ≥ observed]; 0 of what no number of draws gives."""
    inside, whole = np.clip(chance, 0.0, 1.0), draws.astype(np.int64)
    within = np.clip(observed, 0, draws)
    below = np.where(within >= draws, 1.0, bdtr(within, whole, inside))
    above = np.where(within <= 0, 1.0, bdtrc(within - 1, whole, inside))
    return np.where(within == observed, np.minimum(below, above), 0.0)


def people_needed(variance: float, shift: float, largest: float, most: int = MOST) -> int:
    """How many show a shift of one term's mean, by Bernstein's bound; `most` is as many as there may be."""
    moves = shift > 1e-12 * largest  # what does not move tells nothing, however many are asked
    wanted = REACH**2 * (variance + largest * shift / 3) / shift**2 if moves else most
    return int(max(256, min(wanted, most)))


def shifted(means: Sequence[float]) -> float:
    """The smaller of the two changes of a mean, from those at 0.9 ε, at ε and at 1.1 ε."""
    low, at, high = means
    return min(abs(low - at), abs(high - at))
