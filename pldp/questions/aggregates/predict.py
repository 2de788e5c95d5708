"""What `pldp plan` shows of aggregates: from the spec and its public catalogue, before anybody's items are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.exact import float_above
from pldp.questions.aggregates.losses import loss_rows
from pldp.questions.aggregates.totals import Sums, estimate_totals
from pldp.questions.question import Predictions, Rows
from pldp.questions.rows import stacked

if TYPE_CHECKING:
    from pldp.questions.aggregates.plan import AggregatesPlan

SHOWN_PROFILES = 6
UNBOUNDED = (
    "where every occurrence counts nothing bounds what fake people add to a total: count: {cap: …} does, and "
    "one-time tokens bound how many they are"
)


def predictions(plan: AggregatesPlan, *, clients: bool = False) -> Predictions:
    """Tables: errors (provider × attribute) and losses (provider × spending × profile)."""
    counted = "" if plan.cap is None else f", of whose occurrences at most {plan.cap} count"
    assumptions = (
        f"{plan.expected_users:,} users; {_expected_profiles(plan)}",
        f"the unit is {plan.protected}{counted}",
        f"{plan.n_items:,} items of {plan.n_distinct:,} kinds, {len(plan.rows):,} of which can bind",
    )
    unbounded = (UNBOUNDED,) if clients and plan.cap is None else ()
    tables = {"errors": error_rows(plan), "losses": loss_rows(plan)}
    return Predictions(tables, assumptions, (*_notes(plan), *unbounded))


def error_rows(plan: AggregatesPlan) -> Rows:
    """Provider × attribute: the standard error of the total, and of one user's aggregate on average."""
    expected = Sums(np.zeros(len(plan.attributes), dtype=np.int64), plan.expected_sizes())
    parts: list[dict[str, Any]] = []
    for provider in plan.providers:
        error = estimate_totals(expected, plan.mechanisms[provider.name], plan.confidence).standard_error
        parts.append(
            {
                "provider": provider.name,
                "attribute": plan.attributes,
                "standard_error": error.tolist(),
                "one_user": (error / plan.expected_users**0.5).tolist(),
            }
        )
    return stacked(parts)


def _expected_profiles(plan: AggregatesPlan) -> str:
    """The largest expected profiles, and how many more there are."""
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
