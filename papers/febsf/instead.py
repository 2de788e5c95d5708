"""Which of febsf's numbers a reason is about, and our number if it holds."""

from __future__ import annotations

import math
from dataclasses import replace

from pldp.papers.compare import agrees
from pldp.papers.febsf.code import CODE, FULL_JOB, KRR_LEVELS, SHAPES, TWICE
from pldp.papers.model import Fact, Point, Points

CURVES = ("Figure 3", "Figure 4", "Figure 7", "Figure 8")
METHODS = ("AUEM", "EMOA", "RCF", "APLDP")
SWAPPED = {"AUEM": "EMOA", "EMOA": "AUEM"}
SQUARED = {
    ("Job", "EMOA", "uniform"): 0.01567,
    ("Job", "EMOA", "power law"): 0.02672,
}
"""What Figure 7 prints where Figure 8 is of another run."""
_SAME_VALUES = 5
"""So many of Education's values have most people in the text's file and in what was run: the sixth is a school grade
there, and none was kept here."""
_SURELY = 5.0
"""Standard errors."""


def always(fact: Fact, points: Points) -> bool:
    """Nothing besides agreement with what the reason puts instead."""
    return True


def drawn(fact: Fact, panel: str) -> bool:
    """Whether the published code could have drawn it."""
    return fact.panel == panel and fact.place in ("Figure 2", *CURVES) and fact.series in METHODS


def grades_matter(fact: Fact) -> bool:
    """Whether more values are kept than are the same with the school grades and without."""
    return fact.place not in ("Figure 3", "Figure 4") or int(fact.x) > _SAME_VALUES


def _at(points: Points, fact: Fact, *, panel: str, place: str | None = None, series: str | None = None) -> Point | None:
    return points.get((place or fact.place, panel, series or fact.series, fact.x))


def code(fact: Fact, points: Points) -> Point | None:
    return _at(points, fact, panel=fact.panel + CODE)


def krr_levels(fact: Fact, points: Points) -> Point | None:
    return _at(points, fact, panel=fact.panel + CODE, series=KRR_LEVELS)


def swapped(fact: Fact, points: Points) -> Point | None:
    return _at(points, fact, panel=fact.panel + CODE, series=SWAPPED[fact.series])


def squared(fact: Fact, points: Points) -> Point | None:
    series = fact.series + TWICE if (fact.series, fact.x) == ("PPDA", "power law") else fact.series
    return _at(points, fact, panel=fact.panel + CODE, place="Figure 7", series=series)


def twice(fact: Fact, points: Points) -> Point | None:
    return _at(points, fact, panel=fact.panel + CODE, series=fact.series + TWICE)


def spread_otherwise(fact: Fact) -> bool:
    """Whether the power law may have had another exponent: PPDA's, and RCF's but for Country."""
    methods = ("PPDA",) if fact.panel == "Country" else ("RCF", "PPDA")
    return fact.place in CURVES[2:] and fact.series in methods and fact.x == "power law"


def another_run(fact: Fact, points: Points) -> bool:
    """Figure 7's number is what the code gives, and Figure 8's does not go with it."""
    squared = SQUARED[fact.panel, fact.series, fact.x]
    ours, shape = (_at(points, fact, panel=fact.panel + CODE, place=place) for place in ("Figure 7", SHAPES))
    if ours is None or shape is None:
        return False
    beside = replace(fact, place="Figure 7", printed=squared)
    asked = replace(fact, printed=fact.printed / math.sqrt(squared), half_width=0.0)
    return agrees(beside, ours, _SURELY) and not agrees(asked, shape, _SURELY)


def all_rows(fact: Fact, points: Points) -> Point | None:
    return _at(points, fact, panel=fact.panel + FULL_JOB + CODE)


def two_files(fact: Fact, points: Points) -> Point | None:
    """1 − (EMOA on all rows) / (PBP on the published file), with the error of a quotient."""
    ours = points.get(("Figure 5", f"Job{FULL_JOB}{CODE}", "EMOA", "uniform"))
    theirs = points.get(("Figure 5", f"Job{CODE}", "PBP", "uniform"))
    if ours is None or theirs is None:
        return None
    ratio = ours.value / theirs.value
    error = ratio * math.hypot(ours.standard_error / ours.value, theirs.standard_error / theirs.value)
    return Point(
        place=fact.place,
        panel=fact.panel,
        series=fact.series,
        x=fact.x,
        value=1 - ratio,
        standard_error=error,
        repeats=ours.repeats,
    )


def kept(fact: Fact, points: Points) -> Point | None:
    """The most values that any experiment keeps."""
    ours = _at(points, fact, panel="")
    most = max((int(x) for place, _, _, x in points if place == "Figure 3"), default=0)
    return None if ours is None else replace(ours, value=float(most))
