"""What to expect of a plan's means, from its assumptions alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pldp.channels.numeric.mechanism import noise
from pldp.channels.protocol import Counts, Floats
from pldp.questions.numbers.budgets import average_variance
from pldp.questions.numbers.choice import FOR_MEANS, MECHANISMS
from pldp.questions.numbers.means import ESTIMATORS
from pldp.questions.numbers.plan import MEAN, NumberLevel, NumbersPlan, Question


def class_shares(plan: NumbersPlan, level: NumberLevel, question: Question) -> Floats:
    """The share of the question's reports that each class is to have; attributes matter independently of each other.

    Weights count as important or not.
    """
    known = [found.units for found in level.classes]
    shares = np.zeros(len(known))
    if not level.budgets.personal:
        shares[0] = 1.0
        return shares
    own = others = plan.assumed_important
    if plan.importance == "stated":
        own = float(question.important)
        others = (sum(asked.important for asked in plan.questions) - own) / max(len(plan.questions) - 1, 1)
    rest = level.sampled - 1

    def add(units: int, share: float) -> None:
        shares[min(int(np.searchsorted(known, units)), len(known) - 1)] += share

    for m in range(rest + 1):
        chance = math.comb(rest, m) * others**m * (1 - others) ** (rest - m)
        add(level.units // (m + 1), own * chance)
        add(0 if m else level.budgets.equal, (1 - own) * chance)
    return shares


def predict_mean(plan: NumbersPlan, asked: int, method: str, sizes: Counts) -> float:
    """Standard error of a mean, in [−1, 1] terms (estimate.py has the estimates, docs/numeric.md both)."""
    question, n_users = plan.questions[asked], int(sizes.sum())
    moment, between = question.second_moment, max(question.second_moment - question.mean**2, 0.0)
    information, variance = 0.0, 0.0
    for i, (level, n) in enumerate(zip(plan.levels, sizes, strict=True)):
        if not n:
            continue
        reports = n * level.sampled / len(plan.questions)
        shares = class_shares(plan, level, question)
        noises = np.array([noise(mechanism, moment) for mechanism in plan.mechanisms(asked, i)])
        information += reports * float((shares / (noises + between)).sum())
        spread = moment if method == "scaled" else between
        own = (float((shares * noises).sum()) + spread) / reports - spread / n
        variance += (n / n_users) ** 2 * own
    if method == "inverse-variance":
        variance = 1 / information - between / n_users
    elif method not in ESTIMATORS:
        raise ValueError(f"{method!r} is not one of {', '.join(ESTIMATORS)}")
    return math.sqrt(max(variance, 0.0))


def mean_shares(plan: NumbersPlan, sizes: Counts) -> dict[str, float]:
    """By attribute the standard error of its mean, as a share of the attribute's range."""
    return {
        question.attribute: predict_mean(plan, i, plan.estimator, sizes) / 2
        for i, question in enumerate(plan.questions)
        if question.kind == MEAN
    }


def considered_noise(budget: Fraction, second_moment: float) -> dict[str, float]:
    """Noise of one report of every mechanism that the budget is enough for: what `auto` chooses from."""
    found = {}
    for name in FOR_MEANS:
        try:
            found[name] = noise(MECHANISMS[name].for_budget(budget), second_moment)
        except ValueError:
            continue
    return found


def sampling_costs(plan: NumbersPlan, level: int, candidates: Sequence[int]) -> dict[int, float]:
    """pmpm Eq. 16's variance for other numbers of sampled questions, at equal budgets and the plan's moments."""
    moment = sum(question.second_moment for question in plan.questions) / len(plan.questions)
    total, questions = float(plan.levels[level].budget), len(plan.questions)
    return {k: float(average_variance(total, questions, k, moment)) for k in candidates if 1 <= k <= questions}
