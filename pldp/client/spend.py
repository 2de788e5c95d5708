"""How much reports tell, against what the plan states: whole numbers only, rounded towards more.

A report's worst-case ratio is how many times likelier it may be with one answer than with another. Its logarithm is
what a channel spends, and adds up over independent reports. Spends are counted here in bits, in steps of 2^-192: a
budget of ε allows ε / ln 2 bits. A spend is never rounded down and a budget never up, so no plan passes that spends
more than it states; thresholds over 2^64 leave gaps that are 2^100 times wider than what rounding takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

PLACES = 192
"""Binary places of a spend."""
_WORK = 256
"""Of the numbers that it is computed with."""
LOG2_E = 0x171547652B82FE1777D0FFDA0D23A7D11D6AEF551BAD2B4B1
"""1 / ln 2 in steps of 2^-192, rounded down."""


class Unbounded(ValueError):
    """A report that some answers lead to and others never do."""


@lru_cache(maxsize=1 << 12)
def spend(top: int, bottom: int) -> int:
    """log2 of the ratio of two chances, the larger over the smaller, rounded up; `Unbounded` where only one is zero."""
    top, bottom = max(top, bottom), min(top, bottom)
    if top == bottom:
        return 0
    if bottom <= 0:
        raise Unbounded("some reports tell an answer for certain")
    number = _over(top << _WORK, bottom)
    bits = number.bit_length() - 1 - _WORK
    number = _over(number, 1 << bits)
    for _ in range(PLACES):  # squaring doubles the logarithm; its next digit is whether two is passed
        number, bits = _over(number * number, 1 << _WORK), bits << 1
        if number >= 2 << _WORK:
            number, bits = _over(number, 2), bits + 1
    return bits + 1


def exponential(exponent: Fraction) -> int:
    """The spend whose ratio is e^exponent, rounded up."""
    return _over(exponent.numerator * (LOG2_E + 1), exponent.denominator)


def allowed(epsilon: Fraction) -> int:
    """The most that a budget of ε allows, rounded down."""
    return epsilon.numerator * LOG2_E // epsilon.denominator


def dealt(points: Iterable[tuple[int, int]], units: int, among: int) -> int:
    """The most that so many numbers spend together if they are dealt these units: (units, spend) is what one may have.

    Whatever they are dealt, units / among is their mean, so that the sum is `among` times a mean of points above it: at
    most the upper hull there.
    """
    hull: list[tuple[int, int]] = []
    for point in sorted(points):
        while len(hull) > 1 and not _bends_down(hull[-2:], point):
            hull.pop()
        hull.append(point)
    for (least, low), (most, high) in pairwise(hull):
        if least * among <= units <= most * among and least < most:
            return among * low + _over((high - low) * (units - among * least), most - least)
    raise ValueError("no class for the units that are dealt")


def _bends_down(last: Sequence[tuple[int, int]], point: tuple[int, int]) -> bool:
    (a, low), (b, middle) = last
    return (middle - low) * (point[0] - b) > (point[1] - middle) * (b - a)


def _over(number: int, by: int) -> int:
    """Divided, rounded up."""
    return -(-number // by)
