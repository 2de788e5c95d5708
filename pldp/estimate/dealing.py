"""Who has which level in the repetitions of an evaluation: dealt by chance, as people chose, or by what they hold.

`levels.dependence` Γ allows holders of a value to be Γ times likelier, or less likely, to choose a level than people at
large. Dealing by what people hold goes as far as that: one group of holders leans towards the weaker levels (or the
stricter), as strongly as Γ allows them and everybody else, and levels keep their sizes. A group of at most 1/(1 + Γ) of
all people can go to the bounds themselves; so values are dealt in such groups, one after the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Counts
from pldp.estimate.guarded import worst_tilt
from pldp.estimate.simulate import draw_levels, whole_counts

BY_CHANCE, AS_STATED = "by chance", "as stated"
SIDES = {"weaker": 1, "stricter": -1}
"""Which levels the holders lean towards, and the direction in a plan's order, the strictest level first."""

Deal = Callable[[int, np.random.Generator], Counts]
"""Counts of so many repetitions, (repeat, level, value)."""
Mask = NDArray[np.bool_]


def by_chance(level_counts: Counts) -> Deal:
    """The same people dealt out to levels of the same sizes, whatever they hold: the plan's assumption."""
    counts, sizes = level_counts.sum(axis=0), level_counts.sum(axis=1)
    return lambda repeats, rng: draw_levels(counts, sizes, repeats, rng)


def as_stated(level_counts: Counts) -> Deal:
    """Everybody at the own level, every time."""
    return lambda repeats, _: np.broadcast_to(level_counts, (repeats, *level_counts.shape))


def by_value(level_counts: Counts, leaning: Mask, gamma: float, side: int) -> Deal:
    """Holders of the values in `leaning` lean to one side as far as Γ allows; within both groups chance deals."""
    counts, sizes = level_counts.sum(axis=0), level_counts.sum(axis=1)
    held, others = np.where(leaning, counts, 0), np.where(leaning, 0, counts)
    inside = leaning_sizes(sizes, int(held.sum()), gamma, side)

    def deal(repeats: int, rng: np.random.Generator) -> Counts:
        lean = draw_levels(held, inside, repeats, rng)
        return np.asarray(lean + draw_levels(others, sizes - inside, repeats, rng))

    return deal


def leaning_sizes(sizes: Counts, holders: int, gamma: float, side: int) -> Counts:
    """How many of the holders each level has: the bounds of Γ to the levels that they lean to and from."""
    inside = np.zeros_like(sizes)
    chosen = sizes > 0
    shares = sizes[chosen] / sizes.sum()
    order = side * np.arange(shares.size, dtype=np.float64)[:, None]
    tilt = worst_tilt(order, shares, np.array([holders / sizes.sum()]), gamma)[:, 0]
    inside[chosen] = whole_counts(shares * tilt, holders)
    return inside


def leaning_groups(counts: Counts, gamma: float) -> Iterator[Mask]:
    """Every value in one group, each of at most 1/(1 + Γ) of all people; a value that more hold is one by itself."""
    most = counts.sum() / (1 + gamma)
    groups: list[list[int]] = []
    filled: list[int] = []
    for value in np.argsort(-counts, kind="stable").tolist():
        size = int(counts[value])
        place = next((i for i, people in enumerate(filled) if people + size <= most), len(groups))
        if place == len(groups):
            groups.append([])
            filled.append(0)
        groups[place].append(value)
        filled[place] += size
    for group in groups:
        yield np.isin(np.arange(counts.size), group)


def above(values: NDArray[np.uint32], gamma: float) -> Mask:
    """People with the largest numbers, at most 1/(1 + Γ) of them, or all who share the largest; nobody if all do."""
    cut = np.quantile(values, gamma / (1 + gamma), method="higher")
    leaning = values > cut
    if not leaning.any():
        leaning = values == cut
    return np.zeros_like(leaning) if leaning.all() else leaning


def people_by_value(
    levels: NDArray[np.uint8], leaning: Mask, gamma: float, side: int, rng: np.random.Generator
) -> NDArray[np.uint8]:
    """Everybody's level, dealt anew: those of the mask lean to one side as far as Γ allows."""
    sizes = np.bincount(levels)
    inside = leaning_sizes(sizes, int(leaning.sum()), gamma, side)
    dealt = np.empty_like(levels)
    for mine, of_level in ((leaning, inside), (~leaning, sizes - inside)):
        dealt[mine] = rng.permutation(np.repeat(np.arange(sizes.size, dtype=levels.dtype), of_level))
    return dealt
