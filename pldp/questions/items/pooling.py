"""One support from several groups of users, each with a channel of its own: users' levels, or the phases of sampling.

f̂ = Σ_g w_g f̂_g with Σ_g w_g = 1 estimates the share among the n users of the release. If the groups are random parts of
them (levels were chosen independently of the items),

    Var(f̂ − f) = Σ_g w_g² v_g / n_g  +  S² (Σ_g w_g² / n_g − 1/n),      S² = f(1−f) · n/(n−1)

noise first, then what it costs that groups are only parts (docs/items.md, 9). With w_g = n_g/n and Σ n_g = n the second
term is zero and nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pldp.estimate.capped import UNCAPPED, water_filled
from pldp.estimate.combine import spread
from pldp.questions.items.levels import Floats
from pldp.questions.items.transactions import Counts, Itemsets

Weigh = Callable[[Itemsets], Floats]
"""Weights of the groups for each set, (set, group); each row sums to one."""
METHODS = ("oc+", "sum")


@dataclass(frozen=True)
class Weighing:
    """`sum`: groups weigh as much as they have people. `oc+`: by their precision, none more than `cap` times that."""

    method: str
    cap: float = UNCAPPED

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise ValueError(f"{self.method!r} is not one of {', '.join(METHODS)}")

    @classmethod
    def of(cls, method: str, cap: float | None) -> Weighing:
        """As a spec has it: without a cap, None."""
        return cls(method, UNCAPPED if cap is None else cap)


BY_SIZE = Weighing("sum")


class ExpectedNoise(Protocol):
    def expected_noise(self, items: NDArray[np.integer], support: float) -> Floats:
        """Noise of one report's estimate of each set, if so many hold it whole and nobody else any of its items."""


def alone(items: Itemsets) -> Floats:
    """The weights of a single group."""
    return np.ones((len(items), 1))


def weigher(weighing: Weighing, channels: Sequence[ExpectedNoise], n: Counts, support: float) -> Weigh:
    """`sum`: by size. `oc+`: ∝ n_g / (v_g + S²) at a stated support, the minimum, up to the cap.

    Weights that do not look at the reports leave the estimate exactly unbiased.
    """
    shares, between = n / n.sum(), support * (1 - support)

    def weigh(items: Itemsets) -> Floats:
        if weighing.method == "sum":
            return np.tile(shares, (len(items), 1))
        noise = np.stack([channel.expected_noise(items, support) for channel in channels])
        return water_filled(shares, noise + between, weighing.cap).T

    return weigh


def pool(
    support: Floats, noise: Floats, n: Counts, weights: Floats, n_users: int, *, population: bool = False
) -> tuple[Floats, Floats]:
    """Supports and standard errors of sets from those of the groups, (set, group); `noise` is that of one report."""
    together = (weights * support).sum(axis=1)
    between = spread(together, n_users)
    apart = (weights**2 / n).sum(axis=1) - 1 / n_users
    variance = (weights**2 * np.maximum(noise, 0) / n).sum(axis=1) + between * np.maximum(apart, 0)
    if population:
        variance += between * (n_users - 1) / n_users**2
    return together, np.sqrt(variance)
