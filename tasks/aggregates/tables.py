"""The rows of aggregates and their budgets, as frames of the declared tables; and losses, which a forecast compares."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import polars as pl

from pldp.channels.exact import float_above
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
from pldp.questions.aggregates.plan import MECHANISM, AggregatesPlan
from pldp.questions.aggregates.totals import Sums, Totals
from pldp.tables.aggregates import AGGREGATES
from pldp.tables.common import BUDGETS
from pldp.tasks.tables import stacked

BASELINE, BOUND = "equal scaling", "lower bound"


def aggregate_rows(plan: AggregatesPlan, totals: dict[str, Totals]) -> pl.DataFrame:
    """Provider × attribute; a share is null where the sum of all totals is too near zero to divide by."""
    parts = []
    for provider in plan.providers:
        found = totals[provider.name]
        share, error = found.shares()
        parts.append(
            {
                "provider": provider.name,
                "attribute": plan.attributes,
                "total": found.total,
                "standard_error": found.standard_error,
                "ci_low": found.ci_low,
                "ci_high": found.ci_high,
                "share": share,
                "share_error": error,
                "n_users": found.n_users,
            }
        )
    return stacked(AGGREGATES, parts).with_columns(pl.col("share", "share_error").fill_nan(None))


def item_budget_rows(plan: AggregatesPlan, sums: dict[str, Sums] | None = None) -> pl.DataFrame:
    """Provider × attribute × profile: the user's budget t_j and what the noise spends of it, in items.

    `share` is of the provider's epsilon; shares sum to more than one, since no item has all attributes.
    """
    height, width = plan.budget_ticks.shape
    nominal = np.array([[float_above(budget) for budget in profile.budgets] for profile in plan.profiles])
    parts = []
    for provider in plan.providers:
        exact = plan.mechanisms[provider.name].exact_epsilons
        parts.append(
            {
                "attribute": list(plan.attributes) * height,
                "level": [name for name in plan.profile_names for _ in plan.attributes],
                "unit": plan.unit,
                "mechanism": MECHANISM,
                "nominal_epsilon": nominal.reshape(-1),
                "exact_epsilon": exact.reshape(-1),
                "share": exact.reshape(-1) / float_above(provider.epsilon),
                "n_users": None if sums is None else np.repeat(sums[provider.name].users, width),
                "provider": provider.name,
            }
        )
    return stacked(BUDGETS, parts)


def loss_rows(plan: AggregatesPlan) -> pl.DataFrame:
    """Provider × profile × way to spend: the noise's mean losses (multiupp U1–U3) and its divergence. All public.

    The way is the release's objective, equal scaling of all budgets, or the bound that the attributes' own budgets set.
    """
    catalogue, budgets, grid = plan.catalogue, plan.budget_ticks, plan.steps
    best = best_scales(catalogue, budgets)
    bounds = lower_bounds(best)
    frames = []
    for provider in plan.providers:
        mechanism = plan.mechanisms[provider.name]
        ways = {plan.objective: (mechanism.mean_size, mechanism.variance)}
        # Where equal scaling leaves an attribute no signal at all there is nothing to compare with.
        with suppress(ValueError):
            scaled = equal_scaling(catalogue, budgets, to_ticks(provider.epsilon))
            ways[BASELINE] = geometric_moments(scaled.astype(np.float64) * 2.0**-TICK_BITS)
        for way, moments in ways.items():
            size, variance = (moment * step for moment, step in zip(moments, (grid, grid**2), strict=True))
            frames.append(
                _losses(
                    plan,
                    provider.name,
                    way,
                    mean_absolute_error(size),
                    mean_squared_error(variance),
                    mean_absolute_error_loss(size, best),
                    np.maximum(kl_divergence(best, np.sqrt(variance)), 0),
                )
            )
        frames.append(
            _losses(plan, provider.name, BOUND, bounds["mae"], bounds["mse"], bounds["mael"], np.zeros(len(best)))
        )
    return pl.concat(frames)


def _losses(plan: AggregatesPlan, provider: str, way: str, *losses: np.ndarray) -> pl.DataFrame:
    columns = dict(zip(("mae", "mse", "mael", "kl"), losses, strict=True))
    return pl.DataFrame({"profile": plan.profile_names, **columns}).select(
        pl.lit(provider).alias("provider"), "profile", pl.lit(way).alias("way"), *columns
    )
