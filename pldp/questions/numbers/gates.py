"""The gates of means and quantiles."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from pldp.questions.gate import FAMILY, TRUTH_ALPHA, Among, Gate, errors_usable, exactly_once, holds, tails
from pldp.questions.numbers.estimate import NumbersResult
from pldp.questions.question import Evidence, Rows
from pldp.questions.rows import joined

if TYPE_CHECKING:
    from pldp.questions.numbers.question import Numbers


def gates(plan: Numbers, evidence: Evidence) -> tuple[Gate, ...]:
    """What must hold of numbers: complete and finite tables, levels that agree, and that everybody was counted."""
    result, means, quantiles = evidence.result, evidence.tables["means"], evidence.tables["quantiles"]
    looked_at = (
        personal_budgets(plan, result),
        numbers_agree(plan, result, evidence.withheld),
        numbers_usable(means, quantiles),
        numbers_complete(plan, means, quantiles, evidence.withheld),
        numbers_counted(plan, result, evidence),
    )
    return looked_at if evidence.truth is None else (*looked_at, means_unbiased(result, evidence.truth.means))


def personal_budgets(plan: Numbers, result: NumbersResult) -> Gate:
    """User by user the budgets were checked before anything was drawn; here what is left of them in the reports."""
    whole = all(level.sums_up and level.budget <= plan.budget for level in plan.levels)
    off = [
        float(counts.units - level.units * n) if whole else float("inf")
        for level, counts, n in zip(plan.levels, result.counts, result.users, strict=True)
    ]
    return Gate(
        "personal_budgets",
        "Every class of reports has the budget that its units say, and all users together were dealt exactly the units "
        "of their levels, as whole numbers.",
        {"off": off},
        (Among("off", (0.0,)),),
        observed=max(map(abs, off)),
        bound=0.0,
    )


def numbers_agree(plan: Numbers, result: NumbersResult, withheld: Collection[str] = ()) -> Gate:
    """From the tests of the means: no mean that is published has levels or budgets that contradict each other."""
    recipe, means = plan.recipe, [one for one in result.means if one.attribute not in withheld]
    may_fall_back = recipe.disagreement == "sum"
    return holds(
        "numbers_agree",
        "Reports of all levels and budgets estimate the same mean, or the estimate that assumes nothing of choices was "
        "used."
        if may_fall_back
        else "Reports of all levels and budgets estimate the same mean.",
        [one.agreed or (may_fall_back and one.mean.method != "inverse-variance") for one in means],
        observed=min(one.agreement for one in means),
        bound=recipe.alpha,
        false_alarm=0.0 if may_fall_back else FAMILY / 2 * len(means) / plan.tested,
    )


def numbers_usable(means: Rows, quantiles: Rows) -> Gate:
    """The published rows of `means` and `quantiles` have usable errors and intervals."""
    columns = ("standard_error", "ci_low", "ci_high")
    parts: list[Rows] = [{"estimate": means["mean"], **{column: means[column] for column in columns}}]
    if quantiles:
        parts.append({"estimate": quantiles["quantile"], **{column: quantiles[column] for column in columns}})
    return errors_usable(joined(parts), ("estimate", "ci_low", "ci_high"), "mean and quantile", "numbers_usable")


def numbers_complete(plan: Numbers, means: Rows, quantiles: Rows, withheld: Collection[str] = ()) -> Gate:
    """The published rows of `means` and `quantiles` hold each attribute and each declared quantile once."""
    declared: list[tuple[str, float | None]] = [(name, None) for name in plan.attributes if name not in withheld]
    asked = [question for question in plan.questions if question.attribute not in withheld]
    declared += [(question.attribute, p) for question in asked for p in question.probabilities]
    published: list[tuple[str, float | None]] = [(name, None) for name in means["attribute"]]
    if quantiles:
        published += zip(quantiles["attribute"], quantiles["probability"], strict=True)
    return exactly_once(
        "numbers_complete",
        "Every numeric attribute has exactly one mean, and every declared quantile is published exactly once.",
        declared,
        published,
    )


def numbers_counted(plan: Numbers, result: NumbersResult, evidence: Evidence) -> Gate:
    """How many stand behind a level is told by its reports, of which everybody sends as many as the plan samples."""
    reports = np.array([counts.n_reports for counts in result.counts])
    sampled = np.array([level.sampled for level in plan.levels])
    received = evidence.received
    people = evidence.n_users if received is None else plan.people(received.reports)
    off = [*(reports - sampled * np.asarray(result.users)), sum(result.users) - people]
    return Gate(
        "numbers_counted",
        "Every user reported on exactly as many numbers as the plan samples at the user's level.",
        {"off": [float(value) for value in off]},
        (Among("off", (0.0,)),),
        observed=float(max(map(abs, off))),
        bound=0.0,
    )


def means_unbiased(result: NumbersResult, truth: dict[str, float]) -> Gate:
    """Two-sided, against the truth; only in an evaluation."""
    return tails(
        "means_unbiased",
        "The means differ from the truth by no more than their errors explain.",
        [float(2 * ndtr(-abs(one.mean.mean - truth[one.attribute]) / one.mean.standard_error)) for one in result.means],
        TRUTH_ALPHA,
    )
