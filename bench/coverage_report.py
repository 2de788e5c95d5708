"""What the coverage bench concludes: the worst cell of every class, and whether any lies outside of 94–97 %.

Two stages. In the first every cell of a default is tested against 94 %, all of them together with a false alarm of half
a per cent: with thousands of cells that sees a cell of 92 %, hardly one of 93 %. In the second the lowest of them are
drawn anew, 40,000 times each, which sees 93.7 %; the draws being new, that they were the lowest is no matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired, TypedDict

import numpy as np
from scipy.stats import binom

from bench.common import Measure, publish
from pldp.channels.protocol import Floats
from pldp.estimate.invert import ANYTHING

REPEATS = 2000
AGAIN, LOWEST = 40_000, 20
"""Repetitions of the second stage, and of how many cells."""
FALSE_ALARM = 0.01
LEAST, MOST = 0.94, 0.97
LONGEST = 1.02

WHOLE_PEOPLE = "whole people: to reach one less would hold less than 95 %"
ANY_CHOICE = "it holds for any choice, of which this is one"

# A key of it is a word that Python keeps.
Row = TypedDict(
    "Row",
    {
        "setting": str,
        "class": str,
        "repetitions": int,
        "covered": int,
        "length": float,
        "method": NotRequired[str],
        "default": NotRequired[bool],
        "tight": NotRequired[bool],
        "why": NotRequired[str],
        "part": NotRequired[str],
    },
)
"""One class of values in one setting, as every part of the bench hands it over. Without more it is a `default`, which
must hold; a `tight` one should not be far above 95 % either, and `why` says of another why it may be. `part` is put in
by who reads it."""


@dataclass(frozen=True)
class Setting:
    values: int
    users: int
    epsilon: float
    mix: str
    method: str
    gamma: float
    choice: str

    @property
    def name(self) -> str:
        declared = "unknown" if self.gamma >= ANYTHING else f"Γ {self.gamma:g}"
        return f"{self.survey}, {self.method}, {declared}, {self.choice}"

    @property
    def survey(self) -> str:
        return f"k {self.values}, n {self.users:,}, ε {self.epsilon:g}, {self.mix}"

    @property
    def default(self) -> bool:
        return self.method == "guarded" or self.gamma >= ANYTHING

    @property
    def tight(self) -> bool:
        """Whether coverage should not be far above 95 % either."""
        return self.method == "guarded" and (self.gamma == 1 or self.choice in ("up", "down"))


@dataclass(frozen=True)
class Cell:
    """One class of values in one setting; `over_sum` is the mean length over that of `sum`, in people held."""

    setting: Setting
    kind: str
    covered: int
    repeats: int
    forced: bool
    length: float
    over_sum: float

    @property
    def rate(self) -> float:
        return self.covered / self.repeats


def row(
    method: str,
    setting: str,
    kind: str,
    truth: Floats | float,
    low: Floats,
    high: Floats,
    *,
    default: bool = True,
    tight: bool = False,
    why: str = "",
) -> Row:
    """From the ends of the intervals of all repetitions."""
    held = (low <= np.asarray(truth) + 1e-12) & (np.asarray(truth) - 1e-12 <= high)
    return {
        "setting": setting,
        "class": kind,
        "repetitions": held.size,
        "covered": int(held.sum()),
        "length": float(np.mean(high - low)),
        "method": method,
        "default": bool(default),
        "tight": bool(tight),
        "why": why,
    }


def rows_of(cells: Sequence[Cell]) -> list[Row]:
    """Public cells as rows like any other."""
    edge = {id(cell) for cell in edges([cell for cell in cells if cell.setting.default])}
    return [
        {
            "setting": cell.setting.name,
            "class": cell.kind,
            "repetitions": cell.repeats,
            "covered": cell.covered,
            "length": cell.length,
            "method": cell.setting.method,
            "default": cell.setting.default,
            "tight": id(cell) in edge and not cell.forced,
            "why": _why(cell, at_edge=id(cell) in edge),
            "part": "public",
        }
        for cell in cells
    ]


def _why(cell: Cell, *, at_edge: bool) -> str:
    if at_edge:
        return WHOLE_PEOPLE if cell.forced else ""
    if cell.setting.gamma >= ANYTHING:
        return ANY_CHOICE
    return "the other edge of what Γ allows needs it" if cell.setting.tight else "people do not use Γ up"


def rate(one: Row) -> float:
    return one["covered"] / one["repetitions"]


def least(repeats: int, tests: int) -> float:
    """The rate below which a cell is significantly below 94 %, one of so many tests of a stage."""
    return float(binom.ppf(FALSE_ALARM / 2 / tests, repeats, LEAST)) / repeats


def most(repeats: int, tests: int) -> float:
    return (float(binom.isf(FALSE_ALARM / 2 / tests, repeats, MOST)) + 1) / repeats


def lowest(rows: Sequence[Row]) -> list[Row]:
    """The cells of defaults, the lowest first."""
    return sorted((one for one in rows if one.get("default", True)), key=rate)


def report(cells: Sequence[Cell], rows: Sequence[Row] = (), again: Sequence[Row] = ()) -> bool:
    """Print and write the table; whether every default lies within 94–97 %, or not significantly outside."""
    everything = [*rows_of(cells), *rows]
    tests = max(sum(one.get("default", True) for one in everything), 1)
    measures = []
    for name in dict.fromkeys((one.get("part", ""), one["class"]) for one in everything):
        measures += _measures(name, [one for one in everything if (one.get("part", ""), one["class"]) == name], tests)
    for one in again:
        limit = least(one["repetitions"], len(again))
        measures.append(Measure(f"again, {one['class']}: {one['setting']}", rate(one), "", limit))
    guarded = [cell for cell in cells if cell.setting.method == "guarded"]
    for rehearsed in (True, False):  # without dependence it is `oc+`, whose tests are not compared with those of `sum`
        some = [cell for cell in guarded if (cell.setting.gamma > 1) == rehearsed]
        for longest in sorted(some, key=lambda cell: cell.over_sum)[-1:]:
            name_of = f"length over that of sum, {longest.setting.name}, {longest.kind}"
            measures.append(Measure(name_of, longest.over_sum, "", LONGEST if rehearsed else None, "≤"))
    note = (
        f"{len(everything)} cells, {tests} of defaults; {REPEATS} repetitions have a standard error of 0.5 %. Limits: "
        "94 % and 97 %, moved so far that all comparisons together fail with a probability of 1 % if every cell is "
        "right. Cells whose law is in steps so large that less would be below 95 % have no upper limit."
    )
    return publish("coverage", "Coverage of 95 % intervals", measures, note)


def _measures(name: tuple[str, str], mine: Sequence[Row], tests: int) -> list[Measure]:
    """Of one part and class: the defaults nearest to their limits below and above, and every other method's least."""
    title = ": ".join(filter(None, name))
    measures = []
    ours = [one for one in mine if one.get("default", True)]
    for one in sorted(ours, key=lambda one: rate(one) - least(one["repetitions"], tests))[:1]:
        measures.append(Measure(f"{title}: least, {one['setting']}", rate(one), "", least(one["repetitions"], tests)))
    tight = [one for one in ours if one.get("tight", False)]
    for one in sorted(tight, key=lambda one: most(one["repetitions"], tests) - rate(one))[:1]:
        limit = most(one["repetitions"], tests)
        measures.append(Measure(f"{title}: most, {one['setting']}", rate(one), "", limit, "≤"))
    others = [one for one in mine if not one.get("default", True)]
    for method in dict.fromkeys(one.get("method", "") for one in others):
        worst = min((one for one in others if one.get("method", "") == method), key=rate)
        measures.append(Measure(f"{title}: least of {method}, {worst['setting']}", rate(worst)))
    return measures


def edges(cells: Sequence[Cell]) -> list[Cell]:
    """Cells that should not be above 97 %: Γ = 1, and of both edges that Γ allows, once both are known, the one that is
    covered less."""
    alike_cells: dict[tuple[object, ...], list[Cell]] = {}
    for cell in cells:
        at = cell.setting
        if at.tight:
            alike_cells.setdefault((at.values, at.users, at.epsilon, at.mix, at.gamma, cell.kind), []).append(cell)
    known = [alike for alike in alike_cells.values() if alike[0].setting.gamma == 1 or len(alike) > 1]
    return [min(alike, key=lambda cell: cell.covered) for alike in known]
