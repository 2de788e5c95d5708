"""The privacy statement of a release of frequent items: the exact ε of every item and of a whole row."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pldp.channels.exact import float_above, log_above
from pldp.privacy.trust import OPERATED
from pldp.questions.items.plan import Bits, ItemLevel, ItemsPlan, OneValue, Sampled
from pldp.questions.items.values import ValueChannel


def items_statement(plan: ItemsPlan, release_id: str, n_users: int) -> dict[str, Any]:
    """What is promised to whom, exactly; nothing in it depends on anybody's items. An infinite ε is null."""
    exact = [level.way.worst_ratio for level in plan.levels]
    finite = [ratio for ratio in exact if ratio is not None]
    worst = _epsilon(max(finite) if len(finite) == len(exact) else None)
    one = plan.holds == "one"
    return {
        "release_id": release_id,
        "name": plan.name,
        "kind": plan.kind,
        "plan_sha256": plan.sha256,
        "guarantee": OPERATED.guarantee(f"of a user's {'value' if one else 'whole row of items'}"),
        **OPERATED.statement(),
        "unit": plan.unit,
        "neighbours": f"any two {'values' if one else 'rows of items'} of a user, at the same level",
        "n_users": n_users,
        "protocol": plan.protocol,
        "worst_total": {
            "nominal_epsilon": float_above(plan.worst_total),
            "exact_epsilon": worst,
            "finite": worst is not None,
            "meaning": "a value of a user" if one else "a whole row of a user, however many items it holds",
        },
        "levels": [_level(plan, level) for level in plan.levels],
        "items": _items(plan),
        **({} if plan.origin is None else {"scores": _scores(plan, worst)}),
        "public": [
            "who took part, and how many users chose each level",
            "which level a user chose: reports of a level lie together",
            "the declared items" + ("" if plan.sensitivity is None else ", and how sensitive each is"),
            *(["which candidate sets were asked about: they follow from the first half's reports"] * (plan.phases > 1)),
            "this statement, the spec and the plan",
        ],
        "assumptions": [
            OPERATED.holder,
            *(["levels are chosen independently of the items"] * (len(plan.levels) > 1 and plan.combination == "oc+")),
            "every further release of the same users spends its own budget on top of this one",
        ],
    }


def _level(plan: ItemsPlan, level: ItemLevel) -> dict[str, Any]:
    ratio = level.way.worst_ratio
    return {
        "level": level.level,
        "mechanism": level.way.mechanism,
        "nominal_epsilon": float_above(level.budget),
        "bound": float_above(level.bound),
        "exact_epsilon": _epsilon(ratio),
        "finite": ratio is not None,
    }


def _items(plan: ItemsPlan) -> list[dict[str, Any]]:
    """By item its exact ε at each level: of its bit alone, or of this value against any other."""
    columns = [item_ratios(level.way) for level in plan.levels]
    if any(column is None for column in columns):
        return []  # sampled: a report is about the whole row, and no item has an ε of its own
    known = {ratio: _epsilon(ratio) for column in columns for ratio in column or ()}  # few differ
    spent = [tuple(known[ratio] for ratio in column or ()) for column in columns]
    return [
        {
            "item": item,
            **({} if plan.sensitivity is None else {"sensitivity": plan.sensitivity[number]}),
            "exact_epsilon": {level.level: own[number] for level, own in zip(plan.levels, spent, strict=True)},
        }
        for number, item in enumerate(plan.items)
    ]


def item_ratios(way: Bits | OneValue | Sampled) -> tuple[Fraction | None, ...] | None:
    match way:
        case Bits():
            return way.channel.ratios
        case OneValue():
            return _value_ratios(way.channel)
        case Sampled():
            return None


def _value_ratios(channel: ValueChannel) -> tuple[Fraction | None, ...]:
    """Of each value the worst ratio against any other, both ways; values alike are looked at once."""
    rows = list(zip(channel.redraw, channel.mass, strict=True))
    kinds: dict[tuple[int, int], list[int]] = {}
    for value, row in enumerate(rows):
        kinds.setdefault(row, []).append(value)
    worst: dict[tuple[int, int], Fraction | None] = {}
    for row, members in kinds.items():
        others = [next(z for z in own if z != members[0]) for own in kinds.values() if set(own) != {members[0]}]
        pairs = [(members[0], other) for other in others]
        ratios = [channel.pair_ratio(x, z) for pair in pairs for x, z in (pair, pair[::-1])]
        finite = [ratio for ratio in ratios if ratio is not None]
        worst[row] = max(finite) if len(finite) == len(ratios) else None
    return tuple(worst[row] for row in rows)


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
