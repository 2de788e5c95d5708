"""The plan: the spec resolved to who spends what on which mechanism, with integer thresholds."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from math import prod
from typing import Literal

import numpy as np
from pydantic import Field

from pldp.channels.exact import float_above, log_above, within
from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.channels.registry import PROTOCOLS
from pldp.estimate.inference import Recipe
from pldp.estimate.simulate import whole_counts
from pldp.privacy.leak import level_leak
from pldp.questions.numbers.plan import NumbersPlan
from pldp.spec.fields import Frozen, Ratio

NUMBER_CELLS = 4
"""A number of a user is a code of four bytes where a value is a bit: partitions hold fewer users."""

FAMILY = 1e-5
"""The most probable all gates together are to refuse a correct release; half of it is the homogeneity test's."""


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
    columns: tuple[str, ...] = ()
    """The source's columns behind its parts; the parts' names where a stored plan does not say."""
    values: tuple[str, ...]
    budget: Ratio
    levels: tuple[LevelPlan, ...]
    assumed: tuple[float, ...]
    edges: tuple[float, ...] = ()
    """Of the bins, where the values are bins of a number."""
    probabilities: tuple[float, ...] = ()
    """Of the quantiles that are published beside the bins."""

    @property
    def protocols(self) -> tuple[PureProtocol, ...]:
        return tuple(level.protocol for level in self.levels)

    @property
    def frequencies(self) -> Floats:
        return np.asarray(self.assumed)


class HiddenPlan(Frozen):
    """How the level itself is reported, and how much all reports of a user may tell about it."""

    budget: Ratio
    parameters: dict[str, int]
    max_leak: Ratio

    @cached_property
    def protocol(self) -> KRR:
        """k-RR over the levels: one report a user, repeated beside every value report that the level rules."""
        return KRR(**self.parameters)


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
    hidden: HiddenPlan | None = None
    """Where levels are hidden: one protocol an attribute, one unordered file of reports, nothing by level."""
    numbers: NumbersPlan | None = None
    """Means and quantiles, where the spec asks for them."""
    perturbed_by: Literal["vault", "clients"]
    """Who draws the reports: the holder of the vault on the users' behalf, or their own clients."""

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def tested(self) -> int:
        """How many attributes are tested for agreement between their levels or classes."""
        return len(self.attributes) + (0 if self.numbers is None else self.numbers.columns)

    @property
    def cells(self) -> int:
        """What a user takes of a partition."""
        numbers = 0 if self.numbers is None else NUMBER_CELLS * (self.numbers.columns + len(self.numbers.questions))
        return sum(len(attribute.values) for attribute in self.attributes) + numbers

    @property
    def worst_total(self) -> Fraction:
        """The most any user can spend, whatever levels they choose: mpldp Theorem 5."""
        numbers = Fraction(0) if self.numbers is None else max(level.budget for level in self.numbers.levels)
        return sum((max(level.budget for level in a.levels) for a in self.attributes), numbers)

    def leak(self, attributes: Sequence[AttributePlan] | None = None) -> Fraction | None:
        """What reports tell about the level, as the worst ratio of probabilities at one value; None where public.

        Of these attributes together with one report about the level; of all reports of a user, unless they are given.
        Where attributes have levels of their own, people may choose alike everywhere: the leaks multiply.
        """
        if self.hidden is None:
            return None
        ruled = [[a] for a in self.attributes] if not self.one_level_for_all else [list(self.attributes)]
        groups = ruled if attributes is None else [list(attributes)]
        found = [level_leak([a.protocols for a in group], self.hidden.protocol) for group in groups]
        bounded = [leak for leak in found if leak is not None]
        if len(bounded) < len(found):
            raise ValueError("hidden levels need one protocol and alphabet an attribute")
        return prod(bounded, start=Fraction(1))

    def expected_sizes(self, users: int | None = None) -> Counts:
        return whole_counts(np.asarray(self.expected_shares), users or self.expected_users)
