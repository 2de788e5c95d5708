"""The plan command for aggregates: what a spec and its catalogue promise before anybody's items are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from pldp.channels.exact import float_above
from pldp.flows.forecast_shared import PlanForecast, refuse_target
from pldp.questions.aggregates.plan import AggregatesPlan
from pldp.questions.aggregates.totals import Sums, estimate_totals
from pldp.tasks.aggregates.file import AggregatesFile
from pldp.tasks.aggregates.tables import item_budget_rows, loss_rows

SHOWN_PROFILES = 6


@dataclass(frozen=True)
class AggregatesForecast(PlanForecast):
    plan: AggregatesPlan
    budgets: pl.DataFrame
    errors: pl.DataFrame
    """Provider × attribute: the standard error of the total, and of one user's aggregate on average."""
    losses: pl.DataFrame

    def as_json(self) -> dict[str, Any]:
        return {
            **self.head(),
            "budgets": self.budgets.to_dicts(),
            "errors": self.errors.to_dicts(),
            "losses": self.losses.to_dicts(),
        }


def forecast_aggregates(file: AggregatesFile, target_error: float | None = None) -> AggregatesForecast:
    """Predicted errors from the spec's assumptions; of the data, only the public catalogue is read."""
    refuse_target(target_error, "a total's error follows from the budgets in the plan")
    plan = file.plan
    sizes, nothing = plan.expected_sizes(), np.zeros(len(plan.attributes), dtype=np.int64)
    frames = []
    for provider in plan.providers:
        totals = estimate_totals(Sums(nothing, sizes), plan.mechanisms[provider.name], plan.confidence)
        frames.append(
            pl.DataFrame(
                {
                    "provider": [provider.name] * len(plan.attributes),
                    "attribute": plan.attributes,
                    "standard_error": totals.standard_error,
                    "one_user": totals.standard_error / plan.expected_users**0.5,
                }
            )
        )
    counted = "" if plan.cap is None else f", of whose occurrences at most {plan.cap} count"
    assumptions = (
        f"{plan.expected_users:,} users; {_expected(plan)}",
        f"the unit is {plan.protected}{counted}",
        f"{plan.n_items:,} items of {plan.n_distinct:,} kinds, {len(plan.rows):,} of which can bind",
    )
    return AggregatesForecast(
        plan, assumptions, _notes(plan), item_budget_rows(plan), pl.concat(frames), loss_rows(plan)
    )


def _expected(plan: AggregatesPlan) -> str:
    """The largest expected profiles, and how many there are."""
    largest = sorted(zip(plan.expected_shares, plan.profile_names, strict=True), key=lambda pair: -pair[0])
    shares = ", ".join(f"{name} {100 * share:.3g}%" for share, name in largest[:SHOWN_PROFILES])
    more = len(largest) - SHOWN_PROFILES
    return f"profiles: {shares}" + (f" and {more:,} more" if more > 0 else "")


def _notes(plan: AggregatesPlan) -> tuple[str, ...]:
    """An epsilon that cannot be used, a default that is not the strictest; with many profiles, how many it is about."""
    notes = []
    if plan.default != plan.least_profile:
        strictest = "no profile is that on every attribute" if plan.least_profile is None else plan.least_profile
        notes.append(
            f"default: {plan.default} is not the profile of the least budgets ({strictest}), and users who state none "
            "get it."
        )
    if plan.coarse:
        notes.append(
            f"{len(plan.profiles):,} profiles have so many spends that these are rounded down to 12 significant bits: "
            "losses are up to 0.05 % (MSE 0.1 %) above the least."
        )
    for provider in plan.providers:
        above = [service for service in provider.services if provider.above_turning_point(service)]
        if above:
            most = max(float_above(service.turning_point) for service in above)
            whose = above[0].profile if len(above) == 1 else f"{len(above)} of {len(provider.services)} profiles"
            notes.append(
                f"{provider.name}: epsilon {float(provider.epsilon):g} is at or above the turning point of {whose} (at "
                f"most {most:.4g}): every attribute gets all that its own budget allows, and the rest is never spent."
            )
    return tuple(notes)
