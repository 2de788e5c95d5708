"""Several providers: each gets its own noise, as much as its reputation asks for, and what they know together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from pldp.questions.aggregates.budgets import Allocation, EpsilonTooSmall, allocate, share_spends, to_ticks
from pldp.questions.aggregates.catalogue import Catalogue, Units
from pldp.questions.aggregates.objectives import Objective
from pldp.questions.aggregates.release import Mechanism


@dataclass(frozen=True)
class Provider:
    """A recipient of perturbed aggregates and its overall budget ε for one item of one user."""

    name: str
    epsilon: Fraction

    def __post_init__(self) -> None:
        if self.epsilon <= 0:
            raise ValueError(
                f"providers.{self.name}.epsilon must be > 0 (got {self.epsilon}): leave the provider out instead"
            )


@dataclass(frozen=True)
class Service:
    """A provider with the optimal allocation for every profile and the noise that realises it."""

    provider: Provider
    allocation: Allocation
    mechanism: Mechanism


def serve(
    catalogue: Catalogue, budgets: Units, providers: Sequence[Provider], objective: Objective
) -> dict[str, Service]:
    """One set of solves a provider, over the same profiles (`budgets` in ticks)."""
    names = [provider.name for provider in providers]
    if not names or len(set(names)) != len(names):
        raise ValueError("providers must be at least one, each named once")
    allocations = []
    for provider in providers:
        try:
            allocations.append(allocate(catalogue, budgets, to_ticks(provider.epsilon), objective))
        except EpsilonTooSmall as error:
            raise ValueError(f"providers.{provider.name}.{error}") from None
    return {
        provider.name: Service(provider, allocation, Mechanism(catalogue, allocation.ticks))
        for provider, allocation in zip(providers, share_spends(allocations), strict=True)
    }
