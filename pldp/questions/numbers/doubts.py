"""What speaks against the reports about numbers that clients sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scipy.special import ndtr, ndtri

from pldp.questions.doubts import IMPOSSIBLE, Doubt
from pldp.questions.question import Evidence

if TYPE_CHECKING:
    from pldp.questions.numbers.question import Numbers


def doubts(plan: Numbers, evidence: Evidence, alpha: float) -> tuple[Doubt, ...]:
    """A mean further outside the declared bounds than its standard error explains.

    Of honest reports it lies inside, and its distance from there is normal at most: a mean of many bounded reports.
    """
    bounds = {question.attribute: question.bounds for question in plan.questions}
    part = alpha / max(1, len(evidence.result.means))
    doubted = []
    for one in evidence.result.means:
        lower, upper, error = bounds[one.attribute].lower, bounds[one.attribute].upper, one.mean.standard_error
        away = max(lower - one.mean.mean, one.mean.mean - upper)
        if away > 0 and (chance := float(ndtr(-away / error))) < part:
            reach = float(-ndtri(part)) * error
            bound = upper + reach if one.mean.mean > upper else lower - reach
            doubted.append(Doubt(one.attribute, None, IMPOSSIBLE, one.mean.mean, bound, chance, withheld=True))
    return tuple(doubted)
