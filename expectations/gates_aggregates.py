"""The gates of a release of aggregates, each a sentence. None of them refuses a correct release.

An evaluation adds one that looks at the truth, and may be wrong with the probability it states.
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
from pldp.questions.aggregates.budgets import TICK_BITS
from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.checks import noise_tails
from pldp.questions.aggregates.plan import RESIDUAL, AggregatesPlan
from pldp.questions.aggregates.totals import Sums
from pldp.tasks.aggregates.totals import ItemTally


@dataclass(frozen=True)
class ItemEvidence:
    """What a run produced, for the gates to look at. `truth` (totals in grid units) only in an evaluation."""

    plan: AggregatesPlan
    n_users: int
    partitions: int
    tallies: tuple[ItemTally, ...]
    sums: dict[str, Sums]
    rows: pd.DataFrame
    """The rows of the table as they will be published."""
    truth: Units | None = None


def aggregate_gates(evidence: ItemEvidence) -> tuple[Gate, ...]:
    plan = evidence.plan
    gates = (
        attribute_epsilon(plan),
        overall_epsilon(plan),
        pooled_epsilon(plan),
        optimal(plan),
        errors_usable(evidence.rows, ("total", "ci_low", "ci_high"), "total"),
        totals_complete(plan, evidence.rows),
        partitions_once(
            "provider",
            ((provider.name,) for provider in plan.providers),
            evidence.partitions,
            ((tally.provider, tally.partition) for tally in evidence.tallies),
        ),
        everyone_counted(
            [int(sums.users.sum()) for sums in evidence.sums.values()], evidence.n_users, "Every provider has"
        ),
        enough_users(evidence.n_users, plan.minimum_users),
    )
    return gates if evidence.truth is None else (*gates, totals_true(evidence, evidence.truth))


def attribute_epsilon(plan: AggregatesPlan) -> Gate:
    budgets = [profile.budgets for profile in plan.profiles]
    spent = [pair for mechanism in plan.mechanisms.values() for pair in mechanism.tightest(budgets)]
    return kept(
        "attribute_epsilon",
        f"Towards every provider, the exact worst-case ratio of {plan.protected} on every attribute is at most e to "
        "the user's budget for it, compared as rational numbers.",
        spent,
    )


def overall_epsilon(plan: AggregatesPlan) -> Gate:
    spent = [(plan.worst_ratio(provider.name), provider.epsilon) for provider in plan.providers]
    return kept(
        "overall_epsilon",
        f"The exact worst-case ratio of {plan.protected} over all attributes together is at most e to the provider's "
        "epsilon, compared as rational numbers, whatever the profile.",
        spent,
    )


def pooled_epsilon(plan: AggregatesPlan) -> Gate:
    return kept(
        "pooled_epsilon",
        f"All providers together learn no more about {plan.protected} than the sum of their budgets, which is what was "
        "recorded as spent.",
        [(plan.pooled_ratio, plan.worst_total)],
    )


def optimal(plan: AggregatesPlan) -> Gate:
    residuals = [service.residual for provider in plan.providers for service in provider.services]
    return Gate(
        "optimal",
        "Every profile's budgets are spent best: its optimality conditions hold to a relative 1e-8, before spends are "
        "rounded down.",
        pd.DataFrame({"residual": residuals}),
        (
            gxe.ExpectColumnValuesToNotBeNull(column="residual"),
            gxe.ExpectColumnValuesToBeBetween(column="residual", max_value=RESIDUAL, strict_max=True),
        ),
        observed=max(residuals),
        bound=RESIDUAL,
    )


def totals_complete(plan: AggregatesPlan, rows: pd.DataFrame) -> Gate:
    declared = [(provider.name, attribute) for provider in plan.providers for attribute in plan.attributes]
    return exactly_once(
        "totals_complete",
        "Every attribute's total towards every provider is published exactly once, and no other.",
        declared,
        zip(rows["provider"], rows["attribute"], strict=True),
    )


def totals_true(evidence: ItemEvidence, truth: Units) -> Gate:
    plan = evidence.plan
    found = [
        noise_tails(sums.reports - truth, plan.mechanisms[name].ticks / float(1 << TICK_BITS), sums.users)
        for name, sums in evidence.sums.items()
    ]
    return tails(
        "totals_true",
        "The totals differ from the truth by no more than their noise explains, every attribute and provider.",
        np.concatenate(found).tolist(),
        TRUTH_ALPHA,
    )
