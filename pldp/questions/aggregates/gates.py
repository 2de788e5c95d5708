"""The gates of aggregates. None of them refuses a correct release.

An evaluation adds one that looks at the truth, and may be wrong with the probability it states.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pldp.questions.aggregates.budgets import TICK_BITS
from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.checks import noise_tails
from pldp.questions.aggregates.plan import RESIDUAL
from pldp.questions.aggregates.totals import AggregatesResult
from pldp.questions.gate import (
    TRUTH_ALPHA,
    Between,
    Gate,
    Present,
    errors_usable,
    everyone_counted,
    exactly_once,
    kept,
    tails,
)
from pldp.questions.question import Evidence, Rows

if TYPE_CHECKING:
    from pldp.questions.aggregates.question import Aggregates


def gates(plan: Aggregates, evidence: Evidence) -> tuple[Gate, ...]:
    """What must hold of aggregates; `evidence.truth` are the true totals in grid units."""
    result: AggregatesResult = evidence.result
    rows = evidence.tables["aggregates"]
    looked_at = (
        attribute_epsilon(plan),
        overall_epsilon(plan),
        pooled_epsilon(plan),
        optimal(plan),
        errors_usable(rows, ("total", "ci_low", "ci_high"), "total"),
        totals_complete(plan, rows),
        everyone_counted(
            [sums.n_reports for sums in result.sums.values()],
            [evidence.expected([f"provider={name}"]) for name in result.sums],
            "Every provider has",
            evidence.whose,
        ),
    )
    return looked_at if evidence.truth is None else (*looked_at, totals_true(plan, result, evidence.truth))


def attribute_epsilon(plan: Aggregates) -> Gate:
    """From the plan alone: towards each provider, no attribute's exact ratio exceeds what the profile gives it."""
    budgets = [profile.budgets for profile in plan.profiles]
    spent = [pair for mechanism in plan.mechanisms.values() for pair in mechanism.tightest(budgets)]
    return kept(
        "attribute_epsilon",
        f"Towards every provider, the exact worst-case ratio of {plan.protected} on every attribute is at most e to "
        "the user's budget for it, compared as rational numbers.",
        spent,
    )


def overall_epsilon(plan: Aggregates) -> Gate:
    """From the plan alone: towards each provider, no profile's exact ratio exceeds the provider's ε."""
    return kept(
        "overall_epsilon",
        f"The exact worst-case ratio of {plan.protected} over all attributes together is at most e to the provider's "
        "epsilon, compared as rational numbers, whatever the profile.",
        plan.spends(),
    )


def pooled_epsilon(plan: Aggregates) -> Gate:
    """From the plan alone: what all providers learn together is at most what the ledger has as spent."""
    return kept(
        "pooled_epsilon",
        f"All providers together learn no more about {plan.protected} than the sum of their budgets, which is what was "
        "recorded as spent.",
        [(plan.pooled_ratio, plan.worst_total)],
    )


def optimal(plan: Aggregates) -> Gate:
    """From the plan alone: every profile's split meets the optimality conditions of the program that it solves."""
    residuals = [service.residual for provider in plan.providers for service in provider.services]
    return Gate(
        "optimal",
        "Every profile's budgets are spent best: its optimality conditions hold to a relative 1e-8, before spends are "
        "rounded down.",
        {"residual": residuals},
        (Present("residual"), Between("residual", high=RESIDUAL, below=True)),
        observed=max(residuals),
        bound=RESIDUAL,
    )


def totals_complete(plan: Aggregates, rows: Rows) -> Gate:
    """The published rows of `aggregates` hold every declared attribute of every provider once."""
    return exactly_once(
        "totals_complete",
        "Every attribute's total towards every provider is published exactly once, and no other.",
        [(provider.name, attribute) for provider in plan.providers for attribute in plan.attributes],
        zip(rows["provider"], rows["attribute"], strict=True),
    )


def totals_true(plan: Aggregates, result: AggregatesResult, truth: Units) -> Gate:
    """By a bound that needs no approximation; only in an evaluation."""
    chances = [
        noise_tails(sums.reports - truth, plan.mechanisms[name].ticks / float(1 << TICK_BITS), sums.users)
        for name, sums in result.sums.items()
    ]
    return tails(
        "totals_true",
        "The totals differ from the truth by no more than their noise explains, every attribute and provider.",
        np.concatenate(chances).tolist(),
        TRUTH_ALPHA,
    )
