"""How long rows are, what places of a sampled row cost, and how far supports are understated where rows are longer.

A row of s > ℓ items has each of them drawn with 1/s, not 1/ℓ: it counts as ℓ/s of a holder. Whoever holds an item, the
share that sampling sees is least if the holders are the people with the longest rows; so a declared law of lengths, and
how many rows reports say are that long, bound the true share from above (docs/items.md, 6).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import comb

import numpy as np

from pldp.channels.protocol import Counts
from pldp.estimate.distributions import norm
from pldp.questions.items.levels import Floats
from pldp.questions.items.pooling import Weighing, pool, weigher
from pldp.questions.items.sampling import SetSampling

Lengths = tuple[tuple[int, float], ...]
"""Rising: rows of at most so many items that are longer than those before, and the share of people who have them."""
UNDECLARED_PADDING = 16
"""Places of a row where the spec says nothing of lengths: reports tell how many rows are longer, and intervals hold."""
MOST_PADDING = 1000


@dataclass(frozen=True)
class Overlong:
    """The most that people may hold, by how much of it sampling sees: both sums over the longest rows first."""

    held: Floats
    seen: Floats
    spread: float
    """The most that drawing from longer rows adds to the noise of a report: a place has ρ = ℓ/s there, so ρ(1 − ρ)."""

    @classmethod
    def of(cls, lengths: Lengths, padding: int, longer: float = 1.0) -> Overlong:
        """`longer`: the most people, by their reports, whose rows fill all places or more."""
        held, seen, spread = [0.0], [0.0], 0.0
        for length, share in reversed(lengths):
            part = min(share, longer - held[-1])
            if length <= padding or part <= 0:
                break
            held.append(held[-1] + part)
            seen.append(seen[-1] + part * padding / length)
            place = max(padding / length, 0.5)  # rows of up to this length, of which ρ(1 − ρ) is most at a half
            spread += part * place * (1 - place)
        return cls(np.array(held), np.array(seen), spread)

    @property
    def none(self) -> bool:
        """Whether nobody's row is longer, and nothing understated."""
        return self.held.size == 1

    def hidden(self, held: Floats) -> Floats:
        """The most of a true share that sampling cannot see."""
        inside = np.clip(held, 0, self.held[-1])
        return np.asarray(inside - np.interp(inside, self.held, self.seen))

    def understated(self, seen: Floats) -> Floats:
        """The most that the true share can be above what sampling sees of it."""
        at = np.clip(seen, 0, None)
        return np.asarray(np.interp(at, self.seen, self.held) - np.minimum(at, self.seen[-1]))


def anything(most: int) -> Lengths:
    """Of what nothing is known."""
    return ((most, 1.0),)


def within(lengths: Lengths | None, most: int) -> Lengths:
    """As declared, of at most so many; anything where nothing is."""
    if lengths is None:
        return anything(most)
    merged: dict[int, float] = {}
    for length, share in lengths:
        merged[min(length, most)] = merged.get(min(length, most), 0.0) + share
    return tuple(sorted(merged.items()))


def held_sets_at_most(lengths: Lengths, candidates: Sequence[tuple[int, int]]) -> Lengths:
    """How many candidate sets rows may hold: all sets of its items, as far as there are candidates of the length."""
    total = sum(number for _, number in candidates)
    of_rows = [
        (sum(min(number, comb(length, items)) for items, number in candidates), share) for length, share in lengths
    ]
    merged: dict[int, float] = {}
    for number, share in of_rows:
        merged[number] = merged.get(number, 0.0) + share
    return within(tuple(sorted(merged.items())), max(total, 1))


def choose_padding(lengths: Lengths, half_length: Callable[[int], float]) -> int:
    """The places at which an interval is predicted to be shortest: fewer leave more rows longer, more are noisier."""
    longest = min(max(lengths[-1][0], 1), MOST_PADDING)
    tried = {min(max(length, 1), longest) for length, _ in lengths}
    tried |= {place for power in range(11) for place in (1 << power, 3 << power) if place <= longest}
    return min(sorted(tried), key=half_length)


@dataclass(frozen=True)
class Outlook:
    """What the plan assumes of those who are asked: people by level, their budgets, the support that is looked for."""

    budgets: tuple[Fraction, ...]
    n: Counts
    n_users: int
    weighing: Weighing
    support: float
    confidence: float

    def half_length(self, n_values: int, padding: int, lengths: Lengths) -> float:
        """Half of a predicted interval at the minimum support, understatement included."""
        people = self.n if self.n.any() else np.ones_like(self.n)  # so few that nobody is asked about sets
        there = [level for level, size in enumerate(people) if size > 0]
        samplings = [SetSampling.for_budget(n_values, padding, self.budgets[level]) for level in there]
        n = people[there]
        one = np.zeros((1, 1), dtype=np.int32)
        noise = np.array([[float(each.noise_variance(np.array([self.support]))[0]) for each in samplings]])
        weights = weigher(self.weighing, samplings, n, self.support)(one)
        _, error = pool(np.full_like(noise, self.support), noise, n, weights, self.n_users)
        reach = float(norm.isf((1 - self.confidence) / 2)) * float(error[0])
        above = Overlong.of(lengths, padding).understated(np.array([self.support + reach]))
        return reach + float(above[0]) / 2
