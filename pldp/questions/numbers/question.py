"""Means and quantiles of numbers as one question: everybody answers some of them on one budget."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Counts
from pldp.channels.randomness import Keystream
from pldp.estimate.inference import Recipe
from pldp.estimate.simulate import whole_counts
from pldp.questions.fakes import with_fakes
from pldp.questions.numbers import asked, doubts, evaluate, gates, prove, tables
from pldp.questions.numbers import statement as stated
from pldp.questions.numbers.estimate import NumbersResult, estimate
from pldp.questions.numbers.fakes import fake_reaches
from pldp.questions.numbers.plan import NumbersPlan
from pldp.questions.numbers.predict import mean_shares, predictions
from pldp.questions.numbers.reports import NumberCounts, NumberReports, count_numbers, invalid_reports, report_numbers
from pldp.questions.question import ANSWER, Columns, Part, Predictions, Question, Reports, Sheet, Tallies
from pldp.spec.fields import Ratio

NUMBERS = "numbers"
CODE_CELLS = 16
"""A number of a person is a code of four bytes where a value is a bit, and several arrays are as long while budgets are
dealt: partitions hold fewer people."""


class Numbers(NumbersPlan, Question):
    kind: Literal["numbers"] = "numbers"
    total: Ratio
    """The budget of the whole release, of which the numbers have a share."""
    recipe: Recipe
    tested: int
    """How many results of the whole release share the false alarms of the test for agreement."""
    fields: tuple[int, ...]
    """The vault's columns of codes, one per numeric attribute."""
    expected_users: int
    expected_shares: tuple[float, ...]
    choice_field: str = "level_0"
    place: str = NUMBERS
    """Where its reports lie."""

    @property
    def name(self) -> str:
        """Levels by attribute make several such questions."""
        return self.place

    def expected_sizes(self, users: int | None = None) -> Counts:
        return whole_counts(np.asarray(self.expected_shares), users or self.expected_users)

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
        return count_numbers(self, self.codes[sheet.path], NumberReports.of(reports))

    def report_types(self, sheet: Sheet) -> dict[str, str]:
        return {"question": "u2", "class": "u1", "report": "u4"}

    def invalid(self, sheet: Sheet, reports: Columns) -> NDArray[np.intp]:
        return invalid_reports(self, self.codes[sheet.path], reports)

    def collision(self, sheet: Sheet) -> float:
        return doubts.equal_chance(self, self.codes[sheet.path])

    def likeliest(self, sheet: Sheet) -> float:
        return doubts.likeliest_number(self, self.codes[sheet.path])

    def rare(self, sheet: Sheet, reports: Columns) -> Columns:
        return doubts.rare_reports(self, self.codes[sheet.path], reports)

    @property
    def several_rows(self) -> bool:
        return True

    def whole(self, sheet: Sheet, tally: NumberCounts) -> bool:
        """Everybody answers as many numbers as the level samples, and is dealt all of its spare units."""
        level = self.levels[self.codes[sheet.path]]
        people, rest = divmod(tally.n_reports, level.sampled)
        return rest == 0 and tally.units == level.units * people

    @property
    def subjects(self) -> tuple[str, ...]:
        return tuple(self.attributes)

    def people(self, rows: Mapping[str, int]) -> int:
        return sum(rows[path] // self.levels[code].sampled for path, code in self.codes.items())

    def combine(self, method: str, tallies: Tallies, reports: Reports) -> NumbersResult:
        return estimate(self, self.recipe, [tallies[path] for path in self.codes], reports.generator)

    def conclude(self, tallies: Tallies, estimates: Mapping[str, Any]) -> NumbersResult:
        result: NumbersResult = estimates[ANSWER]
        return result

    def statement(self, perturbed_by: str) -> Part:
        return stated.statement(self)

    def predictions(self, spec: Any) -> Predictions:
        return with_fakes(predictions(self), spec, fake_reaches(self, self.expected_sizes()))

    @property
    def target(self) -> str:
        return "every mean as a share of its bounds"

    def typical_errors(self, users: int | None = None) -> dict[str, float]:
        """Of a mean, as a share of its range; quantiles have no prediction."""
        return mean_shares(self, self.expected_sizes(users))

    # Its stages: functions of the modules beside, which take the plan first and so are methods as they stand.
    asked: ClassVar = asked.asked
    budgets: ClassVar = tables.budgets
    tables: ClassVar = tables.tables
    gates: ClassVar = gates.gates
    doubts: ClassVar = doubts.doubts
    recomputed: ClassVar = prove.recomputed
    recovered: ClassVar = prove.recovered
    rehearsed: ClassVar = prove.rehearsed
    exposed: ClassVar = stated.exposed
    truth: ClassVar = evaluate.true_numbers
    study: ClassVar = evaluate.study
