"""From the spec's numbers to their plan: how many questions a user samples, which classes, which mechanisms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import numpy as np

from pldp.channels.numeric.window import PM, SquareWave
from pldp.channels.protocol import Floats
from pldp.estimate.allocation import Variance, optimal_shares
from pldp.questions.numbers.budgets import BudgetClasses, pm_noise, sampled_attributes
from pldp.questions.numbers.choice import MECHANISMS, best_mechanism, best_sampled
from pldp.questions.numbers.plan import DISTRIBUTION, MEAN, ClassPlan, MechanismPlan, NumberLevel, NumbersPlan, Question
from pldp.questions.numbers.spec import Number, Numbers

MOST_CLASSES = 255
"""A report tells its class in one byte."""

_BEST_BUDGET = 1 / 0.2805
"""What a sampled attribute gets where as many are sampled as is best (pmpm section 4.1)."""


def questions_of(attributes: Sequence[Number], numbers: Numbers) -> tuple[Question, ...]:
    """The mean of every attribute, then the distribution of those with quantiles."""
    stated = numbers.importance if isinstance(numbers.importance, tuple) else ()

    def question(column: int, number: Number, kind: Any) -> Question:
        mean, second_moment = number.moments
        return Question(
            attribute=number.name,
            kind=kind,
            lower=number.bounds[0],
            upper=number.bounds[1],
            column=column,
            source_column=number.column or number.name,
            important=number.name in stated,
            mean=mean,
            second_moment=min(second_moment, 1.0),
            bins=number.bins,
            probabilities=number.quantiles if kind == DISTRIBUTION else (),
            chosen=number.mechanism == "auto",
        )

    means = [question(i, number, MEAN) for i, number in enumerate(attributes)]
    return (*means, *(question(i, n, DISTRIBUTION) for i, n in enumerate(attributes) if n.quantiles))


def plan_numbers(
    attributes: Sequence[Number], numbers: Numbers, budget: Fraction, shares: dict[str, Fraction]
) -> NumbersPlan:
    """`shares` are the levels', from the strictest to the weakest."""
    questions = questions_of(attributes, numbers)
    wanted: dict[str, str] = {number.name: number.mechanism for number in attributes}
    mode = (
        "none"
        if numbers.importance is None
        else "stated"
        if isinstance(numbers.importance, tuple)
        else "weights"
        if numbers.weights
        else "columns"
    )
    important = (
        sum(question.important for question in questions) / len(questions)
        if mode == "stated"
        else float(numbers.assumed_important)
    )
    levels = []
    for level, share in shares.items():
        try:
            levels.append(_level(level, budget * share, questions, numbers, wanted, important))
        except ValueError as error:
            raise ValueError(
                f"budget.total: numbers at level {level}: {error}. Raise the total or numbers.share, sample fewer "
                "attributes (numbers.sampling), or lower numbers.tau"
            ) from None
    return NumbersPlan(
        budget=budget,
        columns=len(attributes),
        importance=mode,
        assumed_important=important,
        estimator=numbers.estimator,
        sampling=str(numbers.sampling),
        questions=questions,
        levels=tuple(levels),
    )


def _level(
    level: str,
    budget: Fraction,
    questions: tuple[Question, ...],
    numbers: Numbers,
    wanted: dict[str, str],
    important: float,
) -> NumberLevel:
    k = sampled(budget, questions, numbers, set(wanted.values()), important)
    dealt = _classes(budget, numbers, k)
    units = dealt.by_weights if numbers.weights else dealt.by_importance
    return NumberLevel(
        level=level,
        budget=budget,
        tau=dealt.tau,
        sampled=k,
        units=dealt.units,
        classes=tuple(
            ClassPlan(
                units=u,
                budget=dealt.budget(u),
                mechanisms=_mechanisms(dealt.budget(u), questions, wanted),
            )
            for u in units
        ),
    )


def sampled(
    budget: Fraction, questions: Sequence[Question], numbers: Numbers, mechanisms: set[str], important: float
) -> int:
    """k by the spec's rule; `optimal` minimises the predicted error, personal budgets included."""
    moment = sum(question.second_moment for question in questions) / len(questions)
    if isinstance(numbers.sampling, int):
        return numbers.sampling
    if numbers.sampling != "optimal":
        return sampled_attributes(numbers.sampling, float(budget), len(questions), moment)
    # `auto` comes to about PM's noise wherever more than one attribute is worth sampling.
    mechanism = mechanisms.pop() if len(mechanisms) == 1 and "auto" not in mechanisms else PM.name
    return best_sampled(numbers.estimator, mechanism, budget, numbers.tau, len(questions), important, moment)


def _classes(budget: Fraction, numbers: Numbers, k: int) -> BudgetClasses:
    if numbers.importance is None or k == 1 or numbers.tau == 1:
        return BudgetClasses(budget, Fraction(1), k, k)
    if not numbers.weights:
        return BudgetClasses.for_importance(budget, numbers.tau, k)
    every = math.lcm(*range(1, k + 1))
    return BudgetClasses(budget, numbers.tau, k, every if every < MOST_CLASSES else (MOST_CLASSES - 1) // k * k)


def _mechanisms(budget: Fraction, questions: Sequence[Question], wanted: dict[str, str]) -> tuple[MechanismPlan, ...]:
    known: dict[tuple[str, float], MechanismPlan] = {}
    plans = []
    for question in questions:
        name = SquareWave.name if question.kind == DISTRIBUTION else wanted[question.attribute]
        key = (name, question.second_moment)
        if key not in known:
            used = best_mechanism(budget, question.second_moment) if name == "auto" else name
            realised: Any = MECHANISMS[used].for_budget(budget)
            known[key] = MechanismPlan(mechanism=used, parameters=asdict(realised))
        plans.append(known[key])
    return tuple(plans)


def number_variance(questions: Sequence[Question]) -> Variance:
    """Variance of a user's scaled report on a question, in squares of the range, as a function of the budget.

    pmpm Eq. 16 with a k that is not whole: smooth and convex, so that a total has one best split (a share and the
    position in a range are both between 0 and 1, and errors of the two are weighed alike).
    """
    number = len(questions)
    moment = sum(question.second_moment for question in questions) / number

    def variance(epsilon: Floats) -> Floats:
        k = np.clip(epsilon / _BEST_BUDGET, 1, number)
        return (number / k * pm_noise(epsilon / k, moment) + (number / k - 1) * moment) / 4

    return variance


def numbers_share(
    attributes: Sequence[Number], numbers: Numbers, total: float, cells: Sequence[int], of_cells: Variance
) -> float:
    """The numbers' part of the total: stated, or such that the summed variance of all cells and questions is least."""
    if isinstance(numbers.share, Fraction):
        return float(numbers.share)
    questions = questions_of(attributes, numbers)
    of_numbers = number_variance(questions)

    def variance(epsilon: Floats) -> Floats:
        return np.append(of_cells(epsilon[:-1]), of_numbers(epsilon[-1:]))

    return float(optimal_shares(total, [*cells, len(questions)], variance)[-1])
