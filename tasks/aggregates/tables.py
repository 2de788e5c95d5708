"""The rows of the published tables, as frames. The tables themselves stand in sql/5*_publish_*.sql."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import polars as pl

from pldp.aggregates.budgets import equal_scaling, to_ticks
from pldp.aggregates.metrics import (
    best_scales,
    kl_divergence,
    lower_bounds,
    mean_absolute_error,
    mean_absolute_error_loss,
    mean_squared_error,
)
from pldp.aggregates.plan import MECHANISM, AggregatesPlan
from pldp.aggregates.release import Mechanism
from pldp.aggregates.totals import Sums, Totals
from pldp.exact import float_above, log_above

BASELINE, BOUND = "equal scaling", "lower bound"


def aggregate_rows(plan: AggregatesPlan, totals: dict[str, Totals]) -> pl.DataFrame:
    """Provider × attribute; a share is null where the sum of all totals is too near zero to divide by."""
    frames = []
    for provider in plan.providers:
        found = totals[provider.name]
        share, error = found.shares()
        frame = pl.DataFrame(
            {
                "attribute": plan.attributes,
                "total": found.total,
                "standard_error": found.standard_error,
                "ci_low": found.ci_low,
                "ci_high": found.ci_high,
                "share": share,
                "share_error": error,
            }
        ).with_columns(
            pl.col("share", "share_error").fill_nan(None),
            provider=pl.lit(provider.name),
            n_users=pl.lit(found.n_users, dtype=pl.Int64),
        )
        frames.append(frame)
    return pl.concat(frames)


def item_budget_rows(plan: AggregatesPlan, sums: dict[str, Sums] | None = None) -> pl.DataFrame:
    """Provider × attribute × profile: the user's budget t_j and what the noise spends of it, in items.

    `share` is of the provider's epsilon; shares sum to more than one, since no item has all attributes.
    """
    rows = []
    for provider in plan.providers:
        users = None if sums is None else sums[provider.name].users
        for number, (profile, service) in enumerate(zip(plan.profiles, provider.services, strict=True)):
            for attribute, budget, ratio in zip(
                plan.attributes, profile.budgets, service.attribute_ratios, strict=True
            ):
                exact = log_above(ratio)
                rows.append(
                    {
                        "provider": provider.name,
                        "attribute": attribute,
                        "level": profile.name,
                        "unit": plan.unit,
                        "mechanism": MECHANISM,
                        "nominal_epsilon": float_above(budget),
                        "exact_epsilon": exact,
                        "share": exact / float_above(provider.epsilon),
                        "n_users": None if users is None else int(users[number]),
                    }
                )
    return pl.DataFrame(rows, schema_overrides={"n_users": pl.Int64})


def loss_rows(plan: AggregatesPlan) -> pl.DataFrame:
    """Provider × profile × way to spend: the noise's mean losses (multiupp U1–U3) and its divergence. All public.

    The way is the release's objective, equal scaling of all budgets, or the bound that the attributes' own budgets set.
    """
    catalogue, budgets, grid = plan.catalogue, plan.budget_ticks, plan.steps
    best = best_scales(catalogue, budgets)
    bounds = lower_bounds(best)
    frames = []
    for provider in plan.providers:
        ways = {plan.objective: plan.mechanisms[provider.name]}
        # Where equal scaling leaves an attribute no signal at all there is nothing to compare with.
        with suppress(ValueError):
            ways[BASELINE] = Mechanism(catalogue, equal_scaling(catalogue, budgets, to_ticks(provider.epsilon)))
        for way, mechanism in ways.items():
            size, variance = mechanism.mean_size * grid, mechanism.variance * grid**2
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
