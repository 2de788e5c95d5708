"""The plan of a release of frequent items: who reports through which channel, as whole numbers and rationals."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from pldp.channels.exact import within
from pldp.channels.protocol import Counts
from pldp.estimate.answer import gamma_of
from pldp.estimate.simulate import whole_counts
from pldp.questions.items.levels import item_promises, level_budgets
from pldp.questions.items.mining import Search
from pldp.questions.items.padding import Lengths, held_sets_at_most
from pldp.questions.items.padding import within as within_items
from pldp.questions.items.pooling import Weighing
from pldp.questions.items.rowchannels import Bits, OneValue
from pldp.questions.items.sampledrows import Sampled
from pldp.spec.fields import Frozen, Ratio

MOST_CANDIDATES = 1_000_000
"""Sets of one length that mining may look at, so that memory stays bounded."""


class ItemLevel(Frozen):
    """What a user may choose: a share of the budget, and the channel that spends it."""

    level: str
    budget: Ratio
    """What the protocol was given for a whole row."""
    bound: Ratio
    """The most that the exact ε of a whole row may be."""
    channel: Annotated[Bits | OneValue | Sampled, Field(discriminator="kind")]

    @property
    def keeps_bound(self) -> bool:
        ratio = self.channel.worst_ratio
        return ratio is not None and within(ratio, self.bound)


class Origin(Frozen):
    """The release that collected scores, and what it spent."""

    release: str
    epsilon: Ratio


class ItemsPlan(Frozen):
    """What is asked of whom, and what is looked for in the reports."""

    kind: Literal["items"] = "items"
    unit: Literal["user"] = "user"
    items: tuple[str, ...]
    holds: Literal["many", "one"]
    protocol: Literal["bounded", "aprr", "sampling"]
    why: str
    """Why this protocol, in a sentence."""
    n_sensitivities: int | None
    """How many steps of sensitivity the spec tells apart."""
    sensitivity: tuple[int, ...] | None
    """Of each item, 0 the least; None where all are alike."""
    split: Literal["capped", "proportional"] | None = None
    """How protocol bounded shares a row's bound between sensitivities; None where there is nothing to share so."""
    origin: Origin | None
    levels: tuple[ItemLevel, ...]
    """From the strictest to the weakest."""
    default: str
    combination: Literal["oc+", "sum"]
    level_weight_cap: float | None = None
    """How many times its share of the people a level may weigh at most; None is any number."""
    dependence: float | None = 1.0
    """Γ, how far choices of levels may depend on items; None where it is unknown."""
    lengths: Lengths | None = None
    """Of rows, as the spec declares them; None where it says nothing."""
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

    @property
    def weighing(self) -> Weighing:
        """How levels are pooled."""
        return Weighing.of(self.combination, self.level_weight_cap)

    @property
    def covered(self) -> str:
        """How far levels may be chosen by what people hold, in a sentence; empty where there is nothing to choose."""
        if len(self.levels) == 1:
            return ""
        if self.combination == "sum":
            return "intervals hold however the choice of a level depends on what a user holds"
        return (
            "intervals hold if levels are chosen independently of the items: whoever holds an item is as likely as "
            "anybody to choose any level, which is declared and not proven"
        )

    @property
    def row_limits(self) -> str:
        """What sampled rows may hold, in a sentence; empty where none can hold more."""
        channel = self.levels[0].channel
        if not isinstance(channel, Sampled):
            return ""
        few = [] if channel.items.length >= self.row_lengths[-1][0] else [f"{channel.items.length} items"]
        if channel.sets is not None and channel.sets.length < self.held_sets[-1][0]:
            few.append(f"{channel.sets.length} of the sets asked about")
        if not few:
            return ""
        known = "the declared lengths of rows and by their reports" if self.lengths else "their reports"
        return (
            f"users who hold more than {' or '.join(few)} count for less: such supports are lower bounds, at "
            f"least so much, and intervals hold with what is understated at most, by {known}"
        )

    @property
    def row_lengths(self) -> Lengths:
        """How many items rows may hold: as declared, or any of them."""
        return within_items(self.lengths, len(self.items))

    @property
    def held_sets(self) -> Lengths:
        """How many candidate sets rows may hold, whichever the candidates will be."""
        asked = [(size, self.candidates) for size in range(2, max(self.length, 2) + 1)]
        return within_items(held_sets_at_most(self.row_lengths, asked), self.candidates)

    def promises(self, level: ItemLevel) -> tuple[Fraction, ...] | None:
        """The most that the exact ε of each item may be at a level; None where sensitivity promises nothing.

        A value's is aprr's ε_l, an item's what the split says; the whole bound where aprr leaves level 0 open.
        """
        if self.sensitivity is None or self.n_sensitivities is None or self.protocol != "bounded":
            return None
        if self.split == "proportional":
            parts = [self.n_sensitivities - sensitivity for sensitivity in self.sensitivity]
            return tuple(level.budget * part / sum(parts) for part in parts)
        budgets = level_budgets if self.holds == "one" else item_promises
        promised = [level.budget if one is None else one for one in budgets(self.n_sensitivities, level.budget)]
        return tuple(promised[sensitivity] for sensitivity in self.sensitivity)

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
            gamma=gamma_of(self.dependence),
        )

    @property
    def phases(self) -> int:
        """How many parts of the users are asked different things: every other partition is a random half of them, for
        partitions are equal parts by a keyed hash."""
        return self.levels[0].channel.phases

    def expected_sizes(self) -> Counts:
        return whole_counts(np.asarray(self.expected_shares), self.expected_users)
