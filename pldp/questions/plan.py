"""The plan of a release: the spec resolved to questions with integer thresholds. It sees nobody's data."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from fractions import Fraction
from functools import cached_property
from typing import Literal

from pydantic import Field

from pldp.questions.gate import Between, Gate, enough_users, kept, partitions_once
from pldp.questions.question import Question, Sheet
from pldp.questions.registry import AnyQuestion
from pldp.spec.fields import Frozen, Ratio

USER = "user"
UNITS = (USER, "item", "occurrence")
"""A user has items, and an item occurrences."""


class Plan(Frozen):
    """Everything the pipeline needs to know right of the trust boundary."""

    name: str
    total: Ratio | None
    """What the spec gives a user's reports together; None where no question is about users as a whole."""
    questions: tuple[AnyQuestion, ...]
    expected_users: int
    minimum_users: int = Field(ge=1)
    perturbed_by: Literal["vault", "clients"] = "vault"
    """Who draws the reports: the holder of the vault on people's behalf, or their own clients."""

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def cells(self) -> int:
        """What a person takes of a partition."""
        return sum(question.cells for question in self.questions)

    @property
    def phases(self) -> int:
        return max(question.phases for question in self.questions)

    @property
    def units(self) -> tuple[str, ...]:
        """What budgets protect, the widest first; different units are never added."""
        return tuple(sorted({question.unit for question in self.questions}, key=UNITS.index))

    def worst_total(self, unit: str) -> Fraction:
        """The most that anybody spends on the questions of a unit, whatever they choose."""
        return sum((question.worst_total for question in self.questions if question.unit == unit), Fraction(0))

    @cached_property
    def sheets(self) -> tuple[tuple[Question, Sheet], ...]:
        """Every sheet of reports, with the question that it is of."""
        return tuple((question, sheet) for question in self.questions for sheet in question.sheets())

    def answered(self, sheets: Collection[str]) -> Plan:
        """Its questions as far as anybody answered them, given the paths of sheets with reports."""
        left = [question.answered(sheets) for question in self.questions]
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return Plan(**{**fields, "questions": tuple(question for question in left if question is not None)})

    @property
    def subjects(self) -> tuple[str, ...]:
        """All that is asked."""
        return tuple(subject for question in self.questions for subject in question.subjects)

    def choices(self, phase: int) -> tuple[str | None, ...]:
        """What reports of a phase are drawn by, one task each: levels and profiles, and None for everybody at once."""
        return tuple(dict.fromkeys(sheet.choice for _, sheet in self.sheets if sheet.phase == phase))

    def files(self, partitions: int) -> Iterator[tuple[Sheet, int]]:
        """Every file of reports that a complete release has."""
        for _, sheet in self.sheets:
            for partition in range(partitions):
                if sheet.covers(partition):
                    yield sheet, partition

    def gates(self, n_users: int, partitions: int, counted: list[tuple[str, int]]) -> tuple[Gate, ...]:
        """What must hold of the release as a whole; `counted` are the sheets and partitions behind its tallies."""
        expected = [(sheet.path, partition) for sheet, partition in self.files(partitions)]
        return (
            *(() if self.total is None else (self._budgets_sum(self.total), self._spend_within_total(self.total))),
            *self._exact_epsilon(),
            partitions_once(expected, counted),
            enough_users(n_users, self.minimum_users),
        )

    def _budgets_sum(self, total: Fraction) -> Gate:
        spent = sum((question.granted for question in self.questions if question.unit == USER), Fraction(0))
        unspent = float((total - spent) / total)
        return Gate(
            "budgets_sum",
            "Budgets sum to no more than the total, and leave less than a billionth of it unused.",
            {"unspent": [unspent]},
            (Between("unspent", low=0.0, high=1e-9),),
            observed=float(spent),
            bound=float(total),
        )

    def _spend_within_total(self, total: Fraction) -> Gate:
        worst = self.worst_total(USER)
        return Gate(
            "spend_within_total",
            "No user can spend more than the total budget, whatever they choose.",
            {"left": [float(total - worst)]},
            (Between("left", low=0.0),),
            observed=float(worst),
            bound=float(total),
        )

    def _exact_epsilon(self) -> tuple[Gate, ...]:
        spent = [pair for question in self.questions for pair in question.spends()]
        sentence = (
            "The exact worst-case ratio of every mechanism is at most e to its budget, compared as rational numbers."
        )
        return (kept("exact_epsilon", sentence, spent),) if spent else ()
