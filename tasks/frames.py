"""Frames: everything that a release publishes, built before any gate looks at it; nothing is added afterwards.

Only the verdicts themselves, and the row that says how the release ended, follow from the gates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from pldp.questions.doubts import Doubt
from pldp.questions.plan import Plan
from pldp.questions.question import Rows
from pldp.questions.rows import joined
from pldp.questions.statement import spend_rows
from pldp.questions.tables import published_table
from pldp.tables.common import BUDGETS, DOUBTS, SPENDS
from pldp.tasks.tables import frame


@dataclass(frozen=True)
class Frames:
    """What is published: by question and table, and what the release has beside its questions' tables."""

    questions: tuple[Mapping[str, pl.DataFrame], ...]
    beside: Mapping[str, pl.DataFrame]

    @cached_property
    def published(self) -> dict[str, pl.DataFrame]:
        """By table: the very frames that gates look at and that are stored."""
        names = dict.fromkeys(name for tables in self.questions for name in tables)
        together = {name: pl.concat([one[name] for one in self.questions if name in one]) for name in names}
        return {**together, **self.beside}


def build_frames(
    plan: Plan,
    results: Sequence[Any],
    doubts: Sequence[Doubt],
    tables: Sequence[Mapping[str, Rows]],
    asked: Plan | None = None,
) -> Frames:
    """`tables` are the questions' rows without what doubts withhold; `plan` has those questions that somebody answered,
    `asked` all of them, where that is more."""
    beside = {name: _frame(name, rows) for name, rows in rows_beside(plan, results, doubts, asked).items()}
    return Frames(tuple({name: _frame(name, rows) for name, rows in one.items()} for one in tables), beside)


def computed_rows(
    plan: Plan, results: Sequence[Any], doubts: Sequence[Doubt], asked: Plan | None = None
) -> dict[str, Rows]:
    """What must be published, from the results once more and without any frame: for the gates to compare."""
    withheld = {doubt.attribute for doubt in doubts if doubt.withheld}
    tables = [
        question.withhold(question.tables(result), withheld)
        for question, result in zip(plan.questions, results, strict=True)
    ]
    names = dict.fromkeys(name for one in tables for name in one)
    together = {name: joined([one[name] for one in tables if name in one]) for name in names}
    return {**together, **rows_beside(plan, results, doubts, asked)}


def rows_beside(plan: Plan, results: Sequence[Any], doubts: Sequence[Doubt], asked: Plan | None) -> dict[str, Rows]:
    """Budgets and what they come to, whatever was asked, and what speaks against clients' reports."""
    budgets = [question.budgets(result) for question, result in zip(plan.questions, results, strict=True)]
    rows = {BUDGETS.name: joined(budgets), SPENDS.name: spend_rows(asked or plan)}
    if doubts:
        rows[DOUBTS.name] = {name: [getattr(doubt, name) for doubt in doubts] for name in vars(doubts[0])}
    return rows


def _frame(name: str, rows: Rows) -> pl.DataFrame:
    return frame(published_table(name), rows)
