"""What speaks against the reports about numbers that clients sent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr, ndtri

from pldp.channels.exact import SCALE
from pldp.channels.numeric.duchi import Duchi
from pldp.channels.numeric.hybrid import HM
from pldp.channels.numeric.laplace import Laplace
from pldp.channels.numeric.mechanism import NumericMechanism
from pldp.channels.numeric.window import Window
from pldp.questions.doubts import IMPOSSIBLE, Doubt
from pldp.questions.question import Columns, Evidence

if TYPE_CHECKING:
    from pldp.questions.numbers.question import Numbers

SIGNS = 2
"""Reports of `hm` below it are signs, as those of `duchi`: one of two, and no repeat of it tells anything."""


def doubts(plan: Numbers, evidence: Evidence, alpha: float) -> tuple[Doubt, ...]:
    """Half of the false alarms each: means, repeats."""
    return (*_impossible(plan, evidence, alpha / 2), *plan.repeated(evidence, alpha / 2))


def _impossible(plan: Numbers, evidence: Evidence, alpha: float) -> Iterator[Doubt]:
    """A mean further outside the declared bounds than its standard error explains.

    Of honest reports it lies inside, and its distance from there is normal at most: a mean of many bounded reports.
    """
    bounds = {question.attribute: question.bounds for question in plan.questions}
    part = alpha / max(1, len(evidence.result.means))
    for one in evidence.result.means:
        lower, upper, error = bounds[one.attribute].lower, bounds[one.attribute].upper, one.mean.standard_error
        away = max(lower - one.mean.mean, one.mean.mean - upper)
        if away > 0 and (chance := float(ndtr(-away / error))) < part:
            reach = float(-ndtri(part)) * error
            bound = upper + reach if one.mean.mean > upper else lower - reach
            yield Doubt(one.attribute, None, IMPOSSIBLE, one.mean.mean, bound, chance, withheld=True)


def rare_reports(plan: Numbers, level: int, reports: Columns) -> Columns:
    """Those of mechanisms with many outputs; of one person there is at most one about a question."""
    kept = np.zeros(reports["report"].size, dtype=bool)
    for class_, one in enumerate(plan.levels[level].classes):
        for asked, used in enumerate(one.mechanisms):
            if used.mechanism != Duchi.name:
                there = (reports["question"] == asked) & (reports["class"] == class_)
                kept |= there & (reports["report"] >= (SIGNS if used.mechanism == HM.name else 0))
    return {name: column[kept] for name, column in reports.items()}


def likeliest_number(plan: Numbers, level: int) -> float:
    """The most probable of them, whatever the number; 1 where there are none."""
    used = [one.realised for class_ in plan.levels[level].classes for one in class_.mechanisms]
    return max((_peak(one) for one in used if not isinstance(one, Duchi)), default=1.0)


def equal_chance(plan: Numbers, level: int) -> float:
    """Bound on the chance that two people's reports about a question are equal: that of the likeliest, signs too."""
    return max(_likeliest(one.realised) for class_ in plan.levels[level].classes for one in class_.mechanisms)


def _likeliest(mechanism: NumericMechanism) -> float:
    match mechanism:
        case Duchi():
            return mechanism.keep / SCALE
        case HM():
            return max(
                float(1 - mechanism.share) * _likeliest(mechanism.duchi), _peak(mechanism) if mechanism.mix else 0.0
            )
    return _peak(mechanism)


def _peak(mechanism: NumericMechanism) -> float:
    """Inputs are rounded to the grid at random, which mixes these laws and makes no report likelier."""
    match mechanism:
        case Window():
            return float(mechanism.inside)
        case HM():
            return float(mechanism.share * mechanism.pm.inside) if mechanism.mix else 1.0
        case Laplace():
            return math.tanh(float(mechanism.exact_epsilon) / (1 << mechanism.bits) / 2)
    return 1.0
