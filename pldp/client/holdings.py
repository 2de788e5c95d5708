"""Channels for what a person holds: items, one of them, or totals over them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from pldp.client.channels import WORD, Channel, Histogram, Row, from_words, to_words
from pldp.client.dice import HALF, Dice
from pldp.client.protocols import Protocol

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
