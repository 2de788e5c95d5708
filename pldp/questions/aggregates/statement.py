"""The privacy statement of a release of aggregates: two promises about one item, towards every provider."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from pldp.channels.exact import float_above, log_above
from pldp.questions.aggregates.plan import AggregatesPlan, ProviderPlan

LISTED_PROFILES = 100
"""Profiles that the statement lists one by one; the plan and the table budgets have them all."""


def statement(plan: AggregatesPlan) -> dict[str, Any]:
    """What is promised to whom, exactly; nothing in it depends on anybody's items.

    `protects` goes on where the model's promise ends. What every release says (who drew the noise, that further
    releases spend more, that the plan is public) is not in it.
    """
    one = plan.protected
    together = "the only provider" if len(plan.providers) == 1 else "all providers together"
    pooled = "" if len(plan.providers) == 1 else ": they may pool their reports on a user, so budgets add"
    return {
        "protects": f"of {one}, personalised by attribute and by provider",
        "unit": plan.unit,
        "neighbours": _neighbours(plan.cap),
        "replacing": f"{one} for another, at the same profile, is a step out and a step in: up to twice a provider's "
        "epsilon over all attributes together, and no more than its budget on a single attribute",
        "worst_total": {
            "nominal_epsilon": float_above(plan.worst_total),
            "exact_epsilon": log_above(plan.pooled_ratio),
            "meaning": f"{one} more or less, towards {together}{pooled}",
        },
        "providers": [_provider(plan, provider) for provider in plan.providers],
        "pooled_attributes": _pooled(plan),
        "n_profiles": len(plan.profiles),
        "default_profile": {"profile": plan.default, "allows_least": plan.default == plan.least_profile},
        "catalogue": {
            "sha256": plan.catalogue_sha256,
            "items": plan.n_items,
            "distinct": plan.n_distinct,
            "that_can_bind": len(plan.rows),
        },
        "public": [
            "who took part, and how many users chose each profile: two files with different users are no neighbours",
            "which profile a user chose: it stands beside every report, for the provider must know its noise",
            "the catalogue: which item counts how much for which attribute",
        ],
        "assumptions": [
            f"the unit is {one}: nothing is promised about the number of a user's items, about groups of them, or "
            f"about whether somebody is a user; k of them spend up to k times as much",
            "profiles are chosen independently of the items",
            "an attribute's budget holds towards each provider by itself; what pooling providers learn about it is the "
            "sum under pooled_attributes",
        ],
    }


def _neighbours(cap: int | None) -> str:
    if cap is None:
        return "two histories of a user, at the same profile, of which one has one occurrence of an item more"
    return (
        "two histories of a user, at the same profile, that differ in one item: one has it, with all its occurrences, "
        f"of which at most {cap} are counted, and the other has fewer of them or none"
    )


def _provider(plan: AggregatesPlan, provider: ProviderPlan) -> dict[str, Any]:
    mechanism = plan.mechanisms[provider.name]
    exact = mechanism.exact_epsilons
    listed = zip(plan.profiles[:LISTED_PROFILES], provider.services, exact.tolist(), strict=False)
    return {
        "provider": provider.name,
        "reputation": provider.reputation,
        "epsilon": float_above(provider.epsilon),
        "exact_epsilon": log_above(plan.worst_ratio(provider.name)),
        "attributes": [
            {"attribute": name, "exact_epsilon": worst}
            for name, worst in zip(plan.attributes, exact.max(axis=0).tolist(), strict=True)
        ],
        "profiles": [
            {
                "profile": profile.name,
                "exact_epsilon": log_above(mechanism.overall_ratios[number]),
                "turning_point": float_above(service.turning_point),
                "attributes": [
                    {"attribute": name, "nominal_epsilon": float_above(budget), "exact_epsilon": spent}
                    for name, budget, spent in zip(plan.attributes, profile.budgets, spends, strict=True)
                ],
            }
            for number, (profile, service, spends) in enumerate(listed)
        ],
    }


def _pooled(plan: AggregatesPlan) -> list[dict[str, Any]]:
    """What all providers together learn about one attribute, of the profile that tells them most."""
    sums = np.sum([mechanism.exact_epsilons for mechanism in plan.mechanisms.values()], axis=0)
    pooled = []
    for column, attribute in enumerate(plan.attributes):
        # A double errs by 1e-14 of the sum, so the profile that tells most is among those within 1e-9 of the largest.
        near = np.flatnonzero(sums[:, column] >= sums[:, column].max() * (1 - 1e-9))
        ratios = [
            math.prod((one.attribute_ratios(int(i))[column] for one in plan.mechanisms.values()), start=Fraction(1))
            for i in near
        ]
        pooled.append({"attribute": attribute, "exact_epsilon": log_above(max(ratios))})
    return pooled
