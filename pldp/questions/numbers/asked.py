"""Numbers in a collection plan: one question, of which everybody answers a sample."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pldp.questions.parts import Asked, box_json, channel_json

if TYPE_CHECKING:
    from pldp.questions.numbers.plan import NumberLevel
    from pldp.questions.numbers.question import Numbers


def asked(plan: Numbers, spec: Any, adapted: bytes | None) -> Asked:
    """What clients are asked: a number per attribute, of which a few are reported."""
    labels = {number.name: number.label for number in spec.number_attributes}
    attributes = {
        question.attribute: {
            "name": question.attribute,
            "kind": "number",
            "low": question.lower,
            "high": question.upper,
            "label": labels.get(question.attribute) or question.attribute,
        }
        for question in plan.questions
    }
    choices = [
        {
            "name": level.level,
            "epsilon": str(level.budget),
            "channel": _channel(level),
            "boxes": [box_json(sheet.path, plan.report_types(sheet))],
        }
        for level, sheet in zip(plan.levels, plan.sheets(), strict=True)
    ]
    question: dict[str, Any] = {
        "name": plan.place,
        "kind": "numbers",
        "attributes": list(attributes),
        "asked": [one.attribute for one in plan.questions],
        "importance": plan.importance,
        "choices": choices,
    }
    if plan.importance in ("none", "stated"):
        question["important"] = [one.important for one in plan.questions]
    return Asked(tuple(attributes.values()), (question,))


def _channel(level: NumberLevel) -> dict[str, Any]:
    classes = [
        {
            "units": str(one.units),
            "channels": [channel_json(each.mechanism, each.parameters) for each in one.mechanisms],
        }
        for one in level.classes
    ]
    return {"mechanism": "numbers", "sampled": str(level.sampled), "units": str(level.units), "classes": classes}
