"""What is shown and said about febsf's tables and figures; whatever is measured is quoted from the points."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

from pldp.papers.febsf.code import CODE, FULL_JOB, SHAPES
from pldp.papers.model import Note, Picture, Points

_PANELS = (
    "The first panel of a data set follows the text, on the data set it names; the second shows what was run: the "
    "published code, on the file that it reads. Errors are summed over the values, as in the paper."
)


def _at(points: Points, place: str, panel: str, series: str, x: str) -> float:
    point = points.get((place, panel, series, x))
    return math.nan if point is None else point.value


def _figure_2(points: Points) -> str:
    ratios = []
    for epsilon_p in ("0.1", "0.4", "1"):
        ratio = _at(points, "Figure 2", "Education", "AUEM", epsilon_p) / _at(
            points, "Figure 2", "Education", "AUEM, shares known", epsilon_p
        )
        ratios.append(f"{ratio:.1f} times at ε_p = {epsilon_p}")
    calibrated = _at(points, "Figure 2", "Education", "self-calibrated", "0.3")
    return (
        f"{_PANELS} The number of values is not stated; nine is what the printed numbers agree with.\n\n"
        "What flattens above ε_p = 0.4 is not the protection of levels becoming harmless, but the noise of the values "
        "taking over. If the shares of the levels were known, AUEM would still err by the line so named: with level "
        f"reports it errs {', '.join(ratios)} as much (Education). The self-calibrated estimate asks for no level "
        f"report and errs by {calibrated:.4f} at every ε_p."
    )


def _figure_3(points: Points) -> str:
    def at(series: str) -> float:
        return _at(points, "Figure 3", "Education", series, "9")

    report = _at(points, "Figure 3", f"Education{CODE}", "PPDA", "9")
    code = {name: _at(points, "Figure 3", f"Education{CODE}", name, "9") for name in ("AUEM", "EMOA")}
    return (
        f"{_PANELS}\n\nWith nine values of Education: the EM by the paper's equations errs by {at('EMOA'):.3f}, nearly "
        f"as an even split; the correct EM by {at('correct EM'):.4f}; self-calibrated by {at('self-calibrated'):.4f}; "
        f"RCF, which knows every level, by {at('RCF'):.4f}. In the published code the EM errs by {code['EMOA']:.3f}, "
        f"AUEM, which it is to improve on, by {code['AUEM']:.3f}: the swapped curves hide it.\n\n"
        f"PPDA with as many spare bits as values errs by {at('PPDA'):.4f}. What is printed is a calibration of every "
        f"report by itself, {report:.3f}: it pulls towards an even split, which it is with two values.\n\n"
        "Three things behind the second panels were found from the numbers, not read in the code: which nine values of "
        "Education were kept (then the EM's bias, which no noise blurs, comes out from six values on), the counts of "
        "seven counties, and PPDA's rule. Each was fixed once; all methods, both laws and both errors have to agree."
    )


def _figure_5(points: Points) -> str:
    small = _at(points, "Figure 5", f"Job{CODE}", "PBP", "uniform")
    large = _at(points, "Figure 5", f"Job{FULL_JOB}{CODE}", "PBP", "uniform")
    ours = _at(points, "Figure 5", f"Job{FULL_JOB}{CODE}", "EMOA", "uniform")
    return (
        "Two budgets, 0.1 and 0.2, two values, ε_p = 0.1, and for PBP shares of the levels drawn at random. For Job "
        f"and equal levels the paper sets EMOA on 45,211 rows beside PBP on 11,162. On the larger file PBP errs by "
        f"{large:.4f} instead of {small:.4f}, and EMOA's {ours:.4f} gains {1 - ours / large:.0%}, not 87 %."
    )


NOTES: Mapping[str, Note] = {
    "Table 1": "The numbers of users are those of the files that the text names, not of those that were run.",
    "Figure 2": _figure_2,
    "Figure 2, MAE": "The absolute errors of the same runs; the paper's own could not be read.",
    "Figure 3": _figure_3,
    "Figure 4": _PANELS,
    "Figure 5": _figure_5,
    "Figure 6": "The absolute errors of the same runs.",
    "Figure 7": f"{_PANELS} Nine values, ε_p = 0.3. The power law has exponent −0.6, which only the code tells.",
    "Figure 8": f"{_PANELS} Nine values, ε_p = 0.3.",
    SHAPES: "Of one run, the absolute error is this multiple of the root of the squared one, whatever the number of "
    "users. For EMOA and Job, Figures 7 and 8 print 0.01567 and 0.26311 (equal levels), 0.02672 and 0.37782 (power "
    "law): ratios of 2.10 and 2.31.",
    "Section 7.3.3": "The gain on one file, by the text: EMOA's squared error against PBP's.",
}


def _panels(*names: str) -> tuple[str, ...]:
    return tuple(panel for name in names for panel in (name, name + CODE))


_ALL = _panels("Education", "Job", "Country")
_BESIDE = {name + CODE: name for name in ("Education", "Job", "Country")}
_SUMMED = {"MSE": "summed squared error", "MAE": "summed absolute error"}


def _both(
    places: tuple[str, str], title: str, x_title: str, kind: Literal["lines", "bars"], *more: str
) -> list[Picture]:
    """A figure of squared errors and its twin of absolute ones; `more` are panels of Job's."""
    return [
        Picture(
            place=place,
            title=f"{metric} {title}",
            x_title=x_title,
            y_title=_SUMMED[metric],
            kind=kind,
            log_y=True,
            panels=(*_ALL, *more),
            beside={**_BESIDE, **dict.fromkeys(more, "Job")},
        )
        for place, metric in zip(places, _SUMMED, strict=True)
    ]


PICTURES = (
    Picture(place="Table 1", title="the data sets", x_title="data set", y_title="", kind="table"),
    *_both(("Figure 2", "Figure 2, MAE"), "of AUEM over ε_p", "ε_p", "lines"),
    *_both(("Figure 3", "Figure 4"), "over the number of values", "values", "lines"),
    *_both(("Figure 5", "Figure 6"), "with two budgets and two values", "levels", "bars", f"Job{FULL_JOB}{CODE}"),
    *_both(("Figure 7", "Figure 8"), "by the law of the levels", "levels", "bars"),
    Picture(
        place=SHAPES,
        title="absolute error over the root of the squared error",
        x_title="levels",
        y_title="",
        kind="table",
        panels=tuple(_BESIDE),
    ),
    Picture(place="Section 7.3.3", title="the gain over PBP", x_title="", y_title="", kind="table"),
)
