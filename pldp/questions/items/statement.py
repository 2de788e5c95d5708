"""The part of the privacy statement that is about items: the exact ε of every item and of a whole row."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pldp.channels.exact import float_above, log_above
from pldp.estimate.capped import cap_sentence
from pldp.questions.items.plan import ItemLevel, ItemsPlan


def items_statement(plan: ItemsPlan) -> dict[str, Any]:
    """What is promised to whom, exactly; nothing in it depends on anybody's items. An infinite ε is null."""
    exact = [level.channel.worst_ratio for level in plan.levels]
    finite = [ratio for ratio in exact if ratio is not None]
    worst = _epsilon(max(finite) if len(finite) == len(exact) else None)
    one = plan.holds == "one"
    return {
        "kind": plan.kind,
        "unit": plan.unit,
        "protects": f"a user's {'value' if one else 'whole row of items'}",
        "neighbours": f"any two {'values' if one else 'rows of items'} of a user, at the same level",
        "protocol": plan.protocol,
        "worst_total": {
            "nominal_epsilon": float_above(plan.worst_total),
            "exact_epsilon": worst,
            "finite": worst is not None,
            "meaning": "a value of a user" if one else "a whole row of a user, however many items it holds",
        },
        "levels": [_level(level) for level in plan.levels],
        "items": item_statements(plan),
        **({} if plan.origin is None else {"scores": _scores(plan, worst)}),
        "public": [
            "who took part, and how many users chose each level",
            "which level a user chose: reports of a level lie together",
            "the declared items" + ("" if plan.sensitivity is None else ", and how sensitive each is"),
            *(["which candidate sets were asked about: they follow from the first half's reports"] * (plan.phases > 1)),
        ],
        "assumptions": [
            *filter(None, [plan.covered, cap_sentence(plan.level_weight_cap)]),
            *([plan.row_limits] if plan.row_limits else []),
        ],
    }


def _level(level: ItemLevel) -> dict[str, Any]:
    ratio = level.channel.worst_ratio
    return {
        "level": level.level,
        "mechanism": level.channel.mechanism,
        "nominal_epsilon": float_above(level.budget),
        "bound": float_above(level.bound),
        "exact_epsilon": _epsilon(ratio),
        "finite": ratio is not None,
    }


def item_statements(plan: ItemsPlan) -> list[dict[str, Any]]:
    """By item its exact ε at each level: of its bit alone, or of this value against any other."""
    ratios = {level.level: level.channel.item_ratios for level in plan.levels}
    epsilons = {ratio: _epsilon(ratio) for column in ratios.values() for ratio in column or ()}  # few differ
    spent = {level: [epsilons[ratio] for ratio in column] for level, column in ratios.items() if column is not None}
    if len(spent) < len(ratios):
        return []  # sampled: a report is about the whole row, and no item has an ε of its own
    return [
        {
            "item": item,
            **({} if plan.sensitivity is None else {"sensitivity": plan.sensitivity[number]}),
            "exact_epsilon": {level: column[number] for level, column in spent.items()},
        }
        for number, item in enumerate(plan.items)
    ]


def _scores(plan: ItemsPlan, worst: float | None) -> dict[str, Any]:
    """What collecting the scores spent on top, for those who took part in both."""
    if plan.origin is None:
        return {}
    spent = float_above(plan.origin.epsilon)
    return {
        "release": plan.origin.release,
        "epsilon": spent,
        "with_this_release": None if worst is None else spent + worst,
        "meaning": "a user who also scored the items has spent both",
    }


def _epsilon(ratio: Fraction | None) -> float | None:
    return None if ratio is None else log_above(ratio)
