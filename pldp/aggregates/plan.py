"""The plan of a release of aggregates: who spends what on which noise, as whole numbers and rationals."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, PlainSerializer

from pldp.aggregates.budgets import profile_ticks
from pldp.aggregates.catalogue import Catalogue, Units
from pldp.aggregates.noise import TwoSidedGeometric
from pldp.aggregates.objectives import OBJECTIVES, Floats, Objective
from pldp.aggregates.release import Mechanism
from pldp.exact import log_above
from pldp.fields import Frozen
from pldp.simulate import whole_counts

MECHANISM = "geometric"
RESIDUAL = 1e-8
"""What certifies an optimum: the largest relative violation of the optimality conditions."""


def _exact(value: object) -> Fraction:
    return value if isinstance(value, Fraction) else Fraction(str(value))


Exact = Annotated[Fraction, BeforeValidator(_exact), PlainSerializer(str)]
"""A rational of any length; worst ratios have 256 binary places."""


class ProfilePlan(Frozen):
    """What a user may choose: t_j of every attribute."""

    name: str
    budgets: tuple[Exact, ...]


class Law(Frozen):
    """The noise that spends `ticks`/2^40 on a grid unit: thresholds of its coins over 2^64."""

    ticks: int
    digits: tuple[int, ...]
    tail: int


class ServicePlan(Frozen):
    """One provider and one profile: the spend on a grid unit of every attribute, and what that amounts to."""

    profile: str
    ticks: tuple[int, ...]
    attribute_ratios: tuple[Exact, ...]
    """Exact worst ratios e^ε of one item, attribute by attribute."""
    overall_ratio: Exact
    turning_point: Exact
    """The ε from which on every attribute gets all that its own budget allows (multiupp Theorem 2)."""
    residual: float
    gap: float

    @property
    def exact_epsilons(self) -> tuple[float, ...]:
        return tuple(log_above(ratio) for ratio in self.attribute_ratios)

    @property
    def exact_overall(self) -> float:
        return log_above(self.overall_ratio)


class ProviderPlan(Frozen):
    name: str
    epsilon: Exact
    reputation: str | None
    services: tuple[ServicePlan, ...]

    @property
    def worst_ratio(self) -> Fraction:
        """Of the profile that tells this provider most."""
        return max(service.overall_ratio for service in self.services)

    def above_turning_point(self, service: ServicePlan) -> bool:
        return self.epsilon >= service.turning_point


class AggregatesPlan(Frozen):
    """Everything the pipeline needs to know right of the trust boundary."""

    kind: Literal["aggregates"] = "aggregates"
    name: str
    unit: Literal["item"] = "item"
    attributes: tuple[str, ...]
    grid: tuple[Exact, ...]
    """Reports are whole numbers of these."""
    rows: tuple[tuple[int, ...], ...]
    """The catalogue's rows that can bind, in grid units; times the cap where items are counted with one."""
    n_items: int
    n_distinct: int
    catalogue_sha256: str
    cap: int | None
    """How many occurrences of an item count; None where the unit is one occurrence."""
    objective: str
    power: float
    weights: tuple[float, ...] | None
    profiles: tuple[ProfilePlan, ...]
    default: str
    providers: tuple[ProviderPlan, ...]
    laws: tuple[Law, ...]
    expected_users: int
    expected_shares: tuple[float, ...]
    minimum_users: int
    confidence: float

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def worst_total(self) -> Fraction:
        """What all providers together may learn about one item: they may pool their reports, so budgets add."""
        return sum((provider.epsilon for provider in self.providers), Fraction(0))

    @property
    def pooled_ratio(self) -> Fraction:
        """The exact worst ratio towards all providers together, of the profile that tells them most."""
        by_profile = zip(*(provider.services for provider in self.providers), strict=True)
        return max(math.prod((one.overall_ratio for one in services), start=Fraction(1)) for services in by_profile)

    @property
    def profile_names(self) -> tuple[str, ...]:
        return tuple(profile.name for profile in self.profiles)

    @property
    def loss(self) -> Objective:
        return OBJECTIVES.get(self.objective) or Objective.weighted(self.weights or (), self.power)

    @cached_property
    def catalogue(self) -> Catalogue:
        """Reduced, and as its unit has it: capped where items count with a cap."""
        rows = np.array(self.rows, dtype=np.int64)
        return Catalogue(self.attributes, rows, self.grid, self.n_items, self.n_distinct)

    @cached_property
    def budget_ticks(self) -> Units:
        return profile_ticks(self.catalogue, [profile.budgets for profile in self.profiles])

    @cached_property
    def mechanisms(self) -> dict[str, Mechanism]:
        """The noise towards each provider. Refused if this version would draw from other thresholds than planned."""
        for law in self.laws:
            if TwoSidedGeometric.for_ticks(law.ticks) != TwoSidedGeometric(law.digits, law.tail):
                raise ValueError("the plan's thresholds are not those of this version")
        return {
            provider.name: Mechanism(self.catalogue, np.array([one.ticks for one in provider.services], dtype=np.int64))
            for provider in self.providers
        }

    def expected_sizes(self) -> Units:
        sizes: Units = whole_counts(np.asarray(self.expected_shares), self.expected_users).astype(np.int64)
        return sizes

    @property
    def steps(self) -> Floats:
        """The grid as numbers: a report times these is in the aggregates' own units."""
        return np.array([float(step) for step in self.grid])
