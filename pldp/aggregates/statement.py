"""The privacy statement of a release of aggregates: two promises about one item, towards every provider."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from pldp.aggregates.plan import AggregatesPlan, ProviderPlan
from pldp.exact import float_above, log_above


def aggregates_statement(plan: AggregatesPlan, release_id: str, n_users: int) -> dict[str, Any]:
    """What is promised to whom, exactly; nothing in it depends on anybody's items."""
    alone = len(plan.providers) == 1
    return {
        "release_id": release_id,
        "name": plan.name,
        "kind": plan.kind,
        "plan_sha256": plan.sha256,
        "guarantee": "local differential privacy of one item, personalised by attribute and by provider",
        "unit": plan.unit,
        "neighbours": _neighbours(plan.cap),
        "n_users": n_users,
        "worst_total": {
            "nominal_epsilon": float_above(plan.worst_total),
            "exact_epsilon": log_above(plan.pooled_ratio),
            "meaning": "one item towards the only provider"
            if alone
            else "one item towards all providers together: they may pool their reports on a user, so budgets add",
        },
        "providers": [_provider(plan, provider) for provider in plan.providers],
        "pooled_attributes": _pooled(plan),
        "catalogue": {
            "sha256": plan.catalogue_sha256,
            "items": plan.n_items,
            "distinct": plan.n_distinct,
            "that_can_bind": len(plan.rows),
        },
        "public": [
            "who took part, and how many users chose each profile",
            "which profile a user chose: it stands beside every report, for the provider must know its noise",
            "the catalogue: which item counts how much for which attribute",
            "this statement, the spec and the plan",
        ],
        "assumptions": [
            "whoever holds the vault keeps it: perturbation happens there, on behalf of the users",
            "the unit is an item: nothing is promised about the number of a user's items, about groups of them, or "
            "about whether somebody is a user; k items spend up to k times as much",
            "profiles are chosen independently of the items",
            "an attribute's budget holds towards each provider by itself; what pooling providers learn about it is the "
            "sum under pooled_attributes",
            "every further release of the same users spends its own budget on top of this one",
        ],
    }


def _neighbours(cap: int | None) -> str:
    if cap is None:
        return "two histories of a user of which one has one occurrence of an item more, at the same profile"
    return (
        "two histories of a user of which one has one item more, with all its occurrences (at most "
        f"{cap} of an item are counted), at the same profile"
    )


def _provider(plan: AggregatesPlan, provider: ProviderPlan) -> dict[str, Any]:
    return {
        "provider": provider.name,
        "reputation": provider.reputation,
        "epsilon": float_above(provider.epsilon),
        "exact_epsilon": log_above(provider.worst_ratio),
        "profiles": [
            {
                "profile": profile.name,
                "exact_epsilon": service.exact_overall,
                "turning_point": float_above(service.turning_point),
                "attributes": [
                    {"attribute": name, "nominal_epsilon": float_above(budget), "exact_epsilon": exact}
                    for name, budget, exact in zip(
                        plan.attributes, profile.budgets, service.exact_epsilons, strict=True
                    )
                ],
            }
            for profile, service in zip(plan.profiles, provider.services, strict=True)
        ],
    }


def _pooled(plan: AggregatesPlan) -> list[dict[str, Any]]:
    """What all providers together learn about one attribute, of the profile that tells them most."""
    found = []
    for column, attribute in enumerate(plan.attributes):
        ratios = [
            math.prod((one.services[number].attribute_ratios[column] for one in plan.providers), start=Fraction(1))
            for number in range(len(plan.profiles))
        ]
        found.append({"attribute": attribute, "exact_epsilon": log_above(max(ratios))})
    return found
