"""The plan: the spec resolved to who spends what on which mechanism, with integer thresholds. It sees only the spec."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from pldp.allocation import optimal_shares, split
from pldp.brr import BRR
from pldp.exact import BITS, SCALE, float_above, log_above, within
from pldp.inference import Recipe
from pldp.protocol import Counts, Floats, PureProtocol
from pldp.simulate import whole_counts
from pldp.spec import Category, Crosstab, Ratio, Spec

FAMILY = 1e-5
"""The most probable all gates together are to refuse a correct release; half of it is the homogeneity test's."""

PROTOCOLS: dict[str, type[BRR]] = {BRR.name: BRR}
"""By the name a spec and a plan give them. A protocol is a dataclass: its fields are the plan's parameters."""


class Frozen(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, ignored_types=(cached_property,))


class LevelPlan(Frozen):
    """One attribute at one level: the budget and the mechanism that spends it."""

    level: str
    budget: Ratio
    mechanism: str
    parameters: dict[str, int]

    @cached_property
    def protocol(self) -> PureProtocol:
        return PROTOCOLS[self.mechanism](**self.parameters)

    @property
    def nominal_epsilon(self) -> float:
        return float_above(self.budget)

    @property
    def exact_epsilon(self) -> float:
        return log_above(self.protocol.worst_ratio)

    @property
    def keeps_promise(self) -> bool:
        return within(self.protocol.worst_ratio, self.budget)


class AttributePlan(Frozen):
    """One histogram: its values, its budget, and one mechanism a level."""

    name: str
    parts: tuple[str, ...]
    values: tuple[str, ...]
    budget: Ratio
    levels: tuple[LevelPlan, ...]
    assumed: tuple[float, ...]

    @property
    def protocols(self) -> tuple[PureProtocol, ...]:
        return tuple(level.protocol for level in self.levels)

    @property
    def frequencies(self) -> Floats:
        return np.asarray(self.assumed)


class Plan(Frozen):
    """Everything the pipeline needs to know right of the trust boundary."""

    name: str
    unit: str = "user"
    total: Ratio
    levels: tuple[str, ...]
    """From the strictest to the weakest."""
    attributes: tuple[AttributePlan, ...]
    recipe: Recipe
    expected_users: int
    expected_shares: tuple[float, ...]
    minimum_users: int = Field(ge=1)
    one_level_for_all: bool
    perturbed_by: Literal["vault", "clients"]
    """Who draws the reports: the holder of the vault on the users' behalf, or their own clients."""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def cells(self) -> int:
        return sum(len(attribute.values) for attribute in self.attributes)

    @property
    def worst_total(self) -> Fraction:
        """The most any user can spend, whatever levels they choose: mpldp Theorem 5."""
        return sum((max(level.budget for level in a.levels) for a in self.attributes), Fraction(0))

    def expected_sizes(self, users: int | None = None) -> Counts:
        return whole_counts(np.asarray(self.expected_shares), users or self.expected_users)


def make_plan(spec: Spec, total: Fraction | None = None) -> Plan:
    """Resolve a spec; `total` overrides its budget when a target error is being sought."""
    total = total or spec.budget.total
    if total * SCALE < 1:
        # No threshold of a mechanism can express it, and doubles would underflow on the way there.
        raise ValueError(f"a budget below 2^-{BITS} is too small to leave any signal")
    published = spec.published
    sizes = [len(spec.labels(attribute)) for attribute in published]
    budgets = split(total, _shares(spec, sizes, float(total)))
    choices = _strictest_first(spec)
    shares = spec.expected.levels or spec.levels.assigned or dict.fromkeys(choices, Fraction(1, len(choices)))
    return Plan(
        name=spec.name,
        total=total,
        levels=tuple(choices),
        attributes=tuple(
            _attribute_plan(spec, attribute, budget) for attribute, budget in zip(published, budgets, strict=True)
        ),
        recipe=Recipe(
            method=spec.combination.method,
            postprocess=spec.postprocess,
            disagreement=spec.combination.disagreement,
            # A fallback costs only precision, so it may come early; a refusal shares the gates' false alarms.
            alpha=spec.combination.alpha if spec.combination.disagreement == "sum" else FAMILY / 2 / len(published),
            confidence=spec.intervals.confidence,
            population=spec.intervals.target == "population",
            steps=spec.combination.steps,
            sum_to_one=spec.combination.sum_to_one,
        ),
        expected_users=spec.expected.users,
        expected_shares=tuple(float(shares.get(level, 0)) for level in choices),
        minimum_users=spec.gates.minimum_users,
        one_level_for_all=not isinstance(spec.levels.column, dict),
        perturbed_by="vault" if spec.source.reports is None else "clients",
    )


def _shares(spec: Spec, sizes: list[int], total: float) -> Floats:
    allocation = spec.budget.allocation
    if isinstance(allocation, dict):
        stated = np.asarray([float(allocation[attribute.name]) for attribute in spec.published])
        return stated / stated.sum()
    if allocation == "equal":
        return np.full(len(sizes), 1 / len(sizes))
    return optimal_shares(total, sizes)


def _strictest_first(spec: Spec) -> dict[str, Fraction]:
    return dict(sorted(spec.levels.choices.items(), key=lambda choice: choice[1]))


def _attribute_plan(spec: Spec, attribute: Category | Crosstab, budget: Fraction) -> AttributePlan:
    values = spec.labels(attribute)
    levels = []
    for level, share in _strictest_first(spec).items():
        protocol = PROTOCOLS[spec.mechanism].for_budget(len(values), budget * share)
        levels.append(
            LevelPlan(level=level, budget=budget * share, mechanism=spec.mechanism, parameters=asdict(protocol))
        )
    assumed = attribute.assumed or (Fraction(1, len(values)),) * len(values)
    return AttributePlan(
        name=attribute.name,
        parts=tuple(part.name for part in spec.parts(attribute)),
        values=values,
        budget=budget,
        levels=tuple(levels),
        assumed=tuple(float(share) for share in assumed),
    )
