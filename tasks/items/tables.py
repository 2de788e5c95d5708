"""The rows of item sets, rules and their budgets, as frames of the declared tables."""

from __future__ import annotations

import numpy as np
import polars as pl

from pldp.channels.exact import float_above, log_above
from pldp.channels.protocol import Counts
from pldp.questions.items.mining import Found
from pldp.questions.items.plan import ItemsPlan
from pldp.questions.items.rules import Rules
from pldp.questions.items.sampled import SampledRule
from pldp.tables.common import BUDGETS
from pldp.tables.items import ITEMSETS, RULES
from pldp.tasks.items.mine import Mined
from pldp.tasks.tables import from_rows, stacked

ROW = "items"
"""What budgets are about: a user's whole row, or the one value."""

_NUMBERS = ("support", "standard_error", "ci_low", "ci_high", "probability_frequent")


def itemset_rows(plan: ItemsPlan, mined: Mined, n_users: int) -> pl.DataFrame:
    """Every item, and every longer set that may be frequent; most supported first within a length."""
    names = np.array(plan.items, dtype=object)
    parts = []
    for level in mined.found:
        order = np.argsort(-level.support, kind="stable")
        parts.append(
            {
                "items": [list(names[row]) for row in level.items[order]],
                "length": level.items.shape[1],
                **{column: getattr(level, column)[order] for column in _NUMBERS},
                "n_users": n_users,
            }
        )
    return stacked(ITEMSETS, parts)


def rule_rows(plan: ItemsPlan, mined: Mined) -> pl.DataFrame:
    """Rules of at least the minimum confidence, the surest first.

    The lift, confidence over the consequent's support, is null where that support is not clear of zero.
    """
    names = plan.items
    known = _supports(mined.found)
    rows = []
    for left, right, numbers in _splits(mined):
        if not numbers["confidence"] >= plan.minimum_confidence:  # nor where there is none
            continue
        support, error = known.get(right, (0.0, 1.0))
        lift = numbers["confidence"] / support if support > 3 * error else None
        sides = {"antecedent": [names[i] for i in left], "consequent": [names[i] for i in right]}
        rows.append({**sides, **numbers, "lift": lift})
    return from_rows(RULES, rows).sort("confidence", "support", descending=True, maintain_order=True)


Split = tuple[tuple[int, ...], tuple[int, ...], dict[str, float]]


def _splits(mined: Mined) -> list[Split]:
    fields = ("support", "confidence", "standard_error", "ci_low", "ci_high")
    found: list[Split] = []
    for rules in mined.rules:
        match rules:
            case Rules():
                columns = [getattr(rules, field).tolist() for field in fields]
                for number, row in enumerate(zip(*columns, strict=True)):
                    found.append((*rules.sides(number), dict(zip(fields, row, strict=True))))
            case SampledRule():
                own = {field: float(getattr(rules, field)) for field in fields}
                found.append((rules.antecedent, rules.consequent, own))
    return found


def _supports(found: tuple[Found, ...]) -> dict[tuple[int, ...], tuple[float, float]]:
    return {
        tuple(row): (support, error)
        for level in found
        for row, support, error in zip(
            level.items.tolist(), level.support.tolist(), level.standard_error.tolist(), strict=True
        )
    }


def row_budget_rows(plan: ItemsPlan, n: Counts | None = None) -> pl.DataFrame:
    """One row a level: what the protocol was given for a user's whole row, and what that spends exactly.

    An infinite ε (an open item, in an evaluation or a forecast) is null.
    """
    rows = []
    for number, level in enumerate(plan.levels):
        ratio = level.way.worst_ratio
        rows.append(
            {
                "attribute": ROW,
                "level": level.level,
                "unit": plan.unit,
                "mechanism": f"{plan.protocol}: {level.way.mechanism}",
                "nominal_epsilon": float_above(level.budget),
                "exact_epsilon": None if ratio is None else log_above(ratio),
                "share": 1.0,
                "n_users": None if n is None else int(n[number]),
            }
        )
    return from_rows(BUDGETS, rows)
