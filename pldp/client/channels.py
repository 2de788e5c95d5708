"""What turns one person's answer to a question into the rows that are sent: one channel per question and choice.

    Histogram   one value                     one row: the report's 64-bit words
    Hidden      one value, and the level      the same, with the report about the level in front of it
    Numbers     codes of several numbers      a row per sampled number: which one, at which class, the report
    Bits        the items that are held       one row: a bit per item
    OneValue    the one item that is held     one row: an item
    Sampled     the items that are held       one row: one of them, or a dummy, through a frequency protocol
    Totals      a whole number per attribute  one row per provider: the profile, each number with its noise

The last four stand in holdings.py. `rows` draws, `possible` says whether some answer can have led to rows; both work on
whole numbers alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pldp.client.dice import Dice
from pldp.client.numeric import Mechanism
from pldp.client.protocols import KRR, Protocol
from pldp.client.spend import dealt

Row = tuple[int, ...]
WORD = 64


def to_words(report: int, bits: int) -> Row:
    """A report as numbers of 64 bits, the lowest first."""
    return tuple(report >> start & (1 << WORD) - 1 for start in range(0, bits, WORD))


def from_words(words: Sequence[int]) -> int | None:
    """The report behind these numbers; None where one of them is not below 2^64."""
    if any(not 0 <= word < 1 << WORD for word in words):
        return None
    return sum(word << WORD * i for i, word in enumerate(words))


class Channel(ABC):
    """An answer in, rows of whole numbers out."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """How many rows a person sends, and how many numbers stand in each."""

    @abstractmethod
    def rows(self, answer: Any, dice: Dice) -> list[Row]:
        """The rows to send for an answer; every call draws anew, so whoever asks keeps them."""

    @abstractmethod
    def possible(self, rows: Sequence[Row]) -> bool:
        """Whether rows of the right shape are some that an answer can have led to."""

    @property
    @abstractmethod
    def spend(self) -> int:
        """The logarithm of the worst-case ratio over all rows and answers (spend.py)."""


@dataclass(frozen=True)
class Histogram(Channel):
    protocol: Protocol

    @property
    def shape(self) -> tuple[int, int]:
        return 1, -(-self.protocol.bits // WORD)

    def rows(self, answer: int, dice: Dice) -> list[Row]:
        return [to_words(self.protocol.draw(answer, dice), self.protocol.bits)]

    def possible(self, rows: Sequence[Row]) -> bool:
        report = from_words(rows[0])
        return report is not None and self.protocol.possible(report)

    @property
    def spend(self) -> int:
        return self.protocol.spend


@dataclass(frozen=True)
class Hidden(Channel):
    """The answer is the value and the report about the level, which was drawn once for all questions of its group."""

    protocol: Protocol
    levels: KRR

    @property
    def shape(self) -> tuple[int, int]:
        return 1, 1 + Histogram(self.protocol).shape[1]

    def rows(self, answer: tuple[int, int], dice: Dice) -> list[Row]:
        value, level = answer
        return [(level, *row) for row in Histogram(self.protocol).rows(value, dice)]

    def possible(self, rows: Sequence[Row]) -> bool:
        level, *words = rows[0]
        return self.levels.possible(level) and Histogram(self.protocol).possible([tuple(words)])

    @property
    def spend(self) -> int:
        """On the value: what the report about the level tells of the level is another budget."""
        return self.protocol.spend


@dataclass(frozen=True)
class NumberClass:
    """A budget that a sampled number may get: so many of the spare units, and a mechanism for each number."""

    units: int
    mechanisms: tuple[Mechanism, ...]


@dataclass(frozen=True)
class Numbers(Channel):
    """A person samples some of the numbers, deals the spare units over them by importance, and reports on each.

    The answer is a code per number, and how much each matters. What is sampled and what matters never depends on a
    code.
    """

    sampled: int
    units: int
    classes: tuple[NumberClass, ...]
    weighted: bool
    """Whether units are dealt in proportion to what matters, or equally among what matters at all."""

    @property
    def shape(self) -> tuple[int, int]:
        return self.sampled, 3

    def rows(self, answer: tuple[Sequence[int], Sequence[int]], dice: Dice) -> list[Row]:
        codes, importance = answer
        asked = dice.choose(len(codes), self.sampled)
        dealt = self.deal([importance[number] for number in asked])
        place = {one.units: i for i, one in enumerate(self.classes)}
        rows: list[Row] = []
        for number, units in zip(asked, dealt, strict=True):
            class_ = place[units]
            mechanism = self.classes[class_].mechanisms[number]
            rows.append((number, class_, mechanism.draw(codes[number], dice)))
        return rows

    def deal(self, importance: Sequence[int]) -> list[int]:
        """Spare units of each sampled number; together always all of them, so that the budget is spent and no more."""
        if len(self.classes) == 1:
            return [self.classes[0].units] * self.sampled
        weights = list(importance) if self.weighted else [int(weight > 0) for weight in importance]
        weights = weights if any(weights) else [1] * self.sampled
        total = sum(weights)
        dealt = [self.units * weight // total for weight in weights]
        # What division leaves goes to the largest remainders, of equal ones to the first.
        order = sorted(range(self.sampled), key=lambda i: (-(self.units * weights[i] % total), i))
        for i in order[: self.units - sum(dealt)]:
            dealt[i] += 1
        return dealt

    def possible(self, rows: Sequence[Row]) -> bool:
        asked = [row[0] for row in rows]
        numbers, classes = range(len(self.classes[0].mechanisms)), range(len(self.classes))
        if sorted(set(asked)) != asked or any(row[0] not in numbers or row[1] not in classes for row in rows):
            return False
        if len(self.classes) > 1 and sum(self.classes[row[1]].units for row in rows) != self.units:
            return False
        return all(self.classes[class_].mechanisms[number].possible(report) for number, class_, report in rows)

    @property
    def spend(self) -> int:
        """As if every sampled number were the one that its class protects least, and units were dealt the worst way."""
        points = [(one.units, max(mechanism.spend for mechanism in one.mechanisms)) for one in self.classes]
        return self.sampled * points[0][1] if len(points) == 1 else dealt(points, self.units, self.sampled)
