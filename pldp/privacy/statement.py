"""The privacy statement that goes with every release, for machines and people: the questions' parts put together."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pldp.channels.exact import float_above
from pldp.privacy.exposure import exposures
from pldp.privacy.trust import trust_model

if TYPE_CHECKING:
    from pldp.questions.plan import Plan
    from pldp.questions.question import Part


def privacy_statement(plan: Plan, release_id: str, n_users: int) -> dict[str, Any]:
    """What is promised to whom, exactly; nothing in it depends on anybody's values."""
    model = trust_model(plan.perturbed_by)
    answered = model.partial
    parts = [question.statement(plan.perturbed_by) for question in plan.questions]
    totals = {unit: _total(plan, unit, parts) for unit in plan.units}
    details: dict[str, Any] = {}
    for part in parts:
        _merge(details, part.details)
    exposure = exposures(plan.questions)
    public = [line for part in parts for line in part.public]
    assumed = [line for part in parts for line in part.assumptions]
    return {
        "release_id": release_id,
        "name": plan.name,
        "plan_sha256": plan.sha256,
        "kinds": [question.kind for question in plan.questions],
        "guarantee": model.guarantee(_joined([part.guarantee for part in parts])),
        **model.statement(),
        "unit": _joined(plan.units),
        "neighbours": _joined([part.neighbours for part in parts]),
        "n_users": n_users,
        **({} if plan.total is None else {"total_budget": float_above(plan.total)}),
        "worst_total": totals[plan.units[0]],
        **({} if len(totals) == 1 else {"worst_totals": totals}),
        **details,
        **({"exposure": exposure} if exposure else {}),
        "public": _once(["who took part", *answered.public, *public, _LAST]),
        "assumptions": _once([model.holder, *model.unproven, *answered.assumed, *assumed, _FURTHER]),
    }


_LAST = "this statement, the spec and the plan"
_FURTHER = "every further release of the same users spends its own budget on top of this one"


def _total(plan: Plan, unit: str, parts: Sequence[Part]) -> dict[str, Any]:
    """What anybody spends at most; an infinite ε is null."""
    counted = [part for question, part in zip(plan.questions, parts, strict=True) if question.unit == unit]
    nominal = plan.worst_total(unit)
    known = [part.exact for part in counted if part.exact is not None]
    exact = None if len(known) < len(counted) else min(sum(known, Fraction(0)), nominal)
    return {
        "nominal_epsilon": float_above(nominal),
        "exact_epsilon": None if exact is None else float_above(exact),
        "finite": exact is not None,
        "meaning": _joined([part.meaning for part in counted]),
    }


def _merge(details: dict[str, Any], more: dict[str, Any]) -> None:
    """Lists of several questions are one list, sums by level one sum; whatever else has a name of its own."""
    for key, value in more.items():
        if key not in details:
            details[key] = value
        elif isinstance(value, list):
            details[key] = [*details[key], *value]
        elif isinstance(value, dict) and all(isinstance(number, float) for number in value.values()):
            both = {**details[key], **value}
            details[key] = {name: details[key].get(name, 0.0) + value.get(name, 0.0) for name in both}
        elif details[key] is None:
            details[key] = value
        elif value is not None:
            details[key] = [*(details[key] if isinstance(details[key], list) else [details[key]]), value]


def _joined(texts: Sequence[str]) -> str:
    return "; ".join(_once(texts))


def _once(lines: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(lines))
