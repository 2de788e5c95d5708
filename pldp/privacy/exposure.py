"""What all questions together tell about one column of the source: attributes that read the same cell add up."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import prod
from typing import Any

from pldp.channels.exact import float_above, log_above
from pldp.questions.histograms.plan import AttributePlan, Plan


def exposures(plan: Plan) -> list[dict[str, Any]]:
    """For every column what a user's cell in it is exposed to, at each level and at the worst.

    A cell that changes may change every answer that reads it: its category, its bin, its part of a cross-tab, its mean
    and its distribution. The reports are independent given the row, so their worst ratios multiply.
    """
    columns: dict[str, str] = {}
    for column in _columns(plan):
        columns.setdefault(column.casefold(), column)  # sources match names whatever their case
    return [_exposure(plan, key, column) for key, column in columns.items()]


def _columns(plan: Plan) -> Iterator[str]:
    for attribute in plan.attributes:
        yield from attribute.columns or attribute.parts
    for question in () if plan.numbers is None else plan.numbers.questions:
        yield question.source_column or question.attribute


def _exposure(plan: Plan, key: str, column: str) -> dict[str, Any]:
    read = [a for a in plan.attributes if key in {name.casefold() for name in a.columns or a.parts}]
    asked = [
        question.attribute
        for question in (() if plan.numbers is None else plan.numbers.questions)
        if (question.source_column or question.attribute).casefold() == key
    ]
    spent = [_at_level(plan, read, len(asked), i) for i in range(len(plan.levels))]
    # Attributes may have levels of their own: the worst is the weakest of each.
    numbers = max(_numbers(plan, i, len(asked)) for i in range(len(plan.levels)))
    nominal = sum((max(level.budget for level in a.levels) for a in read), numbers[0])
    ratio = prod((max(level.protocol.worst_ratio for level in a.levels) for a in read), start=Fraction(1))
    exact = numbers[1] + (Fraction(log_above(ratio)) if read else 0)
    return {
        "column": column,
        "attributes": [*(a.name for a in read), *dict.fromkeys(asked)],
        "by_level": dict(zip(plan.levels, spent, strict=True)),
        "worst_epsilon": float_above(nominal),
        "exact_epsilon": float_above(min(exact, nominal)),
    }


def _at_level(plan: Plan, read: list[AttributePlan], questions: int, level: int) -> float:
    nominal, _ = _numbers(plan, level, questions)
    return float_above(sum((a.levels[level].budget for a in read), nominal))


def _numbers(plan: Plan, level: int, questions: int) -> tuple[Fraction, Fraction]:
    """Of so many questions about numbers the most that a user of the level spends, nominal and exact."""
    if plan.numbers is None or not questions:
        return Fraction(0), Fraction(0)
    nominal, exact = plan.numbers.levels[level].most(questions)
    return Fraction(nominal), Fraction(exact)
