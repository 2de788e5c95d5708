"""What to expect of a plan's means, from its assumptions alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from pldp.channels.numeric.mechanism import noise
from pldp.channels.protocol import Counts, Floats
from pldp.estimate.capped import UNCAPPED, cap_sentence, water_filled
from pldp.questions.numbers.budgets import average_variance
from pldp.questions.numbers.choice import FOR_MEANS, MECHANISMS
from pldp.questions.numbers.estimate import FALLBACK
from pldp.questions.numbers.means import ESTIMATORS
from pldp.questions.numbers.plan import MEAN, NumberLevel, NumbersPlan, Question
from pldp.questions.question import Predictions, Rows
from pldp.questions.rows import stacked

if TYPE_CHECKING:
    from pldp.questions.numbers.question import Numbers

UNPREDICTED = "quantiles have no predicted error: a target error does not cover them"


def class_shares(plan: NumbersPlan, level: NumberLevel, question: Question) -> Floats:
    """The share of the question's reports that each class is to have; attributes matter independently of each other.

    Weights count as important or not.
    """
    known = [class_plan.units for class_plan in level.classes]
    shares = np.zeros(len(known))
    if not level.budgets.personal:
        shares[0] = 1.0
        return shares
    important = others = plan.assumed_important
    if plan.importance == "stated":
        important = float(question.important)
        others = (sum(asked.important for asked in plan.questions) - important) / max(len(plan.questions) - 1, 1)
    rest = level.sampled - 1

    def add(units: int, share: float) -> None:
        shares[min(int(np.searchsorted(known, units)), len(known) - 1)] += share

    for m in range(rest + 1):
        chance = math.comb(rest, m) * others**m * (1 - others) ** (rest - m)
        add(level.units // (m + 1), important * chance)
        add(0 if m else level.budgets.equal, (1 - important) * chance)
    return shares


@dataclass(frozen=True)
class ClassCost:
    """Reports to be expected of one level and class, and v + S² of one of them."""

    level: int
    class_: int
    reports: float
    cost: float


def class_costs(plan: NumbersPlan, asked: int, sizes: Counts) -> list[ClassCost]:
    """Of every class of every level, those without reports too."""
    question = plan.questions[asked]
    moment, between = question.second_moment, max(question.second_moment - question.mean**2, 0.0)
    return [
        ClassCost(i, class_, int(n) * level.sampled / len(plan.questions) * float(share), noise(m, moment) + between)
        for i, (level, n) in enumerate(zip(plan.levels, sizes, strict=True))
        for class_, (m, share) in enumerate(
            zip(plan.mechanisms(asked, i), class_shares(plan, level, question), strict=True)
        )
    ]


def predict_mean(plan: NumbersPlan, asked: int, method: str, sizes: Counts, cap: float = UNCAPPED) -> float:
    """Standard error of a mean, in [−1, 1] terms (estimate.py has the estimates, docs/numeric.md both)."""
    question, n_users = plan.questions[asked], int(sizes.sum())
    moment, between = question.second_moment, max(question.second_moment - question.mean**2, 0.0)
    variance = 0.0
    for i, (level, n) in enumerate(zip(plan.levels, sizes, strict=True)):
        if not n:
            continue
        reports = n * level.sampled / len(plan.questions)
        shares = class_shares(plan, level, question)
        noises = np.array([noise(mechanism, moment) for mechanism in plan.mechanisms(asked, i)])
        spread = moment if method == "scaled" else between
        level_variance = (float((shares * noises).sum()) + spread) / reports - spread / n
        variance += (n / n_users) ** 2 * level_variance
    if method == "inverse-variance":
        there = [one for one in class_costs(plan, asked, sizes) if one.reports]
        n, cost = (np.array([getattr(one, name) for one in there]) for name in ("reports", "cost"))
        weights = water_filled(n / n.sum(), cost[:, None], cap)[:, 0]
        variance = float((weights**2 * cost / n).sum()) - between / n_users
    elif method not in ESTIMATORS:
        raise ValueError(f"{method!r} is not one of {', '.join(ESTIMATORS)}")
    return math.sqrt(max(variance, 0.0))


def mean_shares(plan: Numbers, sizes: Counts) -> dict[str, float]:
    """By attribute the standard error of its mean, as a share of the attribute's range."""
    return {
        question.attribute: predict_mean(plan, i, applied(plan), sizes) / 2
        for i, question in enumerate(plan.questions)
        if question.kind == MEAN
    }


def considered_noise(budget: Fraction, second_moment: float) -> dict[str, float]:
    """Noise of one report of every mechanism that the budget is enough for: what `auto` chooses from."""
    noises = {}
    for name in FOR_MEANS:
        try:
            noises[name] = noise(MECHANISMS[name].for_budget(budget), second_moment)
        except ValueError:
            continue
    return noises


def sampling_costs(plan: NumbersPlan, level: int, candidates: Sequence[int]) -> dict[int, float]:
    """pmpm Eq. 16's variance for other numbers of sampled questions, at equal budgets and the plan's moments."""
    moment = sum(question.second_moment for question in plan.questions) / len(plan.questions)
    total, questions = float(plan.levels[level].budget), len(plan.questions)
    return {k: float(average_variance(total, questions, k, moment)) for k in candidates if 1 <= k <= questions}


def applied(plan: Numbers) -> str:
    """The estimator of means that a release will publish: to pool, choices must not depend on values."""
    pools = plan.estimator == "inverse-variance"
    return FALLBACK if pools and plan.recipe.dependence != 1 else plan.estimator


def covered(plan: Numbers) -> str:
    """What intervals of means and quantiles hold for, in one sentence; empty where there is nothing to choose."""
    if len(plan.levels) == 1 and not plan.tells_importance:
        return ""
    if plan.recipe.dependence != 1:
        return "intervals of means and quantiles hold however choices of a level, or of what matters, depend on values"
    return (
        "intervals of means and quantiles hold if people choose levels, and what matters to them, without regard to "
        "their values, which is declared; for means it is tested too"
    )


def predictions(plan: Numbers) -> Predictions:
    """Tables: means (attribute × estimator), sampling (by level: how many questions are answered, and why), mechanisms
    (attribute × level)."""
    sizes = plan.expected_sizes()
    means = [
        {
            "attribute": [question.attribute],
            "lower": question.lower,
            "upper": question.upper,
            "method": method,
            "published": method == applied(plan),
            "standard_error": predict_mean(plan, i, method, sizes) * question.bounds.half_width,
        }
        for i, question in enumerate(plan.questions)
        if question.kind == MEAN
        for method in ESTIMATORS
    ]
    tables = {"means": stacked(means), "sampling": _sampling(plan), "mechanisms": _mechanisms(plan)}
    asked = any(question.probabilities for question in plan.questions)
    return Predictions(tables, _assumptions(plan), (UNPREDICTED,) if asked else ())


def _times(cost: float, chosen: float) -> float:
    """How many times the chosen one's: of a large budget neither may leave noise that doubles know of."""
    return cost / chosen if chosen > 0 else math.inf if cost > 0 else 1.0


def _sampling(plan: Numbers) -> Rows:
    parts = []
    for i, level in enumerate(plan.levels):
        near = sampling_costs(plan, i, range(level.sampled - 1, level.sampled + 2))
        noises = ", ".join(f"{k}: {_times(cost, near[level.sampled]):.2f}" for k, cost in near.items())
        stated = plan.sampling.isdecimal()
        parts.append(
            {
                "level": [level.level],
                "budget": float(level.budget),
                "questions": len(plan.questions),
                "sampled": level.sampled,
                "lowest": float(level.classes[0].budget),
                "highest": float(level.classes[-1].budget),
                "why": f"as stated ({level.sampled})"
                if stated
                else f"{plan.sampling}; noise by number, relative: {noises}",
            }
        )
    return stacked(parts)


def _mechanisms(plan: Numbers) -> Rows:
    """The mechanism of every question's equal budget, and why."""
    parts = []
    for asked, question in enumerate(plan.questions):
        for level in plan.levels:
            usual = next((c for c in level.classes if c.units == level.budgets.equal), level.classes[0])
            noises = considered_noise(usual.budget, question.second_moment)
            compared = ", ".join(
                f"{name} {noise:.3g}" for name, noise in sorted(noises.items(), key=lambda one: one[1])
            )
            why = f"least noise of {compared}" if question.chosen else f"as stated; {compared}"
            parts.append(
                {
                    "attribute": [question.attribute],
                    "question": question.kind,
                    "level": level.level,
                    "budget": float(usual.budget),
                    "mechanism": usual.mechanisms[asked].mechanism,
                    "why": why if question.kind == MEAN else "the square wave tells most about a distribution",
                }
            )
    return stacked(parts)


def _assumptions(plan: Numbers) -> tuple[str, ...]:
    chosen = zip((level.level for level in plan.levels), plan.expected_sizes(), strict=True)
    known = list(dict.fromkeys(q.attribute for q in plan.questions if (q.mean, q.second_moment) != (0.0, 1 / 3)))
    evenly = "numbers spread evenly over their bounds"
    assumed = [
        f"{plan.expected_users:,} users, of whom choose {', '.join(f'{level} {size:,}' for level, size in chosen)}",
        "errors are those of levels chosen independently of the value",
        f"means and deviations as stated for {', '.join(known)}, else {evenly}" if known else evenly,
    ]
    if any(level.budgets.personal for level in plan.levels):
        assumed.append(f"an attribute matters to {plan.assumed_important:.0%} of users, each by itself")
    assumed += [sentence for sentence in (covered(plan), cap_sentence(plan.recipe.level_weight_cap)) if sentence]
    return tuple(assumed)
