"""From the spec of a table of people to the plan of a release. It sees only the spec."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pldp.channels.exact import BITS, SCALE
from pldp.channels.protocol import Floats
from pldp.estimate.allocation import optimal_shares, split
from pldp.estimate.inference import Recipe
from pldp.questions.gate import FAMILY
from pldp.questions.histograms.budgets import budgets_of
from pldp.questions.histograms.considered import strictest_first
from pldp.questions.histograms.resolve import expected_shares, make_histograms
from pldp.questions.numbers.question import NUMBERS, Numbers
from pldp.questions.numbers.resolve import number_variance, plan_numbers, questions_of
from pldp.questions.numbers.spec import Number
from pldp.questions.numbers.spec import Numbers as NumbersSpec
from pldp.questions.people.combination import LINEAR
from pldp.questions.people.spec import Spec
from pldp.questions.plan import Plan
from pldp.questions.registry import AnyQuestion

_RAISE = "Raise it, or the smallest share that it is cut by"


def make_plan(spec: Spec, total: Fraction | None = None) -> Plan:
    """Resolve a spec; `total` overrides its budget when a target error is being sought."""
    total = total or spec.budget.total
    if total * SCALE < 1:
        # No threshold of a mechanism can express it, and doubles would underflow on the way there.
        raise ValueError(f"budget.total: a budget below 2^-{BITS} is too small to leave any signal. {_RAISE}")
    budgets, for_numbers = budgets_of(spec, total)
    tested = len(spec.published) + len(spec.number_attributes)
    recipe = _recipe(spec, tested)
    questions: list[AnyQuestion] = []
    if spec.published:
        questions.append(make_histograms(spec, total, budgets, recipe, tested))
    for group, budget in () if for_numbers is None else _groups(spec, for_numbers):
        stated = spec.numbers or NumbersSpec()
        attributes = [spec.number_attributes[i] for i in group]
        planned = plan_numbers(attributes, _for_group(stated, attributes), budget, strictest_first(spec))
        alone = not isinstance(spec.levels.column, dict)
        questions.append(
            Numbers(
                **dict(planned),
                total=total,
                recipe=recipe,
                tested=tested,
                fields=tuple(group),
                choice_field="level_0" if alone else f"level_{len(spec.published) + group[0]}",
                place=NUMBERS if len(group) == len(spec.number_attributes) else f"{NUMBERS}={attributes[0].name}",
                expected_users=spec.expected.users,
                expected_shares=expected_shares(spec),
            )
        )
    return Plan(
        name=spec.name,
        total=total,
        questions=tuple(questions),
        expected_users=spec.expected.users,
        minimum_users=spec.gates.minimum_users,
        perturbed_by="vault" if spec.source.reports is None else "clients",
    )


def _groups(spec: Spec, budget: Fraction) -> list[tuple[list[int], Fraction]]:
    """Numbers that people sample from on one budget, and that budget: all, or those whose levels stand in one column.

    A level of its own means a budget of its own. Several share what numbers get such that their summed variance is
    least, as everything else does.
    """
    numbers, column = spec.number_attributes, spec.levels.column
    if not isinstance(column, dict):
        return [(list(range(len(numbers))), budget)]
    by_column: dict[str, list[int]] = {}
    for i, number in enumerate(numbers):
        by_column.setdefault(column[number.name].casefold(), []).append(i)
    groups = list(by_column.values())
    asked = [questions_of([numbers[i] for i in group], spec.numbers or NumbersSpec()) for group in groups]
    variances = [number_variance(questions) for questions in asked]

    def variance(epsilon: Floats) -> Floats:
        return np.concatenate([of_group(epsilon[i : i + 1]) for i, of_group in enumerate(variances)])

    shares = optimal_shares(float(budget), [len(questions) for questions in asked], variance)
    return list(zip(groups, split(budget, shares), strict=True))


def _for_group(numbers: NumbersSpec, attributes: Sequence[Number]) -> NumbersSpec:
    """What a spec says of all numbers, as it holds for some of them."""
    questions = len(attributes) + sum(bool(number.quantiles) for number in attributes)
    if not isinstance(numbers.sampling, int):
        return numbers
    return numbers.model_copy(update={"sampling": min(numbers.sampling, questions)})


def default_postprocess(spec: Spec) -> str:
    """`auto` needs the standard errors of linear estimates; where another method is asked for, `norm-sub`."""
    linear = all(method in LINEAR for attribute in spec.published for method in spec.methods_of(attribute))
    return "auto" if linear else "norm-sub"


def _recipe(spec: Spec, tested: int) -> Recipe:
    return Recipe(
        method=spec.method,
        postprocess=spec.postprocess or default_postprocess(spec),
        dependence=spec.levels.gamma,
        disagreement=spec.combination.disagreement,
        # A fallback costs only precision, so it may come early; a refusal shares the gates' false alarms.
        alpha=spec.combination.alpha if spec.combination.disagreement == "sum" else FAMILY / 2 / tested,
        confidence=spec.intervals.confidence,
        population=spec.intervals.target == "population",
        steps=spec.combination.steps,
        sum_to_one=spec.combination.sum_to_one,
        level_weight_cap=spec.combination.level_weight_cap,
    )
