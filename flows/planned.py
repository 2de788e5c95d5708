"""The plan command: what a spec promises before anybody is asked anything. No data are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from pldp.channels.exact import float_above
from pldp.errors import Outcome, SpecError
from pldp.questions.plan import Plan
from pldp.questions.question import Rows
from pldp.questions.rows import joined
from pldp.questions.specs import spec_of
from pldp.questions.target import Target, find_target, largest_error
from pldp.tables.common import BUDGETS
from pldp.tasks.specfile import SpecFile
from pldp.tasks.tables import frame


@dataclass(frozen=True)
class Planned:
    """Predictions of every question, from the spec's assumptions alone."""

    plan: Plan
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    budgets: pl.DataFrame
    predictions: Mapping[str, Mapping[str, pl.DataFrame]]
    """Tables by kind of question and name."""
    worst_error: float | None
    """The largest predicted standard error that is a share; None where nothing is one."""
    target: Target | None

    def as_json(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "name": plan.name,
            "plan_sha256": plan.sha256,
            "plan": plan.model_dump(mode="json"),
            "total_budget": None if plan.total is None else float_above(plan.total),
            "worst_total": {unit: float_above(plan.worst_total(unit)) for unit in plan.units},
            "expected_users": plan.expected_users,
            "assumptions": self.assumptions,
            "notes": self.notes,
            "budgets": self.budgets.to_dicts(),
            "predictions": {
                kind: {name: table.to_dicts() for name, table in tables.items()}
                for kind, tables in self.predictions.items()
            },
            "worst_error": self.worst_error,
            "target": None if self.target is None else vars(self.target),
        }


def predict(file: SpecFile, target_error: float | None = None) -> Planned:
    """What every question will come to, and where a target is given the budget and the users that reach it."""
    if target_error is not None and not 0 < target_error < 1:
        raise SpecError(
            "must lie between 0 and 1", Outcome.NOTHING_RUN, field="--target-error", value=f"{target_error:g}"
        )
    plan = file.plan
    target = None
    if target_error is not None:
        try:
            target = find_target(plan, file.plan_at, target_error)
        except ValueError as error:
            raise SpecError.broken(error, Outcome.NOTHING_RUN, field="--target-error") from None
    predictions = [question.predictions(spec_of(file.spec, question)) for question in plan.questions]
    largest = largest_error(plan)[1]
    return Planned(
        plan=plan,
        assumptions=tuple(dict.fromkeys(line for one in predictions for line in one.assumptions)),
        notes=tuple(dict.fromkeys(line for one in predictions for line in one.notes)),
        budgets=frame(BUDGETS, joined([question.budgets(None) for question in plan.questions])),
        predictions={
            _label(plan, number): {name: as_frame(rows) for name, rows in one.tables.items() if rows}
            for number, one in enumerate(predictions)
        },
        worst_error=largest or None,
        target=target,
    )


def _label(plan: Plan, number: int) -> str:
    """The kind of a question; with its place among its like where there are several."""
    kinds = [question.kind for question in plan.questions]
    kind = kinds[number]
    return kind if kinds.count(kind) == 1 else f"{kind} {kinds[: number + 1].count(kind)}"


def as_frame(rows: Rows) -> pl.DataFrame:
    """A table that is shown and not published, so that nothing declares its types."""
    return pl.DataFrame(dict(rows), infer_schema_length=None)
