"""What the noise of one report loses, by formula: the release's spending beside a baseline and a bound. All public."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.questions.aggregates.budgets import TICK_BITS, equal_scaling, to_ticks
from pldp.questions.aggregates.metrics import (
    best_scales,
    geometric_moments,
    kl_divergence,
    lower_bounds,
    mean_absolute_error,
    mean_absolute_error_loss,
    mean_squared_error,
)
from pldp.questions.question import Rows
from pldp.questions.rows import stacked

if TYPE_CHECKING:
    from pldp.questions.aggregates.plan import AggregatesPlan

BASELINE, BOUND = "equal scaling", "lower bound"


def loss_rows(plan: AggregatesPlan) -> Rows:
    """Provider × spending × profile: mean losses over the attributes (multiupp U1–U3), and the noise's divergence.

    A spending is the release's objective, equal scaling of all budgets, or the bound that the budgets of the attributes
    set by themselves.
    """
    catalogue, allowed, grid = plan.catalogue, plan.budget_ticks, plan.steps
    best = best_scales(catalogue, allowed)
    parts: list[dict[str, Any]] = []
    for provider in plan.providers:
        mechanism = plan.mechanisms[provider.name]
        moments = {plan.objective: (mechanism.mean_size, mechanism.variance)}
        # Where equal scaling leaves an attribute no signal at all there is nothing to compare with.
        with suppress(ValueError):
            scaled = equal_scaling(catalogue, allowed, to_ticks(provider.epsilon))
            moments[BASELINE] = geometric_moments(scaled.astype(np.float64) * 2.0**-TICK_BITS)
        losses = {
            spending: {
                "mae": mean_absolute_error(size * grid),
                "mse": mean_squared_error(variance * grid**2),
                "mael": mean_absolute_error_loss(size * grid, best),
                "kl": np.maximum(kl_divergence(best, np.sqrt(variance) * grid), 0),
            }
            for spending, (size, variance) in moments.items()
        }
        losses[BOUND] = {**lower_bounds(best), "kl": np.zeros(len(best))}
        parts += [
            {
                "provider": provider.name,
                "profile": plan.profile_names,
                "spending": spending,
                **{name: loss.tolist() for name, loss in by_name.items()},
            }
            for spending, by_name in losses.items()
        ]
    return stacked(parts)
