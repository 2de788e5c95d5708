"""Why febsf's printed numbers differ from what its text describes; each reason puts a computed number instead."""

from __future__ import annotations

import math
from dataclasses import replace

from pldp.papers.compare import agrees
from pldp.papers.febsf.code import CODE, FULL_JOB, KRR_LEVELS, SHAPES, TWICE
from pldp.papers.model import Fact, Point, Points, Reason

_CURVES = ("Figure 3", "Figure 4", "Figure 7", "Figure 8")
_METHODS = ("AUEM", "EMOA", "RCF", "APLDP")
_SWAPPED = {"AUEM": "EMOA", "EMOA": "AUEM"}
SQUARED = {
    ("Job", "EMOA", "uniform"): 0.01567,
    ("Job", "EMOA", "power law"): 0.02672,
}
"""What Figure 7 prints where Figure 8 is of another run."""
_SURELY = 5.0
"""Standard errors."""


def _always(fact: Fact, points: Points) -> bool:
    """Nothing besides agreement with what the reason puts instead."""
    return True


def _drawn(fact: Fact, panel: str) -> bool:
    """Whether the published code could have drawn it."""
    return fact.panel == panel and fact.place in ("Figure 2", *_CURVES) and fact.series in _METHODS


def _at(points: Points, fact: Fact, *, panel: str, place: str | None = None, series: str | None = None) -> Point | None:
    return points.get((place or fact.place, panel, series or fact.series, fact.x))


def _code(fact: Fact, points: Points) -> Point | None:
    return _at(points, fact, panel=fact.panel + CODE)


def _krr_levels(fact: Fact, points: Points) -> Point | None:
    return _at(points, fact, panel=fact.panel + CODE, series=KRR_LEVELS)


def _swapped(fact: Fact, points: Points) -> Point | None:
    return _at(points, fact, panel=fact.panel + CODE, series=_SWAPPED[fact.series])


def _squared(fact: Fact, points: Points) -> Point | None:
    series = fact.series + TWICE if (fact.series, fact.x) == ("PPDA", "power law") else fact.series
    return _at(points, fact, panel=fact.panel + CODE, place="Figure 7", series=series)


def _twice(fact: Fact, points: Points) -> Point | None:
    return _at(points, fact, panel=fact.panel + CODE, series=fact.series + TWICE)


def _spread_otherwise(fact: Fact) -> bool:
    """Whether the power law may have had another exponent: PPDA's, and RCF's but for Country."""
    methods = ("PPDA",) if fact.panel == "Country" else ("RCF", "PPDA")
    return fact.place in _CURVES[2:] and fact.series in methods and fact.x == "power law"


def _another_run(fact: Fact, points: Points) -> bool:
    """Figure 7's number is what the code gives, and Figure 8's does not go with it."""
    squared = SQUARED[fact.panel, fact.series, fact.x]
    ours, shape = (_at(points, fact, panel=fact.panel + CODE, place=place) for place in ("Figure 7", SHAPES))
    if ours is None or shape is None:
        return False
    beside = replace(fact, place="Figure 7", printed=squared)
    asked = replace(fact, printed=fact.printed / math.sqrt(squared), half_width=0.0)
    return agrees(beside, ours, _SURELY) and not agrees(asked, shape, _SURELY)


def _all_rows(fact: Fact, points: Points) -> Point | None:
    return _at(points, fact, panel=fact.panel + FULL_JOB + CODE)


def _two_files(fact: Fact, points: Points) -> Point | None:
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


def _kept(fact: Fact, points: Points) -> Point | None:
    """The most values that any experiment keeps."""
    ours = _at(points, fact, panel="")
    most = max((int(x) for place, _, _, x in points if place == "Figure 3"), default=0)
    return None if ours is None else replace(ours, value=float(most))


REASONS = (
    Reason(
        key="published code",
        sentence="The published code does not do what the text says. It reports levels by SUE bits instead of k-RR, "
        "sets negative estimates to zero and scales the rest to one (for RCF and APLDP in every level), and its EM "
        "maximises for each bit alone a sum of log-likelihoods in which all levels weigh alike. And the seven school "
        "grades of Education, whose names have digits, were left out: nine values remain, and the experiments end at "
        "nine. Computed that way, the printed number comes out.",
        applies=lambda fact: _drawn(fact, "Education"),
        check=_always,
        instead=_code,
    ),
    Reason(
        key="curves swapped",
        sentence="The curves of AUEM and EMOA are swapped for Education: each agrees with what the published code "
        "computes for the other.",
        applies=lambda fact: fact.panel == "Education" and fact.place in _CURVES and fact.series in _SWAPPED,
        check=_always,
        instead=_swapped,
    ),
    Reason(
        key="Job's file",
        sentence="The file published with the code has 11,162 rows, not the 45,211 of the text. With it, and computed "
        "as the published code does, the printed number comes out.",
        applies=lambda fact: _drawn(fact, "Job"),
        check=_always,
        instead=_code,
    ),
    Reason(
        key="Job's file, k-RR levels",
        sentence="With Job's smaller file and level reports by k-RR, as the text has them, the printed number comes "
        "out if the estimate is set to zero where negative and scaled to one.",
        applies=lambda fact: _drawn(fact, "Job") and fact.series == "AUEM",
        check=_always,
        instead=_krr_levels,
    ),
    Reason(
        key="counties, not countries",
        sentence="This is not the native country of Adult, nine tenths of which is one value. The code reads a file of "
        "census tracts. The errors printed for PPDA at two values are those of shares 23/36 and 13/36, as the two "
        "counties with most tracts have; with these two counts, seven behind them that fall evenly (two numbers fitted "
        "to EMOA's curve over the number of values) and the published code's way, the printed number comes out.",
        applies=lambda fact: _drawn(fact, "Country"),
        check=_always,
        instead=_code,
    ),
    Reason(
        key="another power law",
        sentence="Users were spread by another power law than for the other methods: with its exponent doubled, −1.2 "
        "instead of −0.6, the printed number comes out. RCF of Education and Job needs it and that of Country refutes "
        "it; PPDA (calibrated report by report) of Education needs it, that of Job and Country allows either.",
        applies=_spread_otherwise,
        check=_always,
        instead=_twice,
    ),
    Reason(
        key="another run",
        sentence="The squared error that Figure 7 prints for the same bar is what the published code gives. With it "
        "goes an absolute error that is a fixed multiple of its root (table below); what Figure 8 prints does not go "
        "with it, so the two are not of one run. Where Figure 4 prints the same quantity, it agrees.",
        applies=lambda fact: fact.place == "Figure 8" and (fact.panel, fact.series, fact.x) in SQUARED,
        check=_another_run,
    ),
    Reason(
        key="Figure 7 again",
        sentence="The panel of Country in Figure 8 repeats the squared errors of Figure 7, to the last digit read.",
        applies=lambda fact: fact.place == "Figure 8" and fact.panel == "Country",
        check=_always,
        instead=_squared,
    ),
    Reason(
        key="PPDA report by report",
        sentence="What was run is not PPDA, which learns q from the spare bits of everybody. The printed numbers come "
        "out if every report is calibrated by itself, by its number s of ones: q̂ = (s − ½)/(k − 1), its estimate is "
        "(b − q̂)/(1 − 2q̂), reports with s = k/2 are left out, the mean is scaled to one. With two values that is "
        "an even split, as printed to the last digit; an odd k errs more, because k − 2s comes nearer to zero. No "
        "code of it was published: the rule was found from the numbers, the half with it.",
        applies=lambda fact: fact.series == "PPDA" and fact.place in _CURVES,
        check=_always,
        instead=_code,
    ),
    Reason(
        key="k-RR for the values",
        sentence="The text has SUE throughout; the published code uses k-RR for the values where there are two "
        "budgets, with the files and the scaling told above. Computed that way, the printed number comes out.",
        applies=lambda fact: fact.place in ("Figure 5", "Figure 6"),
        check=_always,
        instead=_code,
    ),
    Reason(
        key="two files compared",
        sentence="In this panel PBP was run on the file of 11,162 rows, AUEM and EMOA on that of 45,211: each agrees "
        "with its own file and with no other. The gain of 87 % comes from four times as many users.",
        applies=lambda fact: fact.place in ("Figure 5", "Figure 6") and fact.panel == "Job" and fact.x == "uniform",
        check=_always,
        instead=_all_rows,
    ),
    Reason(
        key="two files in one gain",
        sentence="The gain divides EMOA's error on 45,211 rows by PBP's on 11,162, as the panel it is taken from does; "
        "computed that way it comes out. On one file EMOA gains what stands beside.",
        applies=lambda fact: fact.place == "Section 7.3.3",
        check=_always,
        instead=_two_files,
    ),
    Reason(
        key="values kept",
        sentence="The file has more values; nine is the most that the experiments keep.",
        applies=lambda fact: fact.place == "Table 1" and fact.series == "values",
        check=_always,
        instead=_kept,
    ),
)
