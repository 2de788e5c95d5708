"""The published rows of aggregates, by column; types and order are the tables' declarations'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.exact import float_above
from pldp.questions.aggregates.objectives import Floats
from pldp.questions.aggregates.plan import MECHANISM
from pldp.questions.aggregates.totals import AggregatesResult, Totals
from pldp.questions.question import Rows
from pldp.questions.rows import stacked

if TYPE_CHECKING:
    from pldp.questions.aggregates.question import Aggregates


def tables(plan: Aggregates, result: AggregatesResult) -> dict[str, Rows]:
    """Published rows of aggregates."""
    return {"aggregates": aggregate_rows(plan, result.totals)}


def aggregate_rows(plan: Aggregates, totals: Mapping[str, Totals]) -> Rows:
    """Provider × attribute; a share is null where the sum of all totals is too near zero to divide by."""
    parts: list[dict[str, Any]] = []
    for provider in plan.providers:
        estimate = totals[provider.name]
        share, share_error = estimate.shares()
        parts.append(
            {
                "provider": provider.name,
                "attribute": plan.attributes,
                "total": estimate.total.tolist(),
                "standard_error": estimate.standard_error.tolist(),
                "ci_low": estimate.ci_low.tolist(),
                "ci_high": estimate.ci_high.tolist(),
                "share": _known(share),
                "share_error": _known(share_error),
                "n_users": estimate.n_users,
            }
        )
    return stacked(parts)


def _known(values: Floats) -> list[float | None]:
    return [None if np.isnan(value) else float(value) for value in values]


def budgets(plan: Aggregates, result: AggregatesResult | None) -> Rows:
    """Provider × profile × attribute: the user's budget t_j, and what the noise spends of it, for one unit.

    `share` is of the provider's epsilon; shares sum to more than one, since no item has all attributes.
    """
    profiles, width = len(plan.profiles), len(plan.attributes)
    nominal = [float_above(budget) for profile in plan.profiles for budget in profile.budgets]
    parts: list[dict[str, Any]] = []
    for provider in plan.providers:
        exact = plan.mechanisms[provider.name].exact_epsilons.reshape(-1)
        users = None if result is None else np.repeat(result.sums[provider.name].users, width).tolist()
        parts.append(
            {
                "provider": provider.name,
                "attribute": plan.attributes * profiles,
                "level": [name for name in plan.profile_names for _ in plan.attributes],
                "unit": plan.unit,
                "mechanism": MECHANISM,
                "nominal_epsilon": nominal,
                "exact_epsilon": exact.tolist(),
                "share": (exact / float_above(provider.epsilon)).tolist(),
                "n_users": users,
            }
        )
    return stacked(parts)
