"""What is to be said about multiupp's figures, with the numbers that were measured."""

from __future__ import annotations

from collections.abc import Mapping

from pldp.papers.model import Note, Points
from pldp.papers.multiupp.case import CONTROL, ITEMS, LOSS, OWN, PLACE, PUBLIC, UNFILTERED
from pldp.papers.multiupp.utility import CLAIMS, DATA, GAIN, HEAVY, NAMES, OBJECTIVE, TENTHS, TIMES

MISSING = "–"
"""A quick run leaves experiments out; paragraphs that need them are left out too."""


def _value(points: Points, place: str, panel: str, series: str, x: str) -> str:
    point = points.get((place, panel, series, x))
    return MISSING if point is None else f"{point.value:.3g}"


def _percent(points: Points, place: str, panel: str, series: str, x: str) -> str:
    point = points.get((place, panel, series, x))
    return MISSING if point is None else f"{100 * point.value:.2g} %"


def _gains(points: Points) -> str:
    low, middle, high = (_value(points, CLAIMS, "", "MovieLens", x) for x in TENTHS.values())
    square = _value(points, CLAIMS, "", "MovieLens", f"{GAIN} MSE")
    return (
        "The paper’s figures carry no numbers; its sentences do. A gain is the baseline’s loss over that of the "
        "optimum for the same measure. Ten draws of a heavy-tailed ratio say little: the gain in MAE on MovieLens at ε "
        f"= 0.05 lies between {low} and {high} in 98 of 100 tens, its median is {middle}; the printed 5 is one such "
        f"ten. In MSE, a square, the gain is {square}.\n\n"
        "MAEL counts only what exceeds the attributes’ own budgets, and is zero for every way above the turning point. "
        "So its gain grows without limit towards it; “up to twice” is what stands at ε = 0.05, where the loss itself "
        "is largest.\n\n"
        "That minimising MSE is best most of the time, especially on MSNBC, holds as far as a figure shows (within "
        "1 %), and does so for MAE too. Strictly, on MovieLens each objective is best in its own measure, as it must "
        "be, so MSE in half of the points; on MSNBC all three give the same budgets to the last digit."
    )


def _objective(points: Points) -> str:
    def above(minimised: str, measure: str) -> str:
        return _percent(points, OBJECTIVE, "ε = 0.05", NAMES[minimised], measure)

    return (
        "Median over draws of how far a loss lies above its least value if another loss was minimised, on MovieLens. "
        f"At ε = 0.05 minimising MAE costs {above('mae', 'MSE')} in MSE and {above('mae', 'MAEL')} in MAEL; minimising "
        f"MSE {above('mse', 'MAE')} in MAE and {above('mse', 'MAEL')} in MAEL; minimising MAEL {above('mael', 'MAE')} "
        f"in MAE and {above('mael', 'MSE')} in MSE. MAE and MSE are nearly one objective, and whoever cares for single "
        "attributes has to ask for MAEL."
    )


def _case(points: Points) -> str:
    def loss(x: str) -> str:
        return _percent(points, PLACE, "", LOSS, x)

    paragraphs = (
        "Items are reconstructed as the paper says: whole numbers of items of each kind that fit the perturbed "
        "aggregates, by relaxing, rounding and adding or removing single items; which items of a kind, the lot says. "
        "The paper does not say which ratings these items bring, what was held out, or which objective was minimised. "
        "Here every user has one of 100 profiles, 20 % of the ratings are held out, MSE is minimised unless said, and "
        "the filter is biased matrix factorisation by stochastic gradient descent (Surprise’s SVD, 10 factors, 20 "
        "epochs).",
        f"If the user’s own ratings of reconstructed items are all that is learnt from, the loss is {loss(OWN)}: the "
        "paper’s “up to 8 %”. These ratings are raw data, which no promise of the mechanism covers. This reading is "
        "compared with the printed figure because it fits: of twelve tried on one draw (six ways to rate what was "
        "found, searched for from nothing or from the user’s own items) losses ran from 6 to 21 %. That it agrees is "
        "a guess at what was done, no confirmation of it.",
        f"As many own ratings by lot, without any aggregates, lose {loss(CONTROL)}. The figure says what a fifth of "
        "the true ratings is worth, nothing about perturbed aggregates.",
        f"With nothing of the user but the perturbed aggregates the loss is {loss(PUBLIC)}, that of predicting the "
        "item’s mean without any filter.",
        f"Without a filter, the means of user and item together lose {loss(UNFILTERED[2])}, less than 8 %; the item’s "
        f"mean alone {loss(UNFILTERED[0])}. From 18 noisy sums at ε = 0.1 nobody’s items can be had, as the next table "
        "shows.",
    )
    return "\n\n".join(paragraph for paragraph in paragraphs if MISSING not in paragraph)


NOTES: Mapping[str, Note] = {
    "Figure 2": "Medians over all draws, and beside them the mean of ten draws, as in the paper: it follows the "
    "smallest t_j drawn (see “Means of 1/t”). On MSNBC the three objectives coincide.",
    "Figure 3": "KL compares the shares of noise variance that the budgets ask for with those used; for the baseline "
    "it is zero by construction.",
    TIMES: "One user’s solve on one core of this machine; times differ from run to run. With several attributes an "
    "item they fall as ε grows and fewer rows of the catalogue bind. The paper’s phone was not to be had.",
    CLAIMS: _gains,
    HEAVY: "With Σ t = 1 uniform on the simplex the density of t_j does not vanish at zero, so the expectation of "
    "1/t_j is infinite, that of 1/t_j² all the more: averages jump whenever a smaller t_j is drawn, however many draws "
    "there are. Medians settle.",
    OBJECTIVE: _objective,
    PLACE: _case,
    ITEMS: "What the reconstruction finds at ε = 0.1. The misfit is the root mean squared difference between wanted "
    "and reached aggregates; it stands beside a bound that no choice of items goes below, so the heuristic is not what "
    "limits the recommender. The noise is.",
    DATA: "Yelp (RecSys Challenge 2013: 229,907 reviews, 43,873 users, 11,537 businesses, 21 attributes) may not be "
    "passed on. It is not reproduced, nor are the panels of Figures 2 to 4 that show it.",
}
