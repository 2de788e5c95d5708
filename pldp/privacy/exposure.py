"""What all questions together tell about one column of the source: answers that read the same cell add up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import Any, Protocol

from pldp.channels.exact import float_above, log_above


@dataclass(frozen=True)
class Exposed:
    """What one answer tells about a cell of a column: by choice, and of the choice that tells most."""

    column: str
    attribute: str
    by_choice: dict[str, Fraction]
    nominal: Fraction
    ratio: Fraction = Fraction(1)
    """The exact worst ratio; ratios of independent answers multiply."""
    exact: Fraction = Fraction(0)
    """An exact ε beside it, where only that is known."""


class Exposing(Protocol):
    """A question, as far as exposure is concerned."""

    def exposed(self) -> Iterable[Exposed]:
        """What its answers tell about columns of the table of people."""
        ...


def exposures(questions: Iterable[Exposing]) -> list[dict[str, Any]]:
    """For every column what a person's cell in it is exposed to, at each level and at the worst.

    A cell that changes may change every answer that reads it: its category, its bin, its part of a cross-tab, its mean
    and its distribution. The reports are independent given the row, so their worst ratios multiply.
    """
    columns: dict[str, list[Exposed]] = {}
    for question in questions:
        for exposed in question.exposed():
            columns.setdefault(exposed.column.casefold(), []).append(exposed)  # sources match names whatever their case
    return [_exposure(answers) for answers in columns.values()]


def _exposure(answers: list[Exposed]) -> dict[str, Any]:
    choices = dict.fromkeys(choice for answer in answers for choice in answer.by_choice)
    nominal = sum((answer.nominal for answer in answers), Fraction(0))
    ratio = prod((answer.ratio for answer in answers), start=Fraction(1))
    exact = sum((answer.exact for answer in answers), Fraction(0)) + (Fraction(log_above(ratio)) if ratio > 1 else 0)
    return {
        "column": answers[0].column,
        "attributes": list(dict.fromkeys(answer.attribute for answer in answers)),
        "by_level": {
            choice: float_above(sum((answer.by_choice.get(choice, Fraction(0)) for answer in answers), Fraction(0)))
            for choice in choices
        },
        "worst_epsilon": float_above(nominal),
        "exact_epsilon": float_above(min(exact, nominal)),
    }
