"""How many frequent sets a channel misses and makes up, over the minimum support and over repetitions (aprr 6.2)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pldp.channels.exact import SCALE
from pldp.channels.randomness import Keystream
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.comparators import Grouped
from pldp.questions.items.metrics import identity_errors
from pldp.questions.items.mining import Group, Search, frequent_sets, mine, mine_groups
from pldp.questions.items.pooling import Weigh, alone
from pldp.questions.items.transactions import Columns, Counts, Itemsets

Stream = Callable[[str, int], Keystream]
"""A stream for a method and repetition."""


@dataclass(frozen=True)
class Method:
    """Channels by group of users (`rows`, their true columns), and the weights that pool them."""

    name: str
    channels: Sequence[ItemChannels | Grouped]
    rows: Sequence[Columns]
    weigh: Weigh = alone

    def draw(self, stream: Keystream, rng: np.random.Generator) -> list[Columns]:
        return [
            channel.perturb(of_group, stream, rng)
            if isinstance(channel, Grouped)
            else channel.perturb(of_group, stream)
            for channel, of_group in zip(self.channels, self.rows, strict=True)
        ]


@dataclass(frozen=True)
class Identity:
    """θ⁺ (made up) and θ⁻ (missed) by the number of truly frequent sets, means over repetitions with their errors."""

    method: str
    minimum: float
    truly_frequent: int
    made_up: float
    made_up_error: float
    missed: float
    missed_error: float
    repeats: int


def study(
    methods: Sequence[Method], minima: Sequence[float], search: Search, repeats: int, stream: Stream, seed: int | None
) -> list[Identity]:
    """Every method at every minimum support at which any set is truly frequent."""
    out = []
    for method in methods:
        true = [_true(method.rows, minimum, search.length) for minimum in minima]
        asked = [place for place, sets in enumerate(true) if sets]
        errors = np.empty((repeats, len(asked), 2))
        rng = np.random.default_rng(seed)
        for repeat in range(repeats):
            reports = method.draw(stream(method.name, repeat), rng)
            groups = [
                Group(of_group.n_rows, channel) for of_group, channel in zip(reports, method.channels, strict=True)
            ]

            def count(sets: Itemsets, reports: list[Columns] = reports) -> Counts:
                return np.stack([of_group.count(sets) for of_group in reports], axis=1)

            for column, place in enumerate(asked):
                mined = mine_groups(count, groups, Search(minima[place], search.length, search.reach), method.weigh)
                errors[repeat, column] = identity_errors(true[place], frequent_sets(mined))
        means, spread = errors.mean(axis=0), errors.std(axis=0) / max(repeats - 1, 1) ** 0.5
        for column, place in enumerate(asked):
            made_up, missed = zip(means[column].tolist(), spread[column].tolist(), strict=True)
            out.append(Identity(method.name, minima[place], len(true[place]), *made_up, *missed, repeats))
    return out


def _true(rows: Sequence[Columns], minimum: float, length: int) -> set[tuple[int, ...]]:
    exact = ItemChannels.symmetric((SCALE,) * len(rows[0].words))
    n_rows = sum(of_group.n_rows for of_group in rows)

    def count(sets: Itemsets) -> Counts:
        return np.sum([of_group.count(sets) for of_group in rows], axis=0)

    return frequent_sets(mine(count, n_rows, exact, Search(minimum, length, reach=0)))
