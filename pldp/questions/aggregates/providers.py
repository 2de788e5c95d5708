"""Several providers: each gets its own noise, as much as its reputation asks for."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from pldp.questions.aggregates.budgets import Allocation, EpsilonTooSmall, allocate, share_spends, to_ticks
from pldp.questions.aggregates.catalogue import Catalogue, Units
from pldp.questions.aggregates.objectives import Objective


def serve(
    catalogue: Catalogue, budgets: Units, epsilons: Mapping[str, Fraction], objective: Objective
) -> dict[str, Allocation]:
    """The optimal allocation for every profile (`budgets` in ticks) towards each provider, which has an overall budget
    ε for one item of one user: one set of solves a provider."""
    allocations = []
    for name, epsilon in epsilons.items():
        try:
            allocations.append(allocate(catalogue, budgets, to_ticks(epsilon), objective))
        except EpsilonTooSmall as error:
            raise ValueError(f"providers.{name}.{error}") from None
    return dict(zip(epsilons, share_spends(allocations), strict=True))
