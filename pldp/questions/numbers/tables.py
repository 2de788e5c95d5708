"""The published rows of means, quantiles and bins, by column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from pldp.questions.numbers.distribution import Distribution
from pldp.questions.numbers.estimate import NumbersResult
from pldp.questions.question import Rows
from pldp.questions.rows import stacked

if TYPE_CHECKING:
    from pldp.questions.numbers.question import Numbers


def tables(plan: Numbers, result: NumbersResult) -> dict[str, Rows]:
    """Published rows of means, quantiles and bins, as far as they are asked for."""
    return {
        "means": mean_rows(plan, result),
        "quantiles": quantile_rows(result.quantiles),
        "bins": bin_rows(result.quantiles),
    }


def mean_rows(plan: Numbers, result: NumbersResult) -> Rows:
    """One row per attribute: its mean with its error, in the units of the source."""
    bounds = {question.attribute: question.bounds for question in plan.questions}
    return stacked(
        [
            {
                "attribute": [one.attribute],
                **vars(one.mean),
                "lower": bounds[one.attribute].lower,
                "upper": bounds[one.attribute].upper,
                "interval": "inverted test" if one.mean.method == "inverse-variance" else "normal",
                "dependence": "1" if one.mean.method == "inverse-variance" else "unknown",
            }
            for one in result.means
        ]
    )


def quantile_rows(distributions: Sequence[Distribution]) -> Rows:
    """One row per attribute and probability."""
    return stacked(
        [
            {
                "attribute": [one.attribute],
                "method": one.method,
                **vars(quantile),
                "n_reports": one.n_reports,
                "dependence": "unknown" if one.dependence is None else f"{one.dependence:g}",
            }
            for one in distributions
            for quantile in one.quantiles
        ]
    )


def bin_rows(distributions: Sequence[Distribution]) -> Rows:
    """The distributions behind the quantiles: shares of bins."""
    return stacked(
        [
            {
                "attribute": one.attribute,
                "method": one.method,
                "bin_low": one.edges[:-1],
                "bin_high": one.edges[1:],
                "frequency": one.frequency,
                "standard_error": np.maximum(one.standard_error, np.finfo(float).eps),
                "n_reports": one.n_reports,
            }
            for one in distributions
        ]
    )


def budgets(plan: Numbers, result: NumbersResult | None) -> Rows:
    """Attribute × level: the most that a person of the level can spend on the attribute."""
    parts = []
    for attribute, asked in plan.attributes.items():
        for i, level in enumerate(plan.levels):
            nominal, exact = level.most(len(asked))
            used = dict.fromkeys(one.mechanisms[q].mechanism for q in asked for one in level.classes)
            parts.append(
                {
                    "attribute": [attribute],
                    "level": level.level,
                    "unit": plan.unit,
                    "mechanism": " + ".join(used),
                    "nominal_epsilon": nominal,
                    "exact_epsilon": exact,
                    "share": float(plan.budget / plan.total * len(asked) / len(plan.questions)),
                    "n_users": None if result is None else result.users[i],
                }
            )
    return stacked(parts)
