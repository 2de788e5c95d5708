"""The gates of a release, each a sentence, a small frame, and what Great Expectations must find in it.

Together the gates refuse a correct release with probability at most `FAMILY`. Arithmetic gates never do;
the statistical ones share it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import great_expectations.expectations as gxe
import pandas as pd

from pldp.channels.protocol import Floats
from pldp.estimate.inference import Histogram
from pldp.expectations.gate import Gate, exactly_once
from pldp.expectations.hidden_gates import hidden_gates
from pldp.expectations.honest_gate import estimates_possible
from pldp.expectations.number_gates import NumberEvidence, mean_p_values, number_gates, quantiles_usable
from pldp.expectations.shared import (
    TRUTH_ALPHA,
    enough_users,
    errors_usable,
    everyone_counted,
    kept,
    partitions_once,
    tails,
)
from pldp.estimate.checks import unbiasedness
from pldp.questions.histograms.hidden import moment_test
from pldp.questions.histograms.plan import FAMILY, Plan
from pldp.questions.numbers.estimate import Distribution
from pldp.tasks.count import Support, Tally
from pldp.tasks.estimate import LevelEstimates


@dataclass(frozen=True)
class Evidence:
    """What a run produced, for the gates to look at. `truth` only in an evaluation."""

    plan: Plan
    n_users: int
    partitions: int
    tallies: tuple[Tally, ...]
    supports: tuple[Support, ...]
    estimates: tuple[LevelEstimates, ...]
    histograms: tuple[Histogram, ...]
    rows: pd.DataFrame
    """The histogram rows as they will be published."""
    truth: dict[str, Floats] | None = None
    binned: tuple[Distribution, ...] = ()
    numbers: NumberEvidence | None = None


def all_gates(evidence: Evidence) -> tuple[Gate, ...]:
    plan = evidence.plan
    gates = (
        budgets_sum(plan),
        spend_within_total(plan),
        exact_epsilon(plan),
        *(histogram_gates(evidence) if plan.attributes else ()),
        *(number_gates(evidence.numbers) if evidence.numbers is not None else ()),
        enough_users(evidence.n_users, plan.minimum_users),
    )
    return gates if evidence.truth is None else (*gates, unbiased(evidence, evidence.truth))


def histogram_gates(evidence: Evidence) -> tuple[Gate, ...]:
    plan = evidence.plan
    return (
        *(
            (level_sums(evidence), levels_agree(evidence))
            if plan.hidden is None
            else hidden_gates(plan, plan.hidden, evidence.supports)
        ),
        estimates_possible(plan, evidence.supports),
        *((climbed(evidence.histograms),) if plan.recipe.method == "em" else ()),
        errors_usable(
            evidence.rows,
            ("frequency", "ci_low", "ci_high", "unbiased_frequency", "unbiased_standard_error"),
            "estimate",
        ),
        *((quantiles_usable(plan, evidence.binned),) if any(a.probabilities for a in plan.attributes) else ()),
        domains_complete(plan, evidence.rows),
        counted_once(evidence),
        everyone_counted(
            [int(support.n.sum()) for support in evidence.supports], evidence.n_users, "Every attribute has"
        ),
    )


def budgets_sum(plan: Plan) -> Gate:
    numbers = Fraction(0) if plan.numbers is None else plan.numbers.budget
    spent = sum((attribute.budget for attribute in plan.attributes), numbers)
    unspent = float((plan.total - spent) / plan.total)
    return Gate(
        "budgets_sum",
        "Attribute budgets sum to no more than the total, and leave less than a billionth of it unused.",
        pd.DataFrame({"unspent": [unspent]}),
        (gxe.ExpectColumnValuesToBeBetween(column="unspent", min_value=0.0, max_value=1e-9),),
        observed=float(spent),
        bound=float(plan.total),
    )


def spend_within_total(plan: Plan) -> Gate:
    left = float(plan.total - plan.worst_total)
    return Gate(
        "spend_within_total",
        "No user can spend more than the total budget, whatever levels they choose.",
        pd.DataFrame({"left": [left]}),
        (gxe.ExpectColumnValuesToBeBetween(column="left", min_value=0.0),),
        observed=float(plan.worst_total),
        bound=float(plan.total),
    )


def exact_epsilon(plan: Plan) -> Gate:
    spent = [(level.protocol.worst_ratio, level.budget) for a in plan.attributes for level in a.levels]
    if plan.hidden is not None:
        spent.append((plan.hidden.protocol.worst_ratio, plan.hidden.budget))
    if plan.numbers is not None:
        classes = [found for level in plan.numbers.levels for found in level.classes]
        spent += {(m.realised.worst_ratio, found.budget) for found in classes for m in found.mechanisms}
    return kept(
        "exact_epsilon",
        "The exact worst-case ratio of every mechanism is at most e to its budget, compared as rational numbers.",
        spent,
    )


def level_sums(evidence: Evidence) -> Gate:
    found = [
        protocol.total_tail(int(support.counts[i].sum()), int(support.n[i]))
        for attribute, support in zip(evidence.plan.attributes, evidence.supports, strict=True)
        for i, protocol in enumerate(attribute.protocols)
        if support.n[i] > 0
    ]
    return tails("level_sums", "Every level's estimates sum to one within what its noise allows.", found, FAMILY / 4)


def levels_agree(evidence: Evidence) -> Gate:
    recipe = evidence.plan.recipe
    may_fall_back = recipe.disagreement == "sum"
    settled = [h.agreed or (may_fall_back and h.method == "sum") for h in evidence.histograms]
    return Gate(
        "levels_agree",
        "The levels of an attribute estimate the same histogram, or the combination that needs no agreement was used."
        if may_fall_back
        else "The levels of an attribute estimate the same histogram.",
        pd.DataFrame({"settled": settled}),
        (gxe.ExpectColumnValuesToBeInSet(column="settled", value_set=[True]),),
        observed=min(h.agreement for h in evidence.histograms),
        bound=recipe.alpha,
        false_alarm=0.0 if may_fall_back else FAMILY / 2 * len(evidence.histograms) / evidence.plan.tested,
    )


def climbed(histograms: tuple[Histogram, ...]) -> Gate:
    return Gate(
        "likelihood_climbed",
        "Every likelihood was climbed until at most a thousandth of it was left to gain.",
        pd.DataFrame({"converged": [histogram.converged for histogram in histograms]}),
        (gxe.ExpectColumnValuesToBeInSet(column="converged", value_set=[True]),),
        observed=float(sum(not histogram.converged for histogram in histograms)),
        bound=0.0,
    )


def domains_complete(plan: Plan, rows: pd.DataFrame) -> Gate:
    declared = [(attribute.name, value) for attribute in plan.attributes for value in attribute.values]
    return exactly_once(
        "domains_complete",
        "Every declared value of every attribute is published exactly once, and no other.",
        declared,
        zip(rows["attribute"], rows["value"], strict=True),
    )


def counted_once(evidence: Evidence) -> Gate:
    plan = evidence.plan
    levels = plan.levels if plan.hidden is None else (None,)
    return partitions_once(
        "attribute and level" if plan.hidden is None else "attribute",
        ((attribute.name, level) for attribute in plan.attributes for level in levels),
        evidence.partitions,
        ((tally.attribute, tally.level, tally.partition) for tally in evidence.tallies),
    )


def unbiased(evidence: Evidence, truth: dict[str, Floats]) -> Gate:
    if evidence.plan.hidden is not None:
        report = evidence.plan.hidden.protocol
        p_values = [
            float(moment_test(support.counts, support.n, attribute.protocols, report, truth[attribute.name]))
            for attribute, support in zip(evidence.plan.attributes, evidence.supports, strict=True)
        ]
    else:
        p_values = [
            float(unbiasedness(histogram.unbiased, found.levels, truth[found.attribute]))
            for found, histogram in zip(evidence.estimates, evidence.histograms, strict=True)
        ]
    p_values += [] if evidence.numbers is None else mean_p_values(evidence.numbers)
    bound = TRUTH_ALPHA / len(p_values)
    return Gate(
        "unbiased",
        "The unbiased estimates differ from the truth by no more than their errors explain, all values jointly.",
        pd.DataFrame({"p_value": p_values}),
        (gxe.ExpectColumnValuesToBeBetween(column="p_value", min_value=bound),),
        observed=min(p_values),
        bound=bound,
        false_alarm=TRUTH_ALPHA,
    )
