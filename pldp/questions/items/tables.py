"""The published rows of item sets, rules and budgets, by column."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pldp.channels.exact import float_above, log_above
from pldp.questions.items.combine import ItemsResult, Mined
from pldp.questions.items.rules import RELIABLE, Rules
from pldp.questions.question import Rows
from pldp.questions.rows import stacked

if TYPE_CHECKING:
    from pldp.questions.items.question import Items

_SUPPORT = ("support", "standard_error", "ci_low", "ci_high", "probability_frequent", "understatement")
_CONFIDENCE = ("support", "confidence", "standard_error", "ci_low", "ci_high")

Sides = tuple[tuple[int, ...], tuple[int, ...]]
"""Antecedent and consequent of a rule, as positions in the declared items."""


def tables(plan: Items, result: ItemsResult) -> dict[str, Rows]:
    """Published rows of item sets and rules."""
    return {"itemsets": itemset_rows(plan, result), "rules": rule_rows(plan, result.mined)}


def itemset_rows(plan: Items, result: ItemsResult) -> Rows:
    """Every item, and every longer set that may be frequent; most supported first within a length."""
    parts = []
    for sets in result.mined.by_length:
        order = np.argsort(-sets.support, kind="stable")
        parts.append(
            {
                "items": [[plan.items[item] for item in row] for row in sets.items[order].tolist()],
                "length": sets.items.shape[1],
                **{column: getattr(sets, column)[order].tolist() for column in _SUPPORT},
                "n_users": result.n_users,
            }
        )
    return stacked(parts)


def rule_rows(plan: Items, mined: Mined) -> Rows:
    """Rules of at least the minimum confidence, the surest first.

    The lift, confidence over the consequent's support, is null where that support is not clear of zero.
    """
    known = supports(mined) if mined.rules else {}
    rows: list[dict[str, Any]] = []
    for (left, right), numbers in splits(mined):
        if not numbers["confidence"] >= plan.minimum_confidence:  # nor where there is none
            continue
        single = known.get(right)
        rows.append(
            {
                "antecedent": [plan.items[item] for item in left],
                "consequent": [plan.items[item] for item in right],
                **numbers,
                "lift": None if single is None or not single.reliable else numbers["confidence"] / single.support,
            }
        )
    rows.sort(key=lambda row: (-row["confidence"], -row["support"]))
    return {name: [row[name] for row in rows] for name in ("antecedent", "consequent", *_CONFIDENCE, "lift")}


def splits(mined: Mined) -> Iterator[tuple[Sides, dict[str, float]]]:
    """Every rule that was mined: its two sides as item numbers, and its confidence with error and interval by
    column."""
    for rules in mined.rules:
        if isinstance(rules, Rules):
            columns = [getattr(rules, column).tolist() for column in _CONFIDENCE]
            for number, row in enumerate(zip(*columns, strict=True)):
                yield rules.sides(number), dict(zip(_CONFIDENCE, row, strict=True))
        else:
            numbers = {column: float(getattr(rules, column)) for column in _CONFIDENCE}
            yield (rules.antecedent, rules.consequent), numbers


class Held(NamedTuple):
    """The estimated support of a set."""

    support: float
    standard_error: float

    @property
    def reliable(self) -> bool:
        return self.support > RELIABLE * self.standard_error


def supports(mined: Mined) -> dict[tuple[int, ...], Held]:
    """The support of every set that was mined with its error, by its item numbers."""
    return {
        tuple(row): Held(*numbers)
        for sets in mined.by_length
        for row, *numbers in zip(sets.items.tolist(), sets.support.tolist(), sets.standard_error.tolist(), strict=True)
    }


def budgets(plan: Items, result: ItemsResult | None) -> Rows:
    """One row per level: what the protocol was given for a user's whole row, and what that spends exactly.

    An infinite ε (an open item, in an evaluation or a plan) is null.
    """
    parts = []
    for number, level in enumerate(plan.levels):
        ratio = level.channel.worst_ratio
        parts.append(
            {
                "attribute": [plan.place],
                "level": level.level,
                "unit": plan.unit,
                "mechanism": f"{plan.protocol}: {level.channel.mechanism}",
                "nominal_epsilon": float_above(level.budget),
                "exact_epsilon": None if ratio is None else log_above(ratio),
                "share": plan.share,
                "n_users": None if result is None else int(result.n[number]),
            }
        )
    return stacked(parts)
