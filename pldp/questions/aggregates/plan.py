"""The plan of a release of aggregates: who spends what on which noise, as whole numbers and rationals."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import BeforeValidator, PlainSerializer

from pldp.estimate.simulate import whole_counts
from pldp.questions.aggregates.budgets import profile_ticks
from pldp.questions.aggregates.catalogue import Catalogue, Units
from pldp.questions.aggregates.noise import TwoSidedGeometric, noise_for
from pldp.questions.aggregates.objectives import OBJECTIVES, Floats, Objective
from pldp.questions.aggregates.release import Mechanism
from pldp.questions.aggregates.spec import PROFILE, Unit
from pldp.spec.fields import Frozen

MECHANISM = "geometric"
RESIDUAL = 1e-8
"""What certifies an optimum: the largest relative violation of the optimality conditions."""


def _exact(value: object) -> Fraction:
    return value if isinstance(value, Fraction) else Fraction(str(value))


Exact = Annotated[Fraction, BeforeValidator(_exact), PlainSerializer(str)]
"""A rational of any length."""


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
    """One provider and one profile: the spend on a grid unit of every attribute, and its proof of optimality."""

    profile: str
    ticks: tuple[int, ...]
    turning_point: Exact
    """The ε from which on every attribute gets all that its own budget allows (multiupp Theorem 2)."""
    residual: float
    gap: float
    """Both of the optimum as it was before it was rounded down to ticks."""


class ProviderPlan(Frozen):
    name: str
    epsilon: Exact
    reputation: str | None
    services: tuple[ServicePlan, ...]

    def above_turning_point(self, service: ServicePlan) -> bool:
        return self.epsilon >= service.turning_point


class AggregatesPlan(Frozen):
    """Everything the pipeline needs to know right of the trust boundary."""

    kind: Literal["aggregates"] = "aggregates"
    name: str
    unit: Unit
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
    coarse: bool
    """Whether there are so many spends that they are rounded down to 12 significant bits."""
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
    choice_field: str = PROFILE
    """The vault's column with the position of a user's profile."""

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def worst_total(self) -> Fraction:
        """What all providers together may learn about one item: they may pool their reports, so budgets add."""
        return sum((provider.epsilon for provider in self.providers), Fraction(0))

    @property
    def protected(self) -> str:
        """The unit in words."""
        return "one item" if self.unit == "item" else "one occurrence of an item"

    @property
    def least_profile(self) -> str | None:
        """The profile that allows least on every attribute; None where there is no such one."""
        least = [min(column) for column in zip(*(profile.budgets for profile in self.profiles), strict=True)]
        names = [profile.name for profile in self.profiles if list(profile.budgets) == least]
        return self.default if self.default in names else next(iter(names), None)

    def worst_ratio(self, provider: str) -> Fraction:
        """The exact worst ratio of the profile that tells this provider most."""
        return max(self.mechanisms[provider].overall_ratios)

    @cached_property
    def pooled_ratio(self) -> Fraction:
        """The exact worst ratio towards all providers together, of the profile that tells them most.

        Noises are independent, so ratios multiply. Each provider's worst item is taken: a bound where these differ.
        """
        by_profile = zip(*(mechanism.overall_ratios for mechanism in self.mechanisms.values()), strict=True)
        return max(math.prod(ratios, start=Fraction(1)) for ratios in by_profile)

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
            if noise_for(law.ticks) != TwoSidedGeometric(law.digits, law.tail):
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
