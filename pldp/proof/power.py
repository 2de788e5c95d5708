"""What a count of alike bits shows of its chance, by the binomial law itself: of how many draws, how small a change.

Where hardly any report errs Bernstein's bound asks for several times as many people as the law does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from scipy.special import bdtr, bdtrc, bdtrik

ALPHA = 1e-13
"""The least probable tail that a count may have: what three million sums, both sides of each, share of a release's
false alarms (`REHEARSED`), so that no release refuses less than is reckoned with here."""
LARGEST = (1 << 31) - 1
"""Draws beyond which the library's binomial law is not defined."""
CAUGHT = 0.99
_NARROW, _WIDE = 7.5, 2.4
"""Standard errors of that tail, and of a count that is on the right side of it 99 times in 100; a little more."""
_STEPS = 12
FEWEST = 64
"""Of each sort, however dear they are."""


@lru_cache(maxsize=4096)
def refused(draws: int, chance: float) -> tuple[int, int]:
    """Counts up to the first and from the second on are refused; −1 and draws + 1 where none is on that side."""
    low = _last(draws, chance)
    return low, draws - _last(draws, 1 - chance)


def _last(draws: int, chance: float) -> int:
    """The largest count with Pr[X ≤ count] < α."""
    guess = bdtrik(ALPHA, draws, chance)
    count = int(guess) if math.isfinite(guess) else 0
    while count >= 0 and bdtr(count, draws, chance) >= ALPHA:
        count -= 1
    while count < draws and bdtr(count + 1, draws, chance) < ALPHA:
        count += 1
    return count


def power(draws: int, chance: float, other: float) -> float:
    """How probable it is that the count is refused if each draw has another chance."""
    low, high = refused(draws, chance)
    below = float(bdtr(low, draws, other)) if low >= 0 else 0.0
    above = float(bdtrc(high - 1, draws, other)) if high <= draws else 0.0
    return below + above


def draws_needed(chance: float, others: Sequence[float], most: int) -> int:
    """How many show that a chance is one of these others, 99 times in 100; `most` where no more may be drawn."""
    needed, countable = 256, min(most, LARGEST)
    for other in others:
        shift = abs(other - chance)
        if shift <= 1e-12 * max(chance, 1 - chance):
            return most
        spread = _NARROW * math.sqrt(chance * (1 - chance)) + _WIDE * math.sqrt(other * (1 - other))
        draws = max((spread / shift) ** 2 / 2, needed)
        while draws < countable and power(int(draws), chance, other) < CAUGHT:
            draws *= 1.1
        if draws >= countable:
            return most
        needed = max(needed, int(draws))
    return needed


def deviation(draws: int, chance: Callable[[float], float], epsilon: float) -> float:
    """The smallest share by which ε is off, either way, that so many draws show 99 times in 100; infinite where none.

    `chance` is that of a draw at an ε.
    """
    now, draws = chance(epsilon), min(draws, LARGEST)

    def seen(share: float) -> bool:
        return all(power(draws, now, chance(epsilon * factor)) >= CAUGHT for factor in (1 - share, 1 + share))

    if not seen(1.0):
        return math.inf
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = math.sqrt(low * high) if low else high / 4
        low, high = (low, middle) if seen(middle) else (middle, high)
    return high


@dataclass(frozen=True)
class Count:
    """How many of so many draws are what each is with `chance(ε)`: a binomial count."""

    draws: int
    chance: Callable[[float], float]

    def power(self, epsilon: float, factor: float) -> float:
        """How probable it is that the count is refused if ε is off by this factor."""
        return power(min(self.draws, LARGEST), self.chance(epsilon), self.chance(epsilon * factor))

    def deviation(self, epsilon: float) -> float:
        return deviation(self.draws, self.chance, epsilon)


def shared(needs: Sequence[int], total: int) -> list[int]:
    """What each of several may take of a total: what it needs, and where that is too much, those that need most
    equally less."""
    left, parts = total, dict.fromkeys(range(len(needs)), 0)
    for place, (number, need) in enumerate(sorted(enumerate(needs), key=lambda one: one[1])):
        parts[number] = min(need, left // (len(needs) - place))
        left -= parts[number]
    return list(parts.values())


def divided(people: int, cells: int, full: int, empty: int) -> tuple[int, int]:
    """How many hold much and how many nothing, by what one of each takes: half each, or fewer of the dear."""
    much = max(FEWEST, min(people // 2, cells // (4 * full)))
    return much, max(FEWEST, min(people - much, (cells - much * full) // empty))
