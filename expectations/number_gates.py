"""The gates of means and quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import great_expectations.expectations as gxe
import numpy as np
import pandas as pd

from pldp.channels.protocol import Counts
from pldp.estimate.distributions import norm
from pldp.estimate.inference import Recipe
from pldp.expectations.gate import Gate, exactly_once
from pldp.questions.histograms.plan import FAMILY, Plan
from pldp.questions.numbers.estimate import Distribution
from pldp.questions.numbers.plan import NumbersPlan
from pldp.tasks.numbers import NumberResults


@dataclass(frozen=True)
class NumberEvidence:
    """What a run produced about numbers. `true_means` only in an evaluation."""

    plan: Plan
    numbers: NumbersPlan
    results: NumberResults
    n_users: int
    partitions: int
    level_sizes: Counts | None
    """Users of each level as the histograms count them; None where there are no histograms."""
    means: pd.DataFrame
    quantiles: pd.DataFrame
    true_means: dict[str, float] | None = None

    @property
    def recipe(self) -> Recipe:
        return self.plan.recipe


def number_gates(evidence: NumberEvidence) -> tuple[Gate, ...]:
    return (
        personal_budgets(evidence),
        numbers_agree(evidence),
        numbers_usable(evidence),
        numbers_complete(evidence),
        numbers_once(evidence),
        numbers_counted(evidence),
    )


def personal_budgets(evidence: NumberEvidence) -> Gate:
    """User by user the budgets were checked before anything was drawn; here what is left of them in the reports."""
    numbers, results = evidence.numbers, evidence.results
    whole = all(level.sums_up and level.budget <= numbers.budget for level in numbers.levels)
    off = [
        float(counts.units - level.units * n) if whole else float("inf")
        for level, counts, n in zip(numbers.levels, results.counts, results.users, strict=True)
    ]
    return Gate(
        "personal_budgets",
        "Every class of reports has the budget that its units say, and all users together were dealt exactly the units "
        "of their levels, as whole numbers.",
        pd.DataFrame({"off": off}),
        (gxe.ExpectColumnValuesToBeInSet(column="off", value_set=[0.0]),),
        observed=max(map(abs, off)),
        bound=0.0,
    )


def numbers_agree(evidence: NumberEvidence) -> Gate:
    recipe, means = evidence.recipe, evidence.results.means
    may_fall_back = recipe.disagreement == "sum"
    settled = [found.agreed or (may_fall_back and found.mean.method != "inverse-variance") for found in means]
    return Gate(
        "numbers_agree",
        "Reports of all levels and budgets estimate the same mean, or the estimate that needs no agreement was used."
        if may_fall_back
        else "Reports of all levels and budgets estimate the same mean.",
        pd.DataFrame({"settled": settled}),
        (gxe.ExpectColumnValuesToBeInSet(column="settled", value_set=[True]),),
        observed=min(found.agreement for found in means),
        bound=recipe.alpha,
        false_alarm=0.0 if may_fall_back else FAMILY / 2 * len(means) / evidence.plan.tested,
    )


def numbers_usable(evidence: NumberEvidence) -> Gate:
    means = evidence.means.rename(columns={"mean": "estimate"})
    quantiles = evidence.quantiles.rename(columns={"quantile": "estimate"})
    columns = ["estimate", "standard_error", "ci_low", "ci_high"]
    finite = pd.concat([means[columns], quantiles[columns]]).replace([np.inf, -np.inf], np.nan)
    return Gate(
        "numbers_usable",
        "Every mean and quantile is finite and has a positive, finite standard error.",
        finite,
        (
            *(gxe.ExpectColumnValuesToNotBeNull(column=column) for column in columns),
            gxe.ExpectColumnValuesToBeBetween(column="standard_error", min_value=0.0, strict_min=True),
        ),
        observed=float(np.nan_to_num(finite["standard_error"].min(skipna=False), nan=-1.0)),
        bound=0.0,
    )


def numbers_complete(evidence: NumberEvidence) -> Gate:
    declared: list[tuple[str, float | None]] = [(name, None) for name in evidence.numbers.attributes]
    declared += [(question.attribute, p) for question in evidence.numbers.questions for p in question.probabilities]
    found = [(name, None) for name in evidence.means["attribute"]]
    found += zip(evidence.quantiles["attribute"], evidence.quantiles["probability"], strict=True)
    return exactly_once(
        "numbers_complete",
        "Every numeric attribute has exactly one mean, and every declared quantile is published exactly once.",
        declared,
        found,
    )


def numbers_once(evidence: NumberEvidence) -> Gate:
    expected = [(level.level, p) for level in evidence.numbers.levels for p in range(evidence.partitions)]
    return exactly_once(
        "numbers_once",
        "Every partition of every level's reports on numbers was counted exactly once.",
        expected,
        ((tally.level, partition) for tally in evidence.results.tallies for partition in tally.partitions),
    )


def numbers_counted(evidence: NumberEvidence) -> Gate:
    results = evidence.results
    reports = np.array([counts.n_reports for counts in results.counts])
    sampled = np.array([level.sampled for level in evidence.numbers.levels])
    sizes = np.asarray(results.users) if evidence.level_sizes is None else evidence.level_sizes
    off = [*(reports - sampled * sizes), int(sizes.sum()) - evidence.n_users]
    return Gate(
        "numbers_counted",
        "Every user reported on exactly as many numbers as the plan samples at the user's level.",
        pd.DataFrame({"off": [float(value) for value in off]}),
        (gxe.ExpectColumnValuesToBeInSet(column="off", value_set=[0.0]),),
        observed=float(max(map(abs, off))),
        bound=0.0,
    )


def quantiles_usable(plan: Plan, binned: tuple[Distribution, ...]) -> Gate:
    declared = [(attribute.name, p) for attribute in plan.attributes for p in attribute.probabilities]
    usable = [
        (found.attribute, q.probability)
        for found in binned
        for q in found.quantiles
        if np.isfinite((q.quantile, q.ci_low, q.ci_high, q.standard_error)).all() and q.standard_error > 0
    ]
    return exactly_once(
        "quantiles_usable",
        "Every declared quantile of a binned number is published exactly once, finite and with a positive, finite "
        "standard error.",
        declared,
        usable,
    )


def mean_p_values(evidence: NumberEvidence) -> list[float]:
    """Two-sided, against the truth; only in an evaluation."""
    truth = evidence.true_means
    if truth is None:
        return []
    return [
        float(2 * norm.sf(abs(found.mean.mean - truth[found.attribute]) / found.mean.standard_error))
        for found in evidence.results.means
    ]
