"""The gates of a release of aggregates, each a sentence. None of them refuses a correct release.

An evaluation adds one that looks at the truth, and may be wrong with the probability it states.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction

import great_expectations.expectations as gxe
import numpy as np
import pandas as pd

from expectations.gate import Gate, exactly_once
from pldp.aggregates.budgets import TICK_BITS
from pldp.aggregates.catalogue import Units
from pldp.aggregates.checks import noise_tails
from pldp.aggregates.plan import RESIDUAL, AggregatesPlan
from pldp.aggregates.totals import Sums
from pldp.exact import float_above, log_above, within
from tasks.aggregates.totals import ItemTally

TRUTH_ALPHA = 0.01
Spent = Iterable[tuple[Fraction, Fraction]]


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
        errors_usable(evidence.rows),
        totals_complete(plan, evidence.rows),
        partitions_once(evidence),
        everyone_counted(evidence),
        enough_users(evidence),
    )
    return gates if evidence.truth is None else (*gates, totals_true(evidence, evidence.truth))


def attribute_epsilon(plan: AggregatesPlan) -> Gate:
    mechanisms = plan.mechanisms
    spent = [
        pair
        for provider in plan.providers
        for number, profile in enumerate(plan.profiles)
        for pair in zip(mechanisms[provider.name].attribute_ratios(number), profile.budgets, strict=True)
    ]
    return _kept(
        "attribute_epsilon",
        "Towards every provider, the exact worst-case ratio of one item on every attribute is at most e to the user's "
        "budget for it, compared as rational numbers.",
        spent,
    )


def overall_epsilon(plan: AggregatesPlan) -> Gate:
    mechanisms = plan.mechanisms
    spent = [
        (mechanisms[provider.name].overall_ratio(number), provider.epsilon)
        for provider in plan.providers
        for number in range(len(plan.profiles))
    ]
    return _kept(
        "overall_epsilon",
        "The exact worst-case ratio of one item over all attributes together is at most e to the provider's epsilon, "
        "compared as rational numbers.",
        spent,
    )


def pooled_epsilon(plan: AggregatesPlan) -> Gate:
    return _kept(
        "pooled_epsilon",
        "All providers together learn no more about one item than the sum of their budgets, which is what was recorded "
        "as spent.",
        [(plan.pooled_ratio, plan.worst_total)],
    )


def _kept(name: str, sentence: str, spent: Spent) -> Gate:
    pairs = list(spent)
    return Gate(
        name,
        sentence,
        pd.DataFrame({"kept": [within(ratio, budget) for ratio, budget in pairs]}),
        (gxe.ExpectColumnValuesToBeInSet(column="kept", value_set=[True]),),
        observed=max(log_above(ratio) / float_above(budget) for ratio, budget in pairs),
        bound=1.0,
    )


def optimal(plan: AggregatesPlan) -> Gate:
    residuals = [service.residual for provider in plan.providers for service in provider.services]
    return Gate(
        "optimal",
        "Every profile's budgets are spent best: its optimality conditions hold to a relative 1e-8.",
        pd.DataFrame({"residual": residuals}),
        (
            gxe.ExpectColumnValuesToNotBeNull(column="residual"),
            gxe.ExpectColumnValuesToBeBetween(column="residual", max_value=RESIDUAL, strict_max=True),
        ),
        observed=max(residuals),
        bound=RESIDUAL,
    )


def errors_usable(rows: pd.DataFrame) -> Gate:
    columns = ("total", "standard_error", "ci_low", "ci_high")
    finite = rows.loc[:, list(columns)].replace([np.inf, -np.inf], np.nan)
    return Gate(
        "errors_usable",
        "Every total is finite and has a positive, finite standard error.",
        finite,
        (
            *(gxe.ExpectColumnValuesToNotBeNull(column=column) for column in columns),
            gxe.ExpectColumnValuesToBeBetween(column="standard_error", min_value=0.0, strict_min=True),
        ),
        observed=float(finite["standard_error"].min(skipna=False)),
        bound=0.0,
    )


def totals_complete(plan: AggregatesPlan, rows: pd.DataFrame) -> Gate:
    declared = [(provider.name, attribute) for provider in plan.providers for attribute in plan.attributes]
    return exactly_once(
        "totals_complete",
        "Every attribute's total towards every provider is published exactly once, and no other.",
        declared,
        zip(rows["provider"], rows["attribute"], strict=True),
    )


def partitions_once(evidence: ItemEvidence) -> Gate:
    providers = evidence.plan.providers
    expected = [(one.name, partition) for one in providers for partition in range(evidence.partitions)]
    return exactly_once(
        "partitions_once",
        "Every partition of every provider was counted exactly once.",
        expected,
        ((tally.provider, tally.partition) for tally in evidence.tallies),
    )


def everyone_counted(evidence: ItemEvidence) -> Gate:
    counted = [int(sums.users.sum()) for sums in evidence.sums.values()]
    return Gate(
        "everyone_counted",
        "Every provider has exactly one report from every user.",
        pd.DataFrame({"n_reports": counted}),
        (gxe.ExpectColumnValuesToBeInSet(column="n_reports", value_set=[evidence.n_users]),),
        observed=float(min(counted)),
        bound=float(evidence.n_users),
    )


def enough_users(evidence: ItemEvidence) -> Gate:
    minimum = evidence.plan.minimum_users
    return Gate(
        "enough_users",
        "At least as many users took part as the spec asks for.",
        pd.DataFrame({"n_users": [evidence.n_users]}),
        (gxe.ExpectColumnValuesToBeBetween(column="n_users", min_value=minimum),),
        observed=float(evidence.n_users),
        bound=float(minimum),
    )


def totals_true(evidence: ItemEvidence, truth: Units) -> Gate:
    plan = evidence.plan
    tails = np.concatenate(
        [
            noise_tails(sums.reports - truth, plan.mechanisms[name].ticks / float(1 << TICK_BITS), sums.users)
            for name, sums in evidence.sums.items()
        ]
    )
    bound = TRUTH_ALPHA / tails.size
    return Gate(
        "totals_true",
        "The totals differ from the truth by no more than their noise explains, every attribute and provider.",
        pd.DataFrame({"tail": tails}),
        (gxe.ExpectColumnValuesToBeBetween(column="tail", min_value=bound),),
        observed=float(tails.min()),
        bound=bound,
        false_alarm=TRUTH_ALPHA,
    )
