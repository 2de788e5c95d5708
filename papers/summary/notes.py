"""What is to be said about which method is best when."""

from __future__ import annotations

from collections.abc import Mapping

from pldp.papers.model import Note, Points
from pldp.papers.summary.check import BEYOND, CHECKED, WAYS
from pldp.papers.summary.choices import HIDDEN, LEAKS, MOST_TOLD, OPENLY, PUBLIC, WORTH


def _checked(points: Points) -> str:
    ratios = [point for key, point in points.items() if key[0] == CHECKED and key[2] == "simulated / predicted"]
    if not ratios:
        return ""
    worst = max(ratios, key=lambda point: abs(point.value - 1))
    return (
        "The two best protocols of some cells, drawn many times from the exact distribution of their counts. Of "
        f"{len(ratios)} predictions the one farthest off is {100 * abs(worst.value - 1):.2g} % "
        f"{'below' if worst.value > 1 else 'above'} what was simulated, with a Monte Carlo error of "
        f"{100 * worst.standard_error:.2g} %. em stays inside the simplex, where it errs less than its standard error "
        "says; that of self-calibrated is the worse end of what unknown shares of the levels allow."
    )


def _beyond(points: Points) -> str:
    def saved(series: str) -> list[float]:
        """Per cent of the error of oc+ that another estimate saves, over all panels and numbers of users."""
        return [
            100 * (1 - points[BEYOND, key[1], series, key[3]].value / point.value)
            for key, point in points.items()
            if key[0] == BEYOND and key[2] == "oc+"
        ]

    projected, likely = saved("oc+, norm-sub"), saved("em")
    return (
        "On the same reports: the unbiased estimate, its projection onto the simplex, and the likelihood’s maximum. "
        f"Projection saves {min(projected):.2g} to {max(projected):.2g} % of the error, the more the fewer users and "
        f"the less budget, and never hurts the summed error; the likelihood saves {min(likely):.2g} to "
        f"{max(likely):.2g} %, hardly more."
    )


NOTES: Mapping[str, Note] = {
    PUBLIC: "A cell names the protocol of least error, from the strictest level to the weakest where they differ, and "
    "the typical standard error of a share, in per cent of all users. Levels spend a third, a half and all of ε; "
    "strict, equal and open mean shares of 70/20/10, 33/33/33 and 10/20/70 %; values follow Zipf’s law. Errors fall "
    "with the root of the number of users, the best protocol does not depend on it. An error above one in k says that "
    "the values cannot be told apart.\n\n"
    "Of the linear combinations oc+ is always best if levels are chosen independently of the value; where they are "
    "not, only sum is unbiased.",
    HIDDEN: "Every level must use one protocol, and what a user’s reports tell about the level is limited to "
    f"{MOST_TOLD}, the level’s own report (ε_p = 0.5) included. Where “one budget” is best, nothing else keeps within "
    "the limit, or hiding costs more than levels are worth: the strictest budget for all has no level to tell.",
    OPENLY: "Unary encodings are better for many values, but their bits give the level away: the next picture says how "
    "much.",
    LEAKS: "The exact worst case over reports and values, ε_p = 0.5 included; k-RR’s hardly grows with the number of "
    "values.",
    WORTH: "The squared error if everybody had the strictest level’s budget, at its best protocol, over that of the "
    "best choice with personal levels. As errors fall with the root of the number of users, this is how many times "
    "more people the uniform collection needs.",
    WAYS: "The same people used in four ways; the printed figures are those of our survey of other libraries. Its "
    "repetitions are not stated; a thousand are assumed, a stricter comparison than fewer.",
    BEYOND: _beyond,
    CHECKED: _checked,
}
