"""Frequent item sets as one question: everybody has a row of items, or one value, and reports on it whole."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from pldp.questions.fakes import with_fakes
from pldp.questions.gate import BESIDE, FAMILY, REHEARSED
from pldp.questions.items import asked, combine, doubts, evaluate, gates, prove, reports, tables, truth
from pldp.questions.items.fakes import fake_reaches
from pldp.questions.items.plan import ItemsPlan
from pldp.questions.items.predictions import predictions, refusal
from pldp.questions.items.rowchannels import Bits
from pldp.questions.items.statement import items_statement
from pldp.questions.question import Columns, Part, Predictions, Question, Rows, Sheet
from pldp.tables.items import PLACE

LEAST_CELLS = 64
"""What a user counts for at least: the items that a row may hold."""
ITEM_CELLS = 2
"""An item is a bit in the reports and, where it is held, a few bytes of the vault: partitions hold fewer people."""


class Items(ItemsPlan, Question):
    place: str = PLACE
    """Where its reports lie, and what its rows of budgets are named."""
    choice_field: str = "level"
    """The vault's column with the position of the level that a user chose."""
    field: str = "items"
    """The vault's column of lists: positions of the items that a user holds, each once."""
    alone: bool = True
    """Whether the release asks nothing else: beside others, streams need names that no other question has."""
    share: float = 1.0
    """Of the budget of the whole release."""
    family: float = FAMILY - REHEARSED
    """The most probable its gates together are to refuse what is correct; a part of it beside other questions."""

    @property
    def cells(self) -> int:
        asked = self.candidates if self.protocol == "sampling" else len(self.items)
        return ITEM_CELLS * max(asked, LEAST_CELLS)

    @property
    def granted(self) -> Fraction:
        return self.worst_total

    def beside(self, total: Fraction | None) -> Self:
        share = 1.0 if total is None else float(self.worst_total / total)
        return self.model_copy(update={"share": share, "family": BESIDE, "alone": False})

    def spends(self) -> list[tuple[Fraction, Fraction]]:
        """None where the bounds are not kept: such a plan is for evaluations, and the gate row_epsilon refuses it."""
        spent = [(level.channel.worst_ratio, level.bound) for level in self.levels]
        return [(ratio, bound) for ratio, bound in spent if ratio is not None] if self.keeps_bounds else []

    @property
    def refusal(self) -> str | None:
        return refusal(self)

    @cached_property
    def places(self) -> dict[str, tuple[int, int]]:
        """Phase and level of every sheet, by its path. Reports on sets look different, and lie in a folder beside."""
        folders = (self.place, f"{self.place}/sets")[: self.phases]
        return {
            f"{folder}/level={name}": (phase, level)
            for phase, folder in enumerate(folders)
            for level, name in enumerate(self.level_names)
        }

    def sheets(self) -> tuple[Sheet, ...]:
        return tuple(self._sheet(path, phase, level) for path, (phase, level) in self.places.items())

    def _sheet(self, path: str, phase: int, level: int) -> Sheet:
        name = self.level_names[level]
        labels = (name,) if self.place == PLACE else (self.place, name)
        return Sheet(
            path=path,
            fields=(self.field,),
            labels=labels if self.alone else (self.place, "level", name),
            choice=name,
            choice_field=self.choice_field,
            code=level,
            phase=phase,
            phases=self.phases,
        )

    def report_types(self, sheet: Sheet) -> dict[str, str]:
        phase, level = self.places[sheet.path]
        return self.levels[level].channel.report_types(phase)

    def invalid(self, sheet: Sheet, reports: Columns) -> NDArray[np.intp]:
        phase, level = self.places[sheet.path]
        return self.levels[level].channel.invalid(reports, phase)

    def collision(self, sheet: Sheet) -> float:
        phase, level = self.places[sheet.path]
        return self.levels[level].channel.collision(phase)

    def likeliest(self, sheet: Sheet) -> float:
        phase, level = self.places[sheet.path]
        return doubts.likeliest_row(self.levels[level].channel, phase)

    def report_weights(self, sheet: Sheet, reports: Columns) -> NDArray[np.int64]:
        phase, level = self.places[sheet.path]
        return doubts.row_weights(self.levels[level].channel, phase, reports)

    def subject(self, sheet: Sheet) -> str:
        return self.place

    def withhold(self, tables: Mapping[str, Rows], withheld: Collection[str]) -> dict[str, Rows]:
        return {name: {} if self.place in withheld else rows for name, rows in tables.items()}

    def people(self, rows: Mapping[str, int]) -> int:
        return sum(rows[path] for path in self.places)

    @property
    def asks(self) -> bool:
        return isinstance(self.levels[0].channel, Bits) and self.length > 1

    def statement(self, perturbed_by: str) -> Part:
        return Part.of(items_statement(self))

    def predictions(self, spec: Any) -> Predictions:
        return with_fakes(predictions(self), spec, fake_reaches(self))

    def typical_errors(self, users: int | None = None) -> dict[str, float]:
        """None: errors of sets depend on length and items. Compare the predicted errors of two budgets instead."""
        return {}

    # Its stages: functions of the modules beside, which take the plan first and so are methods as they stand.
    draw: ClassVar = reports.draw
    tally: ClassVar = reports.tally
    count_sets: ClassVar = reports.count_sets
    adapt: ClassVar = combine.choose_candidates
    conclude: ClassVar = combine.conclude
    combine: ClassVar = combine.combine
    budgets: ClassVar = tables.budgets
    tables: ClassVar = tables.tables
    gates: ClassVar = gates.gates
    doubts: ClassVar = doubts.doubts
    recomputed: ClassVar = prove.recomputed
    recovered: ClassVar = prove.recovered
    rehearsed: ClassVar = prove.rehearsed
    asked: ClassVar = asked.asked
    truth: ClassVar = truth.true_supports
    study: ClassVar = evaluate.study
