"""What is to be said of aprr's tables and figures."""

from __future__ import annotations

from collections.abc import Mapping

from pldp.papers.aprr.mining import MADE_UP, METHODS, MINIMA, MISSED, OWN, PLACE, TREND
from pldp.papers.aprr.tables import APRR, BOUNDED, CORRECTED, EXACT, GROUPS, ITEMS, MASK, ROW
from pldp.papers.model import Note, Points


def _lemma_1(points: Points) -> str:
    def exact(x: str) -> str:
        return f"{points['Lemma 1', '', EXACT, x].value:.2f}"

    return (
        "The budget is never stated; 9 is the one at which Table 2 comes out. Lemma 1 adds up the budgets of levels. "
        "What a report tells is the worst ratio of its probabilities, which pairs the chance of one value with that of "
        f"the other, and every item of a row adds its own: {exact(f'{APRR}, {ITEMS}')} for the seven perturbed items, "
        "more than 9, and no bound at all with the four open ones. "
        f"Our bounded channels spend {exact(f'{BOUNDED}, {ROW}')} on the whole row, MASK {exact(f'{MASK}, {ROW}')}."
    )


def _table_3(points: Points) -> str:
    def at(series: str, x: str) -> str:
        return f"{points['Table 3', CORRECTED, series, x].value:.1f} %"

    return (
        "Eq. 7 has one probability for both values, but LDP-APRR has two. With both in it, the highest degree is "
        f"{at(APRR, 'maxPrivacy')}, below GR-PPFM's {at(GROUPS, 'maxPrivacy')}, and the average "
        f"{at(APRR, 'avgPrivacy')}, below GR-PPFM's {at(GROUPS, 'avgPrivacy')}: the gain of 1.2 and 4.3 points is "
        "one of the formula. The row on LDP has 1 for yes and 0 for no: whether every user is promised some finite ε."
    )


def _figure_3(points: Points) -> str:
    def mean(panel: str, series: str) -> float:
        panel_of_series = panel + OWN if series == BOUNDED else panel
        return sum(points[PLACE, panel_of_series, series, f"{minimum:g}"].value for minimum in MINIMA) / len(MINIMA)

    parts = "; ".join(f"{series} {mean(MADE_UP, series):.3f} and {mean(MISSED, series):.3f}" for series in METHODS)
    return (
        "Sets of at most three items. The text and the captions exchange θ⁺ and θ⁻; here they are as Definition 7 has "
        "them. The curves' values are not readable from the text. They do not fall steadily: they follow how many true "
        f"supports lie just below or above the minimum. Mean of θ⁺ and θ⁻ over all minima: {parts}. "
        "The bounded channels protect the four open items too, and spend half of what MASK does on a row."
    )


NOTES: Mapping[str, Note] = {
    "Table 2": "By Eq. 2 and 3 with ε = 9 and five levels; inside a level two thirds of the budget for 0, one for 1.",
    "Lemma 1": _lemma_1,
    "Table 3": _table_3,
    PLACE: _figure_3,
    TREND: "The sign of the slope of a line through the errors, 0 where it lies within three standard errors of none.",
}
