"""How a cell of text becomes a position in the plan: one declared rule per question, as data.

The pipeline executes a rule in the database for everybody (tasks/positions.py), a client in plain Python for one person
(`position`). Shared vectors hold the two together (tests/pldp/questions/test_cells.py). Standard library only.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from math import isfinite

NO_MISSING, NO_OTHER = -1, -2
"""Positions of cells that the spec has no value for: empty or no number, and not declared."""

LARGEST_WEIGHT = 1e30
_SPACES = " \t\n\v\f\r"
_TRUE = frozenset({"true", "t", "yes", "y", "1"})


@dataclass(frozen=True, slots=True)
class Declared:
    """One of the declared values; `missing` is the position of an empty cell, `other` that of any other text."""

    values: tuple[str, ...]
    missing: int | None = None
    other: int | None = None

    @property
    def size(self) -> int:
        return len(self.values)


@dataclass(frozen=True, slots=True)
class Bins:
    """A number's bin between rising cuts, an edge belonging to the bin above; beyond the ends, the outer bins."""

    cuts: tuple[float, ...]
    missing: int | None = None

    @property
    def size(self) -> int:
        return len(self.cuts) - 1


@dataclass(frozen=True, slots=True)
class Codes:
    """A number within bounds as one of the whole numbers 0 … grid, the nearest, half to even; clipped to the bounds."""

    low: float
    high: float
    grid: int
    missing: int | None = None


@dataclass(frozen=True, slots=True)
class Choice:
    """One of the levels, in the order of the plan; what is empty or not declared counts as the default."""

    levels: tuple[str, ...]
    default: int


@dataclass(frozen=True, slots=True)
class Importance:
    """How much an attribute matters to a person: a number above 0, or yes; whatever else stands there is 0.

    `truth` only asks whether it does: 1 or 0.
    """

    truth: bool


@dataclass(frozen=True, slots=True)
class Product:
    """A cross-tab: the combination of its parts' positions, the last part running fastest."""

    parts: tuple[Declared | Bins, ...]


Number = Bins | Codes
Single = Declared | Bins | Codes | Choice
"""Rules of one cell that give a position."""


def position(rule: Single, cell: str | None) -> int:
    """The position of a cell: below 0 (NO_MISSING, NO_OTHER) where the rule has none for it. An empty text is none."""
    if isinstance(rule, Declared):
        if not cell:
            return NO_MISSING if rule.missing is None else rule.missing
        if cell in rule.values:
            return rule.values.index(cell)
        return NO_OTHER if rule.other is None else rule.other
    if isinstance(rule, Choice):
        return rule.levels.index(cell) if cell in rule.levels else rule.default
    value = number(cell)
    if value is None:
        return NO_MISSING if rule.missing is None else rule.missing
    if isinstance(rule, Bins):
        return bisect_right(rule.cuts[1:-1], value)
    inside = min(max(value, rule.low), rule.high)
    return round((inside - rule.low) / (rule.high - rule.low) * rule.grid)


def combined(rule: Product, cells: tuple[str | None, ...]) -> int:
    """The position of several cells together; below 0 where one of them has none."""
    together = 0
    for part, cell in zip(rule.parts, cells, strict=True):
        at = position(part, cell)
        if at < 0:
            return at
        together = together * part.size + at
    return together


def weight(rule: Importance, cell: str | None) -> float:
    """How much it matters, from 0."""
    value = number(cell, finite=False)
    if value is None:
        value = 1.0 if cell is not None and cell.isascii() and cell.lower() in _TRUE else 0.0
    if not isfinite(value) or value <= 0:
        return 0.0
    return 1.0 if rule.truth else min(value, LARGEST_WEIGHT)


def number(cell: str | None, *, finite: bool = True) -> float | None:
    """The number that a cell holds, as the database reads it: ASCII alone, spaces around it, a sign more after a plus.

    Infinite ones and nan are none: nobody's income is either.
    """
    if cell is None or not cell.isascii():
        return None
    text = cell.strip(_SPACES)
    if text[:1] == "+":
        text = text[1:]
        if not text or text[0] in "+" + _SPACES:
            return None
    try:
        value = float(text)
    except ValueError:
        return None
    return value if not finite or isfinite(value) else None
