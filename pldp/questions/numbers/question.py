"""Means and quantiles of numbers as one question: everybody answers some of them on one budget."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal

import numpy as np

from pldp.channels.randomness import Keystream
from pldp.estimate.inference import Recipe
from pldp.questions.gate import Gate
from pldp.questions.numbers.estimate import NumbersResult, estimate
from pldp.questions.numbers.gates import gates
from pldp.questions.numbers.plan import NumbersPlan
from pldp.questions.numbers.reports import NumberCounts, NumberReports, count_numbers, report_numbers
from pldp.questions.numbers.tables import budgets, tables
from pldp.questions.question import ANSWER, Columns, Evidence, Question, Reports, Rows, Sheet, Tallies
from pldp.spec.fields import Ratio

CODE_CELLS = 4
"""A number of a person is a code of four bytes where a value is a bit: partitions hold fewer people."""


class Numbers(NumbersPlan, Question):
    kind: Literal["numbers"] = "numbers"
    total: Ratio
    """The budget of the whole release, of which the numbers have a share."""
    recipe: Recipe
    tested: int
    """How many results of the whole release share the false alarms of the test for agreement."""
    fields: tuple[int, ...]
    """The vault's columns of codes, one per numeric attribute."""
    choice_field: str = "level_0"
    place: str = "numbers"
    """Where its reports lie."""

    @property
    def cells(self) -> int:
        return CODE_CELLS * (self.columns + len(self.questions))

    @property
    def granted(self) -> Fraction:
        return self.budget

    @property
    def worst_total(self) -> Fraction:
        return max(level.budget for level in self.levels)

    def spends(self) -> list[tuple[Fraction, Fraction]]:
        classes = [one for level in self.levels for one in level.classes]
        return sorted({(m.realised.worst_ratio, one.budget) for one in classes for m in one.mechanisms})

    @property
    def vault_fields(self) -> tuple[str, ...]:
        """A code per attribute, and where people say what matters to them a weight per attribute."""
        personal = self.importance in ("columns", "weights")
        return (*(f"number_{i}" for i in self.fields), *(f"weight_{i}" for i in self.fields if personal))

    @cached_property
    def codes(self) -> dict[str, int]:
        """The level of every sheet, by its path."""
        return {f"{self.place}/level={level.level}": code for code, level in enumerate(self.levels)}

    def sheets(self) -> tuple[Sheet, ...]:
        return tuple(
            Sheet(
                path=path,
                fields=self.vault_fields,
                labels=(self.place, self.levels[code].level),
                choice=self.levels[code].level,
                choice_field=self.choice_field,
                code=code,
            )
            for path, code in self.codes.items()
        )

    def draw(self, sheet: Sheet, rows: Columns, stream: Keystream, adapted: bytes | None) -> Columns:
        """Which questions people answer, and their answers, committed together: a sample drawn anew beside answers that
        are there would have somebody answer more than the budget is for."""
        columns = [rows[name] for name in sheet.fields]
        codes = np.stack(columns[: self.columns]).astype(np.uint32, copy=False)
        weights = np.stack(columns[self.columns :]) if len(columns) > self.columns else None
        drawn = report_numbers(self, self.codes[sheet.path], codes, weights, stream)
        return {"question": drawn.question, "class": drawn.class_, "report": drawn.report}

    def tally(self, sheet: Sheet, reports: Columns) -> NumberCounts:
        rows = NumberReports(reports["question"], reports["class"], reports["report"])
        return count_numbers(self, self.codes[sheet.path], rows)

    def combine(self, method: str, tallies: Tallies, reports: Reports) -> NumbersResult:
        return estimate(self, self.recipe, [tallies[path] for path in self.codes], reports.generator)

    def conclude(self, tallies: Tallies, estimates: Mapping[str, Any]) -> NumbersResult:
        result: NumbersResult = estimates[ANSWER]
        return result

    def tables(self, result: NumbersResult) -> dict[str, Rows]:
        return tables(self, result)

    def budgets(self, result: NumbersResult | None) -> Rows:
        return budgets(self, result)

    def gates(self, evidence: Evidence) -> tuple[Gate, ...]:
        return gates(self, evidence)
