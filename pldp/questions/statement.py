"""The privacy statement that goes with every release, for machines and people: the questions' parts put together.

A promise is about a unit and compares neighbours. Questions with the same ones make one promise, whose budgets add up
by level; a release that makes several has a part for each under `questions`, which reads as the statement of a release
that makes this promise alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pldp.channels.exact import float_above
from pldp.privacy.exposure import exposures
from pldp.privacy.trust import trust_model

if TYPE_CHECKING:
    from pldp.questions.parts import Rows
    from pldp.questions.plan import Plan
    from pldp.questions.question import Part, Question

_LAST = "this statement, the spec and the plan"
_FURTHER = "every further release of the same users spends its own budget on top of this one"
_SEVERAL = "a promise of its own for each of the questions"
_WEAKEST = "whoever made the weakest choice everywhere; nobody spends more"


@dataclass(frozen=True)
class _Promise:
    """Questions that promise the same, and their parts."""

    questions: tuple[Question, ...]
    parts: tuple[Part, ...]

    @property
    def unit(self) -> str:
        return self.questions[0].unit

    def guarantee(self) -> str:
        return _joined([part.guarantee for part in self.parts])

    def total(self) -> dict[str, Any]:
        return _total(self.questions, self.parts, _joined([part.meaning for part in self.parts]))

    def details(self) -> dict[str, Any]:
        details: dict[str, Any] = {}
        for part in self.parts:
            _merge(details, part.details)
        exposure = exposures(self.questions)
        return {**details, **({"exposure": exposure} if exposure else {})}

    def public(self) -> list[str]:
        return [line for part in self.parts for line in part.public]

    def assumptions(self) -> list[str]:
        return [line for part in self.parts for line in part.assumptions]

    def statement(self) -> dict[str, Any]:
        """As a part of a release with several."""
        return {
            "kinds": _kinds(self.questions),
            "guarantee": self.guarantee(),
            "unit": self.unit,
            "neighbours": self.parts[0].neighbours,
            "worst_total": self.total(),
            **self.details(),
            "public": _once(self.public()),
            "assumptions": _once(self.assumptions()),
        }


def privacy_statement(plan: Plan, release_id: str, n_users: int) -> dict[str, Any]:
    """What is promised to whom, exactly; nothing in it depends on anybody's values."""
    model, promises = trust_model(plan.perturbed_by), _promises(plan)
    alone = promises[0] if len(promises) == 1 else None
    public = [] if alone is None else alone.public()
    assumed = [] if alone is None else alone.assumptions()
    return {
        "release_id": release_id,
        "name": plan.name,
        "plan_sha256": plan.sha256,
        "kinds": _kinds(plan.questions),
        "guarantee": model.guarantee(_SEVERAL if alone is None else alone.guarantee()),
        **model.statement(),
        **({} if alone is None else {"unit": alone.unit, "neighbours": alone.parts[0].neighbours}),
        "n_users": n_users,
        **({} if plan.total is None else {"total_budget": float_above(plan.total)}),
        **({"worst_totals": totals(plan)} if alone is None else {"worst_total": alone.total(), **alone.details()}),
        **({"questions": [promise.statement() for promise in promises]} if alone is None else {}),
        "public": _once(["who took part", *model.partial.public, *public, _LAST]),
        "assumptions": _once([model.holder, *model.unproven, *model.partial.assumed, *assumed, _FURTHER]),
    }


def totals(plan: Plan) -> dict[str, dict[str, Any]]:
    """The most that one of each unit spends on all questions about it together; units are never added."""
    by_unit = {}
    for unit in plan.units:
        counted = [question for question in plan.questions if question.unit == unit]
        parts = [question.statement(plan.perturbed_by) for question in counted]
        kinds = _listed(_kinds(counted))
        meaning = parts[0].meaning if len(parts) == 1 else f"{kinds} together: {_WEAKEST}"
        by_unit[unit] = _total(counted, parts, meaning)
    return by_unit


def spend_rows(plan: Plan) -> Rows:
    """The same as rows of the table spends."""
    by_unit = totals(plan)
    return {
        "unit": list(by_unit),
        "worst_epsilon": [total["nominal_epsilon"] for total in by_unit.values()],
        "exact_epsilon": [total["exact_epsilon"] for total in by_unit.values()],
    }


def _promises(plan: Plan) -> list[_Promise]:
    groups: dict[tuple[str, str], list[tuple[Question, Part]]] = {}
    for question in plan.questions:
        part = question.statement(plan.perturbed_by)
        groups.setdefault((question.unit, part.neighbours), []).append((question, part))
    return [_Promise(tuple(q for q, _ in group), tuple(part for _, part in group)) for group in groups.values()]


def _total(questions: Sequence[Question], parts: Sequence[Part], meaning: str) -> dict[str, Any]:
    """What anybody spends at most; an infinite ε is null."""
    nominal = sum((question.worst_total for question in questions), Fraction(0))
    known = [part.exact for part in parts if part.exact is not None]
    exact = None if len(known) < len(parts) else min(sum(known, Fraction(0)), nominal)
    return {
        "nominal_epsilon": float_above(nominal),
        "exact_epsilon": None if exact is None else float_above(exact),
        "finite": exact is not None,
        "meaning": meaning,
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


def _kinds(questions: Sequence[Question]) -> list[str]:
    return [question.kind for question in questions]


def _listed(names: Sequence[str]) -> str:
    *first, last = _once(names)
    return f"{', '.join(first)} and {last}" if first else last


def _joined(texts: Sequence[str]) -> str:
    return "; ".join(_once(texts))


def _once(lines: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(lines))
