"""The gates of a release of frequent items, each a sentence.

Together they refuse a correct release with probability at most `FAMILY`; an evaluation adds one against the truth.
"""

from __future__ import annotations

from dataclasses import dataclass

import great_expectations.expectations as gxe
import numpy as np
import pandas as pd

from pldp.expectations.gate import Gate, exactly_once
from pldp.expectations.shared import (
    TRUTH_ALPHA,
    enough_users,
    errors_usable,
    everyone_counted,
    kept,
    partitions_once,
    tails,
)
from pldp.questions.histograms.plan import FAMILY
from pldp.questions.items.checks import bernstein
from pldp.questions.items.plan import Bits, ItemsPlan, OneValue, Sampled
from pldp.questions.items.singles import Singles, level_singles
from pldp.questions.items.statement import item_ratios
from pldp.tasks.items.count import Counted, Support
from pldp.tasks.items.mine import Mined
from pldp.tasks.items.truth import Truth


@dataclass(frozen=True)
class RowEvidence:
    """What a run produced, for the gates to look at. `truth` only in an evaluation."""

    plan: ItemsPlan
    n_users: int
    partitions: int
    files: tuple[Counted, ...]
    supports: tuple[Support, ...]
    """One a phase."""
    mined: Mined
    itemsets: pd.DataFrame
    rules: pd.DataFrame
    """Both as they will be published."""
    truth: Truth | None = None


def item_gates(evidence: RowEvidence) -> tuple[Gate, ...]:
    plan = evidence.plan
    singles = level_singles(plan, evidence.supports[0].counts, evidence.supports[0].n)
    gates = (
        *((row_epsilon(plan),) if plan.keeps_bounds or evidence.truth is None else ()),
        *((item_epsilon(plan),) if plan.sensitivity is not None and plan.protocol == "bounded" else ()),
        plausible(singles),
        *((levels_agree(singles),) if plan.combination == "oc+" and len(plan.levels) > 1 else ()),
        *((errors_usable(evidence.itemsets, ("support", "ci_low", "ci_high"), "support"),) if _noisy(plan) else ()),
        *((rules_usable(evidence.rules),) if _noisy(plan) and len(evidence.rules) else ()),
        items_complete(plan, evidence.itemsets),
        searched(evidence),
        partitions_once(
            "level",
            ((name,) for name in plan.level_names),
            evidence.partitions,
            ((file.level, file.partition) for file in evidence.files),
        ),
        everyone_counted(
            [sum(int(support.n.sum()) for support in evidence.supports)], evidence.n_users, "All levels together have"
        ),
        enough_users(evidence.n_users, plan.minimum_users),
    )
    return gates if evidence.truth is None else (*gates, supports_true(evidence, evidence.truth))


def row_epsilon(plan: ItemsPlan) -> Gate:
    spent = [(level.way.worst_ratio, level.bound) for level in plan.levels]
    finite = [(ratio, bound) for ratio, bound in spent if ratio is not None]
    if len(finite) < len(spent):
        raise ValueError("an open item has no finite ε, and no release goes this far")
    return kept(
        "row_epsilon",
        f"The exact worst-case ratio of {_row(plan)} is at most e to the level's bound, compared as rational numbers.",
        finite,
    )


def item_epsilon(plan: ItemsPlan) -> Gate:
    """What an item of each sensitivity is promised, kept."""
    spent = []
    for level in plan.levels:
        for ratio, own in zip(item_ratios(level.way) or (), plan.promises(level) or (), strict=True):
            if ratio is None:
                raise ValueError("an open item has no finite ε, and no release goes this far")
            spent.append((ratio, own))
    return kept(
        "item_epsilon",
        "The exact worst-case ratio of every item is at most e to what its sensitivity is promised.",
        spent,
    )


def plausible(singles: Singles) -> Gate:
    return tails(
        "supports_plausible",
        "No item's support lies further outside 0 … 1 than its noise explains, at any level.",
        [singles.outside()],
        FAMILY / 2,
    )


def levels_agree(singles: Singles) -> Gate:
    return tails(
        "levels_agree",
        "The levels estimate the same supports; where they do not, combination: sum needs no agreement.",
        [singles.agree()],
        FAMILY / 2,
    )


def rules_usable(rules: pd.DataFrame) -> Gate:
    return errors_usable(rules, ("confidence", "ci_low", "ci_high"), "confidence", "rules_usable")


def items_complete(plan: ItemsPlan, rows: pd.DataFrame) -> Gate:
    singles = rows.loc[rows["length"] == 1, "items"]
    return exactly_once(
        "items_complete",
        "Every declared item is published exactly once as a set of its own, and no other.",
        list(plan.items),
        (items[0] for items in singles),
    )


def searched(evidence: RowEvidence) -> Gate:
    reached = evidence.mined.searched
    return Gate(
        "searched",
        "Sets were looked for up to the length observed here; those asked for and longer would be made of noise, too "
        "many, or none.",
        pd.DataFrame({"length": [reached]}),
        (gxe.ExpectColumnValuesToBeBetween(column="length", min_value=1, max_value=evidence.plan.asked_length),),
        observed=float(reached),
        bound=float(evidence.plan.asked_length),
    )


def supports_true(evidence: RowEvidence, truth: Truth) -> Gate:
    """Of every item and of every truly frequent set that was found: which sets these are does not follow the noise."""
    plan, found = evidence.plan, []
    for level in evidence.mined.found:
        rows = [tuple(row) for row in level.items.tolist()]
        asked = np.array([len(row) == 1 or row in truth.frequent for row in rows], dtype=np.bool_)
        if not asked.any():
            continue
        true = np.array([truth.expected[row] for row in rows])
        largest = _largest(evidence, level.items.shape[1])
        # A standard error without noise is that of open items: they are what they are.
        variance = np.maximum(level.standard_error**2, 1e-18)
        found += bernstein(level.support - true, variance, np.full(len(rows), largest))[asked].tolist()
    return tails(
        "supports_true",
        f"The supports of all items and of the truly frequent sets differ from {'those' if _whole(plan) else 'what'} "
        f"{'of all users' if _whole(plan) else 'sampling can see of them'} by no more than their errors explain.",
        found,
        TRUTH_ALPHA,
    )


def _largest(evidence: RowEvidence, length: int) -> float:
    """The most that one report moves a pooled estimate of sets of this length, whatever its weight."""
    most = []
    for number, level in enumerate(evidence.plan.levels):
        way, phase = level.way, 0
        match way:
            case Bits():
                size = float(np.prod(np.sort(1 / way.channel.gap)[-length:]))
            case OneValue():
                size = float(np.abs(way.channel.inverse).max()) + 1
            case Sampled():
                phase = 0 if length == 1 else 1
                sampling = way.phases[phase].sampling
                size = sampling.length / sampling.protocol.gap
        n = int(evidence.supports[phase].n[number])
        if n:
            most.append(size / n)
    return max(most)


def _noisy(plan: ItemsPlan) -> bool:
    """Whether every item has an error: open ones have none, and are for evaluations."""
    return all(ratio is not None for level in plan.levels for ratio in item_ratios(level.way) or ())


def _whole(plan: ItemsPlan) -> bool:
    return plan.protocol != "sampling"


def _row(plan: ItemsPlan) -> str:
    return "a user's value" if plan.holds == "one" else "a user's whole row of items"
