"""Histograms in a collection plan: one question per histogram, about one attribute or the several that it crosses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pldp.questions.histograms.spec import Binned, Cells
from pldp.questions.parts import Asked, box_json, channel_json

if TYPE_CHECKING:
    from pldp.questions.histograms.question import Histograms


def asked(plan: Histograms, spec: Any, adapted: bytes | None) -> Asked:
    """What clients are asked: one value per attribute, and a level."""
    attributes: dict[str, dict[str, Any]] = {}
    for published in spec.published:
        for part in spec.parts(published):
            attributes.setdefault(part.name, _attribute(part))
    return Asked(tuple(attributes.values()), tuple(_question(plan, number) for number in range(len(plan.attributes))))


def _attribute(part: Cells) -> dict[str, Any]:
    wording = {"label": part.label or part.name, "labels": dict(part.labels or {})}
    if isinstance(part, Binned):
        return {"name": part.name, "kind": "bins", "values": list(part.values), "edges": list(part.cuts), **wording}
    return {"name": part.name, "kind": "value", "values": list(part.values), **wording}


def _question(plan: Histograms, number: int) -> dict[str, Any]:
    attribute, hidden = plan.attributes[number], plan.hidden
    sheets = {plan.places[sheet.path]: sheet for sheet in plan.sheets()}
    choices = []
    for code, level in enumerate(attribute.levels):
        sheet = sheets[number, None if hidden is not None else code]
        choices.append(
            {
                "name": level.level,
                "epsilon": str(level.budget),
                "channel": channel_json(level.mechanism, level.parameters),
                "boxes": [box_json(sheet.path, plan.report_types(sheet))],
            }
        )
    question = {"name": attribute.name, "kind": "histogram", "attributes": list(attribute.parts), "choices": choices}
    if hidden is None:
        return question
    group = "levels" if plan.one_level_for_all else f"levels={attribute.name}"
    about = {"group": group, "epsilon": str(hidden.budget), "channel": channel_json("krr", hidden.parameters)}
    return {**question, "hidden": about}
