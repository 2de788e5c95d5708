"""The gates of item sets. Arithmetic gates never refuse a correct release; the statistical ones share `plan.family`."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from pldp.questions.doubts import IMPOSSIBLE, Doubt
from pldp.questions.gate import TRUTH_ALPHA, Between, Gate, errors_usable, everyone_counted, exactly_once, kept, tails
from pldp.questions.items.checks import bernstein
from pldp.questions.items.combine import ItemsResult
from pldp.questions.items.singles import Singles, level_singles
from pldp.questions.items.truth import Truth
from pldp.questions.question import Evidence, Rows
from pldp.questions.rows import height

if TYPE_CHECKING:
    from pldp.questions.items.question import Items


def gates(plan: Items, evidence: Evidence) -> tuple[Gate, ...]:
    result: ItemsResult = evidence.result
    itemsets, rules = evidence.tables["itemsets"], evidence.tables["rules"]
    singles = level_singles(plan, result.supports[0].counts, result.supports[0].n)
    noisy = _noisy(plan)
    looked_at = (
        *((row_epsilon(plan),) if plan.keeps_bounds or evidence.truth is None else ()),
        *((item_epsilon(plan),) if plan.sensitivity is not None and plan.protocol == "bounded" else ()),
        *((plausible(plan, singles),) if evidence.received is None else ()),
        *((levels_agree(plan, singles),) if plan.combination == "oc+" and len(plan.levels) > 1 else ()),
        *((errors_usable(itemsets, ("support", "ci_low", "ci_high"), "support"),) if noisy else ()),
        *((rules_usable(rules),) if noisy and height(rules) else ()),
        items_complete(plan, itemsets),
        searched(plan, result),
        everyone_counted(
            [result.n_users], [evidence.expected(plan.places)], "All levels together have", evidence.whose
        ),
    )
    return looked_at if evidence.truth is None else (*looked_at, supports_true(plan, result, evidence.truth))


def row_epsilon(plan: Items) -> Gate:
    row = "a user's value" if plan.holds == "one" else "a user's whole row of items"
    return kept(
        "row_epsilon",
        f"The exact worst-case ratio of {row} is at most e to the level's bound, compared as rational numbers.",
        [(_finite(level.channel.worst_ratio), level.bound) for level in plan.levels],
    )


def item_epsilon(plan: Items) -> Gate:
    """What an item of each sensitivity is promised, kept."""
    return kept(
        "item_epsilon",
        "The exact worst-case ratio of every item is at most e to what its sensitivity is promised.",
        [
            (_finite(ratio), promise)
            for level in plan.levels
            for ratio, promise in zip(level.channel.item_ratios or (), plan.promises(level) or (), strict=True)
        ],
    )


def _finite(ratio: Fraction | None) -> Fraction:
    if ratio is None:
        raise ValueError("an open item has no finite ε, and no release goes this far")
    return ratio


def plausible(plan: Items, singles: Singles) -> Gate:
    return tails(
        "supports_plausible",
        "No item's support lies further outside 0 … 1 than its noise explains, at any level.",
        [singles.outside()],
        plan.family / 2,
    )


def impossible(plan: Items, evidence: Evidence, alpha: float) -> tuple[Doubt, ...]:
    """Of clients' reports: an item's support so far outside 0 … 1 withholds them all, which come of the same rows."""
    support = evidence.result.supports[0]
    singles = level_singles(plan, support.counts, support.n)
    chance = singles.outside()
    if chance >= alpha:
        return ()
    away = np.maximum(-singles.support, singles.support - 1)
    worst = float(singles.support.flat[int(away.argmax())])
    return (Doubt(plan.place, None, IMPOSSIBLE, worst, float(worst > 1), chance, withheld=True),)


def levels_agree(plan: Items, singles: Singles) -> Gate:
    return tails(
        "levels_agree",
        "The levels estimate the same supports; where they do not, combination: sum needs no agreement.",
        [singles.agree()],
        plan.family / 2,
    )


def rules_usable(rules: Rows) -> Gate:
    return errors_usable(rules, ("confidence", "ci_low", "ci_high"), "confidence", "rules_usable")


def items_complete(plan: Items, itemsets: Rows) -> Gate:
    return exactly_once(
        "items_complete",
        "Every declared item is published exactly once as a set of its own, and no other.",
        list(plan.items),
        (items[0] for items, length in zip(itemsets["items"], itemsets["length"], strict=True) if length == 1),
    )


def searched(plan: Items, result: ItemsResult) -> Gate:
    reached = result.mined.searched
    return Gate(
        "searched",
        "Sets were looked for up to the length observed here; those asked for and longer would be made of noise, too "
        "many, or none.",
        {"length": [reached]},
        (Between("length", low=1, high=plan.asked_length),),
        observed=float(reached),
        bound=float(plan.asked_length),
    )


def supports_true(plan: Items, result: ItemsResult, truth: Truth) -> Gate:
    """Of every item and of every truly frequent set that was mined: which sets these are does not follow the noise."""
    probabilities: list[float] = []
    for sets in result.mined.by_length:
        rows = [tuple(row) for row in sets.items.tolist()]
        compared = np.array([len(row) == 1 or row in truth.frequent for row in rows], dtype=np.bool_)
        if not compared.any():
            continue
        true = np.array([truth.expected[row] for row in rows])
        largest = _largest(plan, result, sets.items.shape[1])
        # A standard error without noise is that of open items: they are what they are.
        variance = np.maximum(sets.standard_error**2, 1e-18)
        by_set = bernstein(sets.support - true, variance, np.full(len(rows), largest))
        probabilities += by_set[compared].tolist()
    whole = plan.protocol != "sampling"
    return tails(
        "supports_true",
        f"The supports of all items and of the truly frequent sets differ from {'those' if whole else 'what'} "
        f"{'of all users' if whole else 'sampling can see of them'} by no more than their errors explain.",
        probabilities,
        TRUTH_ALPHA,
    )


def _largest(plan: Items, result: ItemsResult, length: int) -> float:
    """The most that one report moves a pooled estimate of sets of this length, whatever its weight."""
    n = result.supports[0 if length == 1 else plan.phases - 1].n
    return max(level.channel.largest(length) / size for level, size in zip(plan.levels, n, strict=True) if size)


def _noisy(plan: Items) -> bool:
    """Whether every item has an error: open ones have none, and are for evaluations."""
    return all(ratio is not None for level in plan.levels for ratio in level.channel.item_ratios or ())
