"""Channels for what a person holds: items, one of them, or totals over them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from pldp.client.channels import WORD, Channel, Histogram, Row, from_words, to_words
from pldp.client.dice import HALF, SCALE, Dice
from pldp.client.protocols import KRR, Protocol
from pldp.client.spend import spend

_FARTHEST = (1 << 33) + (1 << 40)
"""No report lies farther from zero: the largest total that counts, and more than any noise reaches."""


@dataclass(frozen=True)
class Bits(Channel):
    """A bit per item: kept with keep_one / 2^64 where it is held, keep_zero / 2^64 where it is not."""

    keep_zero: tuple[int, ...]
    keep_one: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return 1, -(-len(self.keep_zero) // WORD)

    def rows(self, answer: Sequence[int], dice: Dice) -> list[Row]:
        held, report = set(answer), 0
        if not held <= set(range(len(self.keep_zero))):
            raise ValueError("an item lies beyond the channel's items")
        for item, (zero, one) in enumerate(zip(self.keep_zero, self.keep_one, strict=True)):
            said = dice.coin(one) if item in held else not dice.coin(zero)
            report |= said << item
        return [to_words(report, len(self.keep_zero))]

    def possible(self, rows: Sequence[Row]) -> bool:
        report = from_words(rows[0])
        return report is not None and report < 1 << len(self.keep_zero)

    @property
    def spend(self) -> int:
        """Bits are independent, and a report may be at its worst in all of them: somebody holds every item, somebody
        else none."""
        pairs = zip(self.keep_zero, self.keep_one, strict=True)
        return sum(max(spend(one, SCALE - zero), spend(zero, SCALE - one)) for zero, one in pairs)


@dataclass(frozen=True)
class OneValue(Channel):
    """Value x is drawn anew with redraw[x] / 2^64, value y in proportion to mass[y]."""

    redraw: tuple[int, ...]
    mass: tuple[int, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return 1, 1

    def rows(self, answer: Sequence[int], dice: Dice) -> list[Row]:
        (value,) = answer
        if not 0 <= value < len(self.redraw):
            raise ValueError("the value lies beyond the channel's domain")
        if dice.coin(self.redraw[value]):
            ends = list(accumulate(self.mass))
            value = bisect_right(ends, dice.below(ends[-1]))
        return [(value,)]

    def possible(self, rows: Sequence[Row]) -> bool:
        return 0 <= rows[0][0] < len(self.redraw)

    @property
    def spend(self) -> int:
        """Of each value: who has it, and the least and the most redrawn of the others."""
        total, order = sum(self.mass), sorted(self.redraw)
        worst = 0
        for redraw, mass in zip(self.redraw, self.mass, strict=True):
            least = order[1:2] if redraw == order[0] else order[:1]
            most = order[-2:-1] if redraw == order[-1] else order[-1:]
            chances = [(SCALE - redraw) * total + redraw * mass, *(one * mass for one in least + most)]
            worst = max(worst, spend(max(chances), min(chances)))
        return worst


@dataclass(frozen=True)
class Sampled(Channel):
    """The items (or the candidate sets) that are held, filled up with dummies to `length` places; one place is drawn,
    and reported through the protocol, whose values are the items and then the dummies."""

    n_values: int
    length: int
    protocol: Protocol
    candidates: tuple[tuple[int, ...], ...] | None = None
    """Sets that are asked about in place of items."""

    @property
    def shape(self) -> tuple[int, int]:
        return Histogram(self.protocol).shape

    def rows(self, answer: Sequence[int], dice: Dice) -> list[Row]:
        held = sorted(answer)
        if self.candidates is not None:
            held = [i for i, items in enumerate(self.candidates) if set(items) <= set(answer)]
        place = dice.below(max(len(held), self.length))
        value = held[place] if place < len(held) else self.n_values + place
        return Histogram(self.protocol).rows(value, dice)

    def possible(self, rows: Sequence[Row]) -> bool:
        return Histogram(self.protocol).possible(rows)

    @property
    def spend(self) -> int:
        """A report of k-RR points to one value, which is drawn of a list once in `length` times; other reports may
        point to a whole list, and gain nothing."""
        if not isinstance(self.protocol, KRR):
            return self.protocol.spend
        redraw = self.protocol.redraw
        return spend((SCALE - redraw) * self.protocol.domain_size + redraw * self.length, redraw * self.length)


@dataclass(frozen=True)
class Law:
    """Two-sided geometric noise: binary digits that are coins, the lowest first, and a tail that counts on."""

    digits: tuple[int, ...]
    tail: int

    def draw(self, dice: Dice) -> int:
        while True:
            size = sum(dice.coin(digit) << place for place, digit in enumerate(self.digits))
            while dice.coin(self.tail):
                size += 1 << len(self.digits)
            negative = dice.coin(HALF)
            if size or not negative:  # minus zero is drawn again, or zero would count twice
                return -size if negative else size

    @property
    def spend(self) -> int:
        """On one grid unit. From a size to the next the digits below some place fall from 1 to 0 and that one rises, or
        the tail does; each such step is a ratio of its own."""
        worst, top, bottom = 0, 1, 1
        for digit in self.digits:
            worst = max(worst, spend(top * (SCALE - digit), bottom * digit))
            top, bottom = top * digit, bottom * (SCALE - digit)
        return max(worst, spend(top * SCALE, bottom * self.tail))


@dataclass(frozen=True)
class Totals(Channel):
    """Whole numbers of grid units, one per attribute; `laws` has those of every provider, one per attribute."""

    profile: int
    laws: tuple[tuple[Law, ...], ...]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.laws), 1 + len(self.laws[0])

    def rows(self, answer: Sequence[int], dice: Dice) -> list[Row]:
        return [
            (self.profile, *(total + law.draw(dice) for total, law in zip(answer, laws, strict=True)))
            for laws in self.laws
        ]

    def possible(self, rows: Sequence[Row]) -> bool:
        return all(row[0] == self.profile and max(map(abs, row[1:])) <= _FARTHEST for row in rows)

    @property
    def per_unit(self) -> tuple[int, ...]:
        """Of each attribute, on one grid unit of it, towards all providers together: their noises are independent."""
        return tuple(sum(law.spend for law in column) for column in zip(*self.laws, strict=True))

    @property
    def spend(self) -> int:
        """On the least that an item can count for: one unit of one attribute. `catalogue.py` has the rest."""
        return max(self.per_unit)
