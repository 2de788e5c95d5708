"""What the forecasts of aggregates and of items share: the head of their JSON, and the refusal of a target error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pldp.channels.exact import float_above
from pldp.errors import SpecError
from pldp.questions.aggregates.plan import AggregatesPlan
from pldp.questions.items.plan import ItemsPlan


@dataclass(frozen=True)
class PlanForecast:
    plan: AggregatesPlan | ItemsPlan
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    """What an author may not have meant."""

    def head(self, **chosen: str) -> dict[str, Any]:
        """What every forecast tells first; `chosen` is what the plan decided by itself."""
        return {
            "name": self.plan.name,
            "kind": self.plan.kind,
            "plan_sha256": self.plan.sha256,
            "plan": self.plan.model_dump(mode="json"),
            **chosen,
            "worst_total": float_above(self.plan.worst_total),
            "expected_users": self.plan.expected_users,
            "assumptions": self.assumptions,
            "notes": self.notes,
        }


def refuse_target(target_error: float | None, instead: str) -> None:
    if target_error is not None:
        raise SpecError(f"--target-error is for histograms and means: {instead}. Nothing was run.")
