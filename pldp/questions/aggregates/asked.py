"""Aggregates in a collection plan: one question, with a report of its own for every provider."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pldp.questions.parts import Asked, box_json

if TYPE_CHECKING:
    from pldp.questions.aggregates.question import Aggregates


def asked(plan: Aggregates, spec: Any, adapted: bytes | None) -> Asked:
    """What clients are asked: a total per attribute, reported once to every provider."""
    labels = spec.labels or {}
    attributes = tuple(
        {"name": name, "kind": "total", "grid": str(step), "label": labels.get(name, name)}
        for name, step in zip(plan.attributes, plan.grid, strict=True)
    )
    place = {law.ticks: str(number) for number, law in enumerate(plan.laws)}
    boxes = [box_json(sheet.path, plan.report_types(sheet)) for sheet in plan.sheets()]
    spent = sum((provider.epsilon for provider in plan.providers), Fraction(0))
    choices = []
    for code, profile in enumerate(plan.profiles):
        laws = [[place[ticks] for ticks in provider.services[code].ticks] for provider in plan.providers]
        channel = {"mechanism": "totals", "profile": str(code), "laws": laws}
        choices.append({"name": profile.name, "epsilon": str(spent), "channel": channel, "boxes": boxes})
    question = {
        "name": plan.kind,
        "kind": "totals",
        "attributes": list(plan.attributes),
        "unit": plan.unit,
        "cap": plan.cap,
        "catalogue_sha256": plan.catalogue_sha256,
        "laws": [{"digits": [str(digit) for digit in law.digits], "tail": str(law.tail)} for law in plan.laws],
        "choices": choices,
    }
    return Asked(attributes, (question,))
