"""What a reproduction is made of: pieces of work, the points they yield, what the paper prints, why they differ.

A paper's module in this package offers

- ``units(quick)``: its work, in pieces of seconds, so that cores stay busy and progress shows;
- ``run(unit, data)``: one piece, from arrays to points; the same unit and seed give the same points;
- ``REASONS``: why a printed number differs, each with a check that is computed, not believed, and what it rests on;
- ``PICTURES`` and ``NOTES``: how its figures and tables are shown, and what is to be said about them, by place.

Units come the longest first, so that no core is left alone at the end. Points that no fact has beside it are shown too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import numpy.typing as npt

Data = Mapping[str, npt.NDArray[np.generic]]
"""Arrays of one data set by name, as `pldp.papers.laboratory.datasets` hands them over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """One piece of work: picklable, small, and all that its result depends on besides the data."""

    paper: str
    experiment: str
    arguments: Mapping[str, float | int | str] = field(default_factory=dict)
    dataset: str | None = None
    repeats: int = 1
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One number of ours, named as the paper names it: place ("Figure 3"), panel, series (the method), x."""

    place: str
    panel: str = ""
    series: str
    x: str
    """As text, a number or a name: it joins with what is printed."""
    value: float
    standard_error: float = 0.0
    """The Monte Carlo error of `value`; zero where it was computed exactly."""
    repeats: int = 1


Claim = Literal["equals", "at most", "at least"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One number that the paper prints, and how exactly it can be read."""

    place: str
    panel: str = ""
    series: str
    x: str
    printed: float
    half_width: float
    """Half a unit of the last printed digit, or how exactly a figure can be read."""
    repeats: int = 0
    """Over how many repetitions the paper averaged; zero where the number is exact."""
    source: str = ""
    """Where in the paper it stands."""
    claim: Claim = "equals"
    """Whether the paper gives the number, or a bound that ours must keep."""


Points = Mapping[tuple[str, str, str, str], Point]
"""By place, panel, series and x."""


Basis = Literal["verified", "inferred"]
"""Verified: an equation, the paper's text or what it published shows the reason without the numbers it is to explain.
Inferred: it was found from these very numbers, and that they come out is what speaks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A sentence why printed numbers differ from ours, and the computation that shows it."""

    key: str
    sentence: str
    basis: Basis
    shown_by: str
    """What verifies it, or which numbers it was inferred from: the end of "verified by …", "inferred from …"."""
    applies: Callable[[Fact], bool]
    check: Callable[[Fact, Points], bool]
    """Whether the reason, computed, does account for this number."""
    instead: Callable[[Fact, Points], Point | None] | None = None
    """Our number if the reason holds. Where given, the printed one must also agree with it, by the rule and with the
    tolerance that hold for agreement (`pldp.papers.compare`), so `check` need not know them; none: it does not apply.
    """


Note = str | Callable[[Points], str]
"""A paragraph in plain words; a function where it quotes what was measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    fact: Fact
    point: Point | None
    verdict: Literal["agrees", "differs", "unexplained"]
    reason: str = ""
    """The key of the reason that was checked."""
    basis: Basis | None = None
    """That of the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """How one place is drawn: a line a series, a panel beside the other, bars of the Monte Carlo error."""

    place: str
    title: str
    x_title: str
    y_title: str
    kind: Literal["lines", "bars", "table", "dots", "grid"] = "lines"
    """`dots`: a row an x. `grid`: an x of "column; row", the series is the method that is best there."""
    log_y: bool = False
    panels: Sequence[str] = ()
    """In this order; all that there are if empty."""
    log_x: bool = False
    beside: Mapping[str, str] = field(default_factory=dict)
    """Panels in which the printed numbers of another panel are drawn: by panel, the other."""
