"""The plan of a release of frequent items: who reports through which channel, as whole numbers and rationals."""

from __future__ import annotations

import hashlib
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from pldp.channels.exact import within
from pldp.channels.protocol import Counts
from pldp.channels.registry import PROTOCOLS
from pldp.estimate.simulate import whole_counts
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.levels import item_promises, level_budgets
from pldp.questions.items.mining import Search
from pldp.questions.items.sampling import SetSampling
from pldp.questions.items.values import ValueChannel
from pldp.spec.fields import Frozen, Ratio

MOST_CANDIDATES = 1_000_000
"""Sets of one length that mining may look at, so that memory stays bounded."""


class Bits(Frozen):
    """One bit an item: kept with keep_zero / 2^64 where the user has none, keep_one / 2^64 where the user has it."""

    kind: Literal["bits"] = "bits"
    keep_zero: tuple[int, ...]
    keep_one: tuple[int, ...]

    @cached_property
    def channel(self) -> ItemChannels:
        return ItemChannels(self.keep_zero, self.keep_one)

    @cached_property
    def worst_ratio(self) -> Fraction | None:
        return self.channel.row_ratio()

    @property
    def mechanism(self) -> str:
        return "bits"


class OneValue(Frozen):
    """A single value: drawn anew with redraw / 2^64, in proportion to mass."""

    kind: Literal["value"] = "value"
    redraw: tuple[int, ...]
    mass: tuple[int, ...]

    @cached_property
    def channel(self) -> ValueChannel:
        return ValueChannel(self.redraw, self.mass)

    @property
    def worst_ratio(self) -> Fraction | None:
        return self.channel.worst_ratio

    @property
    def mechanism(self) -> str:
        return "value"


class Phase(Frozen):
    """One of `length` places of a row, reported through a frequency protocol."""

    n_values: int
    length: int
    mechanism: str
    parameters: dict[str, int]

    @cached_property
    def sampling(self) -> SetSampling:
        return SetSampling(self.n_values, self.length, PROTOCOLS[self.mechanism](**self.parameters))


class Sampled(Frozen):
    """Half of the users report an item, the other half a candidate set; all of them, where only items are wanted."""

    kind: Literal["sampled"] = "sampled"
    items: Phase
    sets: Phase | None

    @property
    def phases(self) -> tuple[Phase, ...]:
        return (self.items,) if self.sets is None else (self.items, self.sets)

    @property
    def worst_ratio(self) -> Fraction | None:
        """A user is in one phase."""
        return max(phase.sampling.worst_ratio for phase in self.phases)

    @property
    def mechanism(self) -> str:
        return "sampled " + ", ".join(dict.fromkeys(phase.mechanism for phase in self.phases))


class ItemLevel(Frozen):
    """What a user may choose: a share of the budget, and the channel that spends it."""

    level: str
    budget: Ratio
    """What the protocol was given for a whole row."""
    bound: Ratio
    """The most that the exact ε of a whole row may be."""
    way: Annotated[Bits | OneValue | Sampled, Field(discriminator="kind")]

    @property
    def keeps_bound(self) -> bool:
        ratio = self.way.worst_ratio
        return ratio is not None and within(ratio, self.bound)


class Origin(Frozen):
    """The release that collected scores, and what it spent."""

    release: str
    epsilon: Ratio


class ItemsPlan(Frozen):
    """Everything the pipeline needs to know right of the trust boundary."""

    kind: Literal["items"] = "items"
    name: str
    unit: Literal["user"] = "user"
    items: tuple[str, ...]
    holds: Literal["many", "one"]
    protocol: Literal["bounded", "aprr", "sampling"]
    why: str
    """Why this protocol, in a sentence."""
    n_levels: int | None
    sensitivity: tuple[int, ...] | None
    """Levels of the items, 0 the least; None where all are alike."""
    split: Literal["capped", "proportional"] | None = None
    """How protocol bounded shares a row's bound between sensitivities; None where there is nothing to share so."""
    origin: Origin | None
    levels: tuple[ItemLevel, ...]
    """From the strictest to the weakest."""
    default: str
    combination: Literal["oc+", "sum"]
    minimum_support: float
    length: int
    """Of the longest sets that are looked for: as asked, or less where the noise would drown longer ones."""
    asked_length: int
    reach: float
    minimum_confidence: float
    confidence: float
    population: bool
    candidates: int
    """Sets that the second half of a sampled release is asked about."""
    expected_users: int
    expected_shares: tuple[float, ...]
    minimum_users: int

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.model_dump_json().encode()).hexdigest()

    @property
    def worst_total(self) -> Fraction:
        """The most a user can spend, whatever level they choose: the declared bound of the weakest."""
        return max(level.bound for level in self.levels)

    @property
    def level_names(self) -> tuple[str, ...]:
        return tuple(level.level for level in self.levels)

    @property
    def keeps_bounds(self) -> bool:
        return all(level.keeps_bound for level in self.levels)

    def promises(self, level: ItemLevel) -> tuple[Fraction, ...] | None:
        """The most that the exact ε of each item may be at a level; None where sensitivity promises nothing.

        A value's is aprr's ε_l, an item's what the split says; the whole bound where aprr leaves level 0 open.
        """
        if self.sensitivity is None or self.n_levels is None or self.protocol != "bounded":
            return None
        if self.split == "proportional":
            parts = [self.n_levels - own for own in self.sensitivity]
            return tuple(level.budget * part / sum(parts) for part in parts)
        budgets = level_budgets if self.holds == "one" else item_promises
        promised = [level.budget if own is None else own for own in budgets(self.n_levels, level.budget)]
        return tuple(promised[own] for own in self.sensitivity)

    @cached_property
    def search(self) -> Search:
        return Search(
            self.minimum_support,
            self.length,
            self.reach,
            self.confidence,
            self.population,
            most_candidates=MOST_CANDIDATES,
            stop=True,
        )

    @property
    def phases(self) -> int:
        """How many halves of the users are asked different things."""
        way = self.levels[0].way
        return len(way.phases) if isinstance(way, Sampled) else 1

    def phase_of(self, partition: int) -> int:
        """Partitions are equal parts of all users by a keyed hash, so every other one is a random half."""
        return partition % self.phases

    def expected_sizes(self) -> Counts:
        return whole_counts(np.asarray(self.expected_shares), self.expected_users)
