"""The gates of item sets. Arithmetic gates never refuse a correct release; the statistical ones share `plan.family`."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from pldp.questions.doubts import IMPOSSIBLE, Doubt
from pldp.questions.gate import TRUTH_ALPHA, Between, Gate, errors_usable, everyone_counted, exactly_once, kept, tails
from pldp.questions.items.checks import bernstein
from pldp.questions.items.combine import ItemsResult, overlong
from pldp.questions.items.levels import Floats
from pldp.questions.items.reports import Support
from pldp.questions.items.sampledrows import Sampled
from pldp.questions.items.singles import Singles, level_singles
from pldp.questions.items.tables import splits, supports
from pldp.questions.items.truth import Truth
from pldp.questions.question import Evidence, Rows
from pldp.questions.rows import height

if TYPE_CHECKING:
    from pldp.questions.items.question import Items


def gates(plan: Items, evidence: Evidence) -> tuple[Gate, ...]:
    """What must hold of items: exact bounds, complete and finite tables, and that everybody was counted."""
    result: ItemsResult = evidence.result
    itemsets, rules = evidence.tables["itemsets"], evidence.tables["rules"]
    singles = level_singles(plan, result.supports[0].counts, result.supports[0].n)
    noisy = _noisy(plan)
    looked_at = (
        *((row_epsilon(plan),) if plan.keeps_bounds or evidence.truth is None else ()),
        *((item_epsilon(plan),) if plan.sensitivity is not None and plan.protocol == "bounded" else ()),
        *((plausible(plan, singles),) if evidence.received is None else ()),
        *((levels_agree(plan, singles),) if plan.combination == "oc+" and len(plan.levels) > 1 else ()),
        *((lengths_agree(plan, result.supports[0]),) if _declared(plan) and evidence.received is None else ()),
        *((errors_usable(itemsets, ("support", "ci_low", "ci_high"), "support"),) if noisy else ()),
        *((rules_usable(rules),) if noisy and height(rules) else ()),
        items_complete(plan, itemsets),
        searched(plan, result),
        everyone_counted(
            [result.n_users], [evidence.expected(plan.places)], "All levels together have", evidence.whose
        ),
    )
    if evidence.truth is None:
        return looked_at
    return *looked_at, supports_true(plan, result, evidence.truth), *rules_true(plan, result, evidence.truth)


def row_epsilon(plan: Items) -> Gate:
    """From the plan alone: at every level the exact ratio of a whole row (or a value) is at most e to the level's
    bound."""
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
    """From the estimates of single items: no support lies outside 0 … 1 by more than its noise."""
    return tails(
        "supports_plausible",
        "No item's support lies further outside 0 … 1 than its noise explains, at any level.",
        [singles.outside()],
        _part(plan),
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
    """From the estimates of single items by level: they are of the same supports."""
    return tails(
        "levels_agree",
        "The levels estimate the same supports; where they do not, combination: sum needs no agreement.",
        [singles.agree()],
        _part(plan),
    )


def lengths_agree(plan: Items, support: Support) -> Gate:
    """Intervals rest on the declared lengths: reports tell how many rows are at most 0, 1, … items long."""
    chances = [1.0]
    below = np.cumsum([share for _, share in plan.row_lengths])
    for level, counts, n in zip(plan.levels, support.counts, support.n, strict=True):
        if not isinstance(level.channel, Sampled) or not n:
            continue
        sampling = level.channel.items.sampling
        places = np.arange(sampling.length)
        number = np.searchsorted([length for length, _ in plan.row_lengths], places, side="right")
        declared = np.where(number > 0, below[number - 1], 0.0)
        missing = np.maximum(declared - sampling.short_rows(counts, int(n)), 0)
        noise = float(sampling.noise_variance(np.array([0.0, 1.0])).max())
        # Who takes part is chance too.
        variance = (noise + declared * (1 - np.minimum(declared, 1))) / n
        chances += bernstein(missing, variance, np.full(places.size, (level.channel.largest(1) + 1) / n)).tolist()
    worst = min(chances) * (len(chances) - 1)
    return tails(
        "lengths_agree",
        "Rows are no longer than the spec's sampling.lengths declares; where they are, declare longer ones, or none.",
        [min(1.0, worst)],
        _part(plan),
    )


def _part(plan: Items) -> float:
    """Of the false alarms, which the statistical gates share."""
    return plan.family / (3 if _declared(plan) else 2)


def _declared(plan: Items) -> bool:
    return plan.protocol == "sampling" and plan.lengths is not None


def rules_usable(rules: Rows) -> Gate:
    """The published rows of `rules` have usable errors and intervals."""
    return errors_usable(rules, ("confidence", "ci_low", "ci_high"), "confidence", "rules_usable")


def items_complete(plan: Items, itemsets: Rows) -> Gate:
    """The published rows of `itemsets` hold every declared item once as a set of its own."""
    return exactly_once(
        "items_complete",
        "Every declared item is published exactly once as a set of its own, and no other.",
        list(plan.items),
        (items[0] for items, length in zip(itemsets["items"], itemsets["length"], strict=True) if length == 1),
    )


def searched(plan: Items, result: ItemsResult) -> Gate:
    """From the result: the length up to which sets were looked for is at least 1 and at most what was asked."""
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
    """Of every item and of every truly frequent set that was mined: which sets these are does not follow the noise.

    What a support may be understated by is no error; beyond it there is none to explain the rest.
    """
    probabilities: list[float] = []
    for sets in result.mined.by_length:
        rows = [tuple(row) for row in sets.items.tolist()]
        compared = np.array([len(row) == 1 or row in truth.frequent for row in rows], dtype=np.bool_)
        if not compared.any():
            continue
        true = np.array([truth.supports[row] for row in rows])
        away = _outside(true - sets.support, np.zeros_like(true), _hidden(plan, result, sets.items.shape[1], true))
        largest = _largest(plan, result, sets.items.shape[1])
        # A standard error without noise is that of open items: they are what they are.
        variance = np.maximum(sets.standard_error**2, 1e-18)
        by_set = bernstein(away, variance, np.full(len(rows), largest))
        probabilities += by_set[compared].tolist()
    return tails(
        "supports_true",
        "The supports of all items and of the truly frequent sets differ from those of all users by no more than their "
        "errors, and what they may be understated by, explain.",
        probabilities,
        TRUTH_ALPHA,
    )


def rules_true(plan: Items, result: ItemsResult, truth: Truth) -> tuple[Gate, ...]:
    """The same of rules in truly frequent sets: with the true confidence c, support(A ∪ B) − c · support(A) is zero but
    for noise and for what either is understated by."""
    probabilities: list[float] = []
    known = supports(result.mined)
    for (left, right), numbers in splits(result.mined):
        whole = tuple(sorted((*left, *right)))
        if whole not in truth.frequent or not numbers["confidence"] > -np.inf:
            continue
        confidence = truth.supports[whole] / truth.supports[left]
        below = known[left]
        away = known[whole].support - confidence * below.support
        # The error of a confidence is that of this difference, over the antecedent's support.
        variance = max((numbers["standard_error"] * below.support) ** 2, 1e-18)
        largest = _largest(plan, result, len(whole)) + confidence * _largest(plan, result, len(left))
        hidden = [_hidden(plan, result, len(side), np.array([truth.supports[side]])) for side in (whole, left)]
        beyond = _outside(np.array([away]), -hidden[0], confidence * hidden[1])
        probabilities += bernstein(beyond, np.array([variance]), np.array([largest])).tolist()
    if not probabilities:
        return ()
    sentence = "The confidences of rules in truly frequent sets differ from those of all users by no more than errors."
    return (tails("rules_true", sentence, probabilities, TRUTH_ALPHA),)


def _hidden(plan: Items, result: ItemsResult, length: int, true: Floats) -> Floats:
    """The most of what is true of sets that the reports cannot see."""
    rows = overlong(plan, result, length)
    return np.zeros_like(true) if rows is None else rows.hidden(true)


def _outside(distance: Floats, low: Floats, high: Floats) -> Floats:
    """How far outside low … high."""
    return distance - np.clip(distance, low, high)


def _largest(plan: Items, result: ItemsResult, length: int) -> float:
    """The most that one report moves a pooled estimate of sets of this length, whatever its weight."""
    n = result.supports[0 if length == 1 else plan.phases - 1].n
    return max(level.channel.largest(length) / size for level, size in zip(plan.levels, n, strict=True) if size)


def _noisy(plan: Items) -> bool:
    """Whether every item has an error: open ones have none, and are for evaluations."""
    return all(ratio is not None for level in plan.levels for ratio in level.channel.item_ratios or ())
