"""One support from several groups of users, each with a channel of its own: users' levels, or the phases of sampling.

f̂ = Σ_g w_g f̂_g with Σ_g w_g = 1 estimates the share among the n users of the release. If the groups are random parts of
them (levels were chosen independently of the items),

    Var(f̂ − f) = Σ_g w_g² v_g / n_g  +  S² (Σ_g w_g² / n_g − 1/n),      S² = f(1−f) · n/(n−1)

noise first, then what it costs that groups are only parts (docs/items.md, 9). With w_g = n_g/n and Σ n_g = n the second
term is zero and nothing is assumed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from pldp.questions.items.levels import Floats
from pldp.questions.items.transactions import Counts, Itemsets

Weigh = Callable[[Itemsets], Floats]
"""Weights of the groups for each set, (set, group); each row sums to one."""
METHODS = ("oc+", "sum")


class ExpectedNoise(Protocol):
    def expected_noise(self, items: NDArray[np.integer], support: float) -> Floats:
        """Noise of one report's estimate of each set, if so many hold it whole and nobody else any of its items."""


def alone(items: Itemsets) -> Floats:
    """The weights of a single group."""
    return np.ones((len(items), 1))


def weigher(method: str, channels: Sequence[ExpectedNoise], n: Counts, support: float) -> Weigh:
    """`sum`: by size. `oc+`: ∝ n_g / (v_g + S²) at a stated support, the minimum.

    Weights that do not look at the reports leave the estimate exactly unbiased.
    """
    if method not in METHODS:
        raise ValueError(f"{method!r} is not one of {', '.join(METHODS)}")
    between = support * (1 - support)

    def weigh(items: Itemsets) -> Floats:
        if method == "sum":
            raw = np.tile(n.astype(np.float64), (len(items), 1))
        else:
            noise = np.stack([channel.expected_noise(items, support) for channel in channels], axis=1)
            raw = n / (noise + between)
        return raw / raw.sum(axis=1, keepdims=True)

    return weigh


def pool(
    support: Floats, noise: Floats, n: Counts, weights: Floats, n_users: int, *, population: bool = False
) -> tuple[Floats, Floats]:
    """Supports and standard errors of sets from those of the groups, (set, group); `noise` is that of one report."""
    together = (weights * support).sum(axis=1)
    spread = between(together, n_users)
    apart = (weights**2 / n).sum(axis=1) - 1 / n_users
    variance = (weights**2 * np.maximum(noise, 0) / n).sum(axis=1) + spread * np.maximum(apart, 0)
    if population:
        variance += spread * (n_users - 1) / n_users**2
    return together, np.sqrt(variance)


def between(support: Floats, n_users: int) -> Floats:
    """S², the variance between users."""
    inside = np.clip(support, 0, 1)
    return inside * (1 - inside) * n_users / max(n_users - 1, 1)
