"""What is to be said about mpldp's tables and figures; whatever is measured is quoted from the points."""

from __future__ import annotations

import math
from collections.abc import Mapping

from pldp.papers.model import Note, Points
from pldp.papers.mpldp.errors import EPSILONS, ITERATIONS, TOTALS


def _at(points: Points, place: str, panel: str, series: str, x: str) -> float:
    point = points.get((place, panel, series, x))
    return math.nan if point is None else point.value


def _table_2(points: Points) -> str:
    row = TOTALS["n = 10000"]
    most = max((total - epsilon, epsilon, total) for epsilon, total in zip(EPSILONS, row, strict=True))
    return (
        "In the paper the headings stand the wrong way round: the rows are total budgets ε, the columns numbers of "
        "values k. What is printed is half of each attribute's budget. The best split does not depend on n, so both "
        "parts should be equal.\n\n"
        f"Doubled, the numbers of a row sum to what a user spends. At ε = {most[1]:g} of n = 10,000 that is "
        f"{most[2]:.3f}: more than was promised. Ours never exceeds ε."
    )


def _figure_4(points: Points) -> str:
    low, high = (_at(points, "Figure 4", "n = 10000", name, "1") for name in ("OP", "OC"))
    return (
        "The paper prints no numbers here. It has OP slightly above OC; we find it far below, "
        f"{low:.2f} against {high:.2f} at ε = 1 and n = 10,000. OP is given the true histogram and fits its weights to "
        "it, which no collector could do: where noise is large it mostly returns the truth that it was given. "
        "oc+ needs no truth and equals OC at these budgets."
    )


def _saving(points: Points) -> str:
    saved = points.get(("Section VI-A", "overall", "OC", "all n and ε"))
    if saved is None:
        return ""
    single = saved.standard_error * math.sqrt(saved.repeats)
    return (
        f"Over all n and ε the squared error of OC is {saved.value:.1%} below that of the plain sum (standard error "
        f"{saved.standard_error:.1%}). With equal groups and small budgets the paper's own Eq. 8 and 11 give "
        f"{1 - 3 / (1 / 9 + 1 / 4 + 1) / (14 / 3):.1%}. The paper has about 60 %. It tells no repetitions, and if each "
        f"point is one run its mean over all of them has a standard error of {single:.1%}, which allows 60 %."
    )


def _table_3(points: Points) -> str:
    return (
        "The first rows are what the text describes: log10 of the maximum error in counts, averaged over the five "
        "attributes. The tables headed by k = 25 are what the printed numbers agree with. A single run spreads: this "
        "is why the printed numbers do not fall evenly with ε."
    )


def _limit(points: Points) -> str:
    above = []
    for panel in ("n = 10000, ε = 1", "n = 1000, ε = 6"):
        apart = _at(points, "Table 3, limit", panel, "OP", str(ITERATIONS)) - _at(
            points, "Table 3, limit", panel, "op-exact", str(ITERATIONS)
        )
        above.append(f"{10**apart - 1:.0%} at {panel}")
    return (
        "The paper iterates 20 times and calls the convergence rapid. A linear program finds the smallest maximum "
        f"error that any weights reach; after {ITERATIONS} iterations OP is still above it by {' and '.join(above)}."
    )


def _cost(points: Points) -> str:
    measured = ", ".join(
        f"{_at(points, 'Section V-B', '', 'OP', over):.2f} for {over}" for over in ("values", "levels", "iterations")
    )
    return (
        "The exponent b where the time of OP grows like sizeᵇ, by regression on logarithms of the processor's time. "
        f"The paper's O(3 k d m) means 2, 1 and 1 for one attribute. Ours: {measured}."
    )


NOTES: Mapping[str, Note] = {
    "Table 2": _table_2,
    "Figure 3": "The paper prints no numbers here, only curves: OC below the plain sum (BRR) at every budget, as ours. "
    "oc+, which also counts that the levels are different samples of people, equals OC while noise is what matters.",
    "Figure 4": _figure_4,
    "Section VI-A": _saving,
    "Table 3": _table_3,
    "Table 3, limit": _limit,
    "Algorithm 4": "Every value has equally many users, up to rounding. On such "
    "data an estimate that is drawn towards equal shares looks better than it is.",
    "Section V-B": _cost,
}
