"""What is to be said of pmpm's figures and tables."""

from __future__ import annotations

from collections.abc import Mapping

from pldp.papers.model import Note, Points
from pldp.papers.pmpm.curves import SCALED
from pldp.papers.pmpm.exact import AVERAGE, AXIS, BEST, BEST_SHARE, CONSTANTS, OVER_BUDGETS, SECOND_FROM, TO_MPM
from pldp.papers.pmpm.methods import PERSONAL


def _constants(points: Points) -> str:
    exact = points[CONSTANTS, "", "exact, Eq. 16", SECOND_FROM].value
    return (
        f"0.28 is right, rounding down is not: from ε = {exact:.2f} on two attributes are better than one, and the "
        "paper waits until 7.143. Its text says that k can then be greater than 2; it can be 2."
    )


def _best(points: Points) -> str:
    share = points[CONSTANTS, "", "Census 2015", BEST_SHARE].value
    return (
        "The best k depends on what is computed from the reports. Scaled by d/k, as the paper's equations have it, a "
        f"value's square counts in full, and the census with its large E[x²] asks for k = {share:.2f} ε. In the mean "
        "over the reports only the spread between counties counts, which is small: fewer attributes are better. "
        "Rounding 0.28 ε down, a loss by Eq. 16, is a gain there."
    )


def _average(points: Points) -> str:
    def more(series: str) -> float:
        true, stated = (points[AVERAGE, "", formula, series].value for formula in ("mean of Eq. 12", "by Eq. 13"))
        return 100 * (true / stated - 1)

    return (
        "Eq. 13 puts the mean budget into a function that is convex in the budget, and so leaves out what unequal "
        f"budgets cost: {more(PERSONAL[0]):.1f} % at τ = 1.125, {more(PERSONAL[-1]):.1f} % at τ = 1.5."
    )


def _said(points: Points) -> str:
    scaled = points[OVER_BUDGETS, f"Census 2015, {SCALED}", PERSONAL[0], TO_MPM].value
    return (
        "Ratios of the errors that repetitions tend to, computed, not drawn. A sentence that turns on chance has the "
        "Monte Carlo error of the paper's own 100 repetitions beside it. The paper's figures show the mean over the "
        "reports, as section 4.2.4 skips attributes that were not sampled: scaled by d/k, as Algorithm 3 has it, there "
        f"is no rebound, and PMPM has up to {scaled:.2f} times MPM's error even at τ = 1.125."
    )


def _axis(points: Points) -> str:
    low, high = (points[AXIS, "", SCALED, f"{end} value"].value for end in ("smallest", "largest"))
    return (
        "The only figure whose scale is readable: 0.0004 to 0.0014 by 0.0002, and 20 to 30 attributes. The mean over "
        f"the reports fits it; scaled by d/k all would lie between {low:.4f} and {high:.4f}. Which attributes were "
        "removed is not said; here the last ones are."
    )


NOTES: Mapping[str, Note] = {
    "Eq. 14": "The paper assumes values spread evenly. The censuses' attributes are skewed, most values near a bound.",
    CONSTANTS: _constants,
    BEST: _best,
    AVERAGE: _average,
    "Figure 4": "No value is readable, nor whether the largest e^ε is divided by the smallest or lessened by it.",
    OVER_BUDGETS: _said,
    AXIS: _axis,
    "Figure 5": "MSE of the means over all attributes, bounds read off the data as in the paper; values of its curves "
    "are not readable from the text. PMPM's budgets are dealt evenly over their range, or (simple) by importance. "
    "Ours: PM at the k that minimises Eq. 16 or, knowing the data, the expected error; HM at the first of these; "
    "Laplace noise at its own best k.",
    "Figure 7": "Duchi's mechanism reports on all attributes at once, corners on the boundary counting half.",
}
