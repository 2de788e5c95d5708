"""What the pipeline knows of a numeric mechanism: exact privacy, exact unbiasedness, known second moment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from pldp.channels.numeric.domain import Codes
from pldp.channels.randomness import Keystream

Reports = NDArray[Any]
"""One unsigned number a report (`report_type`)."""

_EXACT = 1 << 13  # reports at a time: in the cache, and their sums far below 2^64


@dataclass(frozen=True)
class Tally:
    """Additive statistics of a group of reports: exact integers, one entry an output scale of the mechanism.

    A report's centred integer c stands for the unbiased value scale · c; `total` and `squares` are Σc and Σc².
    """

    n: tuple[int, ...]
    total: tuple[int, ...]
    squares: tuple[int, ...]

    def __add__(self, other: Tally) -> Tally:
        def add(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
            return tuple(x + y for x, y in zip(a, b, strict=True))

        return Tally(add(self.n, other.n), add(self.total, other.total), add(self.squares, other.squares))

    @property
    def n_reports(self) -> int:
        return sum(self.n)

    @staticmethod
    def join(parts: Iterable[Tally]) -> Tally:
        """The tallies of a mechanism's scales side by side."""
        columns = [(part.n, part.total, part.squares) for part in parts]
        n, total, squares = (sum(column, ()) for column in zip(*columns, strict=True))
        return Tally(n, total, squares)


class NumericMechanism(Protocol):
    """A mechanism on codes. For a code that its input grid holds, with x its position,

        E[y | x] = x   and   E[y² | x] = gain · x² + base,     both exactly,

    hence Var[y | x] = (gain − 1) x² + base. Codes between grid points are rounded at random (domain.py).
    """

    name: ClassVar[str]
    report_type: ClassVar[type[np.unsignedinteger[Any]]]

    @property
    def worst_ratio(self) -> Fraction:
        """max over reports and values x, x′ of Pr[report|x] / Pr[report|x′], or a rational bound just above it."""
        ...

    @property
    def scales(self) -> tuple[Fraction, ...]:
        """The factors between whole numbers in reports and y, one for each way of reporting."""
        ...

    @property
    def gain(self) -> Fraction:
        """The factor of x² in E[y² | x]."""
        ...

    @property
    def base(self) -> Fraction:
        """E[y² | x] at x = 0."""
        ...

    @property
    def largest(self) -> Fraction:
        """The largest |y|, or a value that a report exceeds with a probability below 1e-9."""
        ...

    @property
    def furthest(self) -> Fraction:
        """The largest |y| of a report that is taken (`invalid`)."""
        ...

    @classmethod
    def for_budget(cls, epsilon: Fraction) -> Self:
        """The mechanism of least variance of its kind whose exact ε is at most this."""
        ...

    def variance(self, code: int) -> Fraction:
        """Var[y] of one report of this code, rounding included."""
        ...

    def perturb(self, codes: Codes, stream: Keystream) -> Reports:
        """One report for each code of the input grid."""
        ...

    def tally(self, reports: Reports) -> Tally:
        """Number, sum and squares of the reports of each scale; additive over any split of them."""
        ...

    def invalid(self, reports: Reports) -> NDArray[np.intp]:
        """Reports that no value can have led to."""
        ...


def report_sum(mechanism: NumericMechanism, tally: Tally) -> float:
    """Σy of a group's reports."""
    return float(sum(scale * c for scale, c in zip(mechanism.scales, tally.total, strict=True)))


def report_squares(mechanism: NumericMechanism, tally: Tally) -> float:
    """Σy² of a group's reports."""
    return float(sum(scale**2 * c for scale, c in zip(mechanism.scales, tally.squares, strict=True)))


def noise(mechanism: NumericMechanism, second_moment: float) -> float:
    """Mean of Var[y|x] over users with this mean of x²."""
    return float(mechanism.base) + (float(mechanism.gain) - 1) * second_moment


def raw_sums(reports: Reports) -> tuple[int, int]:
    """Σj and Σj² of unsigned reports below 2^32, exactly: halves of 16 bits, chunks whose sums fit into 64."""
    total = squares = 0
    for start in range(0, reports.size, _EXACT):
        part = reports[start : start + _EXACT].astype(np.uint64)
        if reports.dtype.itemsize > 2:
            high = part >> np.uint64(16)
            part &= np.uint64(0xFFFF)
            total += int(high.sum()) << 16
            squares += (int((high * high).sum()) << 32) + (int((high * part).sum()) << 17)
        total += int(part.sum())
        part *= part
        squares += int(part.sum())
    return total, squares


def centred_tally(reports: Reports, factor: int, shift: int) -> Tally:
    """Tally of c = factor · j − shift."""
    total, squares = raw_sums(reports)
    n = int(reports.size)
    centred = factor * total - n * shift
    return Tally((n,), (centred,), (factor**2 * squares - 2 * factor * shift * total + n * shift**2,))
