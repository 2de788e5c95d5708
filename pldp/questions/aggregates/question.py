"""Attribute aggregates towards providers of different trust, as one question."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pldp.questions.aggregates import asked, doubts, evaluate, gates, prove, reports, tables
from pldp.questions.aggregates.budgets import TICK_BITS
from pldp.questions.aggregates.fakes import fake_reaches
from pldp.questions.aggregates.plan import AggregatesPlan
from pldp.questions.aggregates.predict import predictions
from pldp.questions.aggregates.spec import PROFILE
from pldp.questions.aggregates.statement import statement
from pldp.questions.aggregates.totals import AggregatesResult, Sums, Totals, estimate_totals
from pldp.questions.fakes import with_fakes
from pldp.questions.question import ANSWER, Part, Predictions, Question, Reports, Rows, Sheet, Tallies
from pldp.questions.rows import without

NUMBER_CELLS = 64
"""A number takes eight bytes in each of the aggregates, the noise and the report, and as much for what is drawn."""


class Aggregates(AggregatesPlan, Question):
    """Every provider gets a report of its own from every user, with noise that the user's profile allows it."""

    @property
    def cells(self) -> int:
        return NUMBER_CELLS * len(self.attributes)

    @property
    def granted(self) -> Fraction:
        return self.worst_total

    def spends(self) -> list[tuple[Fraction, Fraction]]:
        """Of every provider: the profile that tells it most, over all attributes together."""
        return [(self.worst_ratio(provider.name), provider.epsilon) for provider in self.providers]

    @property
    def vault_fields(self) -> tuple[str, ...]:
        """Everybody's aggregate of each attribute, in grid units."""
        return tuple(f"a_{i}" for i in range(len(self.attributes)))

    @cached_property
    def _providers(self) -> dict[str, str]:
        """The provider of every sheet, by its path."""
        return {f"provider={provider.name}": provider.name for provider in self.providers}

    def provider_of(self, sheet: Sheet) -> str:
        return self._providers[sheet.path]

    def sheets(self) -> tuple[Sheet, ...]:
        """One per provider, with everybody's reports together and the profile in a column.

        Not one per profile, as levels have it: there may be ten thousand of them, and one call draws for all. Rows are
        shuffled over all profiles, so that providers who pool their files link nobody by the row.
        """
        fields = (self.choice_field, *self.vault_fields)
        return tuple(Sheet(path, fields, (name,), shuffled=True) for path, name in self._providers.items())

    @property
    def instead_of_target(self) -> str:
        return "a total's error follows from the budgets in the plan"

    @property
    def instead_of_recycling(self) -> str:
        return "Name the analyst as a provider with an epsilon of its own in the next release."

    def report_types(self, sheet: Sheet) -> dict[str, str]:
        return {PROFILE: "u2", **dict.fromkeys(self.attributes, "i8")}

    def collision(self, sheet: Sheet) -> float:
        """Two people with equal aggregates, of the profile with the least noise: each number's likeliest noise is zero,
        with probability tanh(ε/2)."""
        spends = self.mechanisms[self.provider_of(sheet)].ticks / float(1 << TICK_BITS)
        return float(np.tanh(spends / 2).prod(axis=1).max())

    def likeliest(self, sheet: Sheet) -> float:
        """As in `collision`: the likeliest report is the one without noise."""
        return self.collision(sheet)

    def withhold(self, tables: Mapping[str, Rows], withheld: Collection[str]) -> dict[str, Rows]:
        return {name: without(rows, "provider", withheld) for name, rows in tables.items()}

    def people(self, rows: Mapping[str, int]) -> int:
        return max(rows[path] for path in self._providers)

    def _sums(self, tallies: Tallies) -> dict[str, Sums]:
        return {name: tallies[path] for path, name in self._providers.items()}

    def combine(self, method: str, tallies: Tallies, reports: Reports) -> dict[str, Totals]:
        return {
            name: estimate_totals(sums, self.mechanisms[name], self.confidence)
            for name, sums in self._sums(tallies).items()
        }

    def conclude(self, tallies: Tallies, estimates: Mapping[str, Any]) -> AggregatesResult:
        return AggregatesResult(self._sums(tallies), estimates[ANSWER])

    def statement(self, perturbed_by: str) -> Part:
        return Part.of(statement(self))

    def predictions(self, spec: Any) -> Predictions:
        return with_fakes(predictions(self, clients=spec.source.reports is not None), spec, fake_reaches(self))

    def typical_errors(self, users: int | None = None) -> dict[str, float]:
        """None: a total is no share, and its error follows from the budgets of providers and profiles."""
        return {}

    @property
    def not_dealt(self) -> str | None:
        return "a total adds up everybody's reports, each unbiased whoever chose which profile"

    # Its stages: functions of the modules beside, which take the plan first and so are methods as they stand.
    draw: ClassVar = reports.draw
    tally: ClassVar = reports.tally
    invalid: ClassVar = reports.invalid
    asked: ClassVar = asked.asked
    budgets: ClassVar = tables.budgets
    tables: ClassVar = tables.tables
    gates: ClassVar = gates.gates
    doubts: ClassVar = doubts.doubts
    recomputed: ClassVar = prove.recomputed
    recovered: ClassVar = prove.recovered
    rehearsed: ClassVar = prove.rehearsed
    truth: ClassVar = evaluate.true_totals
    study: ClassVar = evaluate.study
