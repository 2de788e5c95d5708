"""Item sets in a collection plan: one question about all that a person holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pldp.questions.items.reports import read_candidates
from pldp.questions.items.rowchannels import Bits, OneValue
from pldp.questions.items.sampledrows import Sampled
from pldp.questions.parts import Asked, box_json, channel_json

if TYPE_CHECKING:
    from pldp.questions.items.question import Items


def asked(plan: Items, spec: Any, adapted: bytes | None) -> Asked:
    """Of the first phase, or, once it is known what that led to, of the second."""
    phase = 0 if adapted is None else 1
    attribute = {
        "name": plan.place,
        "kind": "items" if plan.holds == "many" else "value",
        "values": list(plan.items),
        "label": plan.place,
        "labels": dict(spec.labels or {}),
    }
    sheets = [sheet for sheet in plan.sheets() if sheet.phase == phase]
    choices = [
        {
            "name": level.level,
            "epsilon": str(level.bound),
            "channel": _channel(level.channel, phase),
            "boxes": [box_json(sheet.path, plan.report_types(sheet))],
        }
        for level, sheet in zip(plan.levels, sheets, strict=True)
    ]
    question = {
        "name": plan.place,
        "kind": "items",
        "attributes": [plan.place],
        "phase": phase,
        "choices": choices,
    }
    if adapted is not None:
        question["candidates"] = [row for sets in read_candidates(adapted) for row in sets.tolist()]
    return Asked((attribute,), (question,))


def _channel(channel: Bits | OneValue | Sampled, phase: int) -> dict[str, Any]:
    if isinstance(channel, Sampled):
        part = channel.asked[phase]
        return {
            "mechanism": channel.kind,
            "n_values": str(part.n_values),
            "length": str(part.length),
            "protocol": channel_json(part.mechanism, part.parameters),
        }
    lists = ("keep_zero", "keep_one") if isinstance(channel, Bits) else ("redraw", "mass")
    return {"mechanism": channel.kind} | {name: [str(number) for number in getattr(channel, name)] for name in lists}
