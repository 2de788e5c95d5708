"""Intervals of supports by inverting a test: the noise is that of the support in question, not of the estimate.

An item that nobody holds is often estimated as less than nothing, where the noise of what was seen is smallest; an
interval about it with that noise lies below zero and misses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pldp.channels.protocol import Counts
from pldp.estimate.distributions import norm
from pldp.estimate.guarded import worst_tilt
from pldp.questions.items.levels import Floats
from pldp.questions.items.rowchannels import Bits, OneValue

_FEW = 1e-9
"""A share so small that Γ alone bounds who of those with an item is where."""


def score_ends(
    support: Floats,
    noise: tuple[Floats, Floats],
    n: Counts,
    weights: Floats,
    confidence: float,
    *,
    n_users: int,
    population: bool = False,
    step: Floats | float = 0.0,
    gamma: float = 1.0,
) -> tuple[Floats, Floats]:
    """All f with |f̂ − f| ≤ z √V(f) + step; the noise of a report of those without and with an item, and weights, are
    (…, group). Those with it choose levels as badly as Γ allows.

    V(f) = a + b f − c f², since noise is linear in f and people differ by f(1 − f): the ends solve a quadratic.
    """
    none, whole = leaning(noise, n, weights, gamma)
    parts = weights**2 / n
    spread = np.maximum(parts.sum(axis=-1) - 1 / n_users, 0.0) * n_users / max(n_users - 1, 1) + population / n_users
    a, b = (parts * none).sum(axis=-1), (parts * (whole - none)).sum(axis=-1) + spread
    z2 = float(norm.isf((1 - confidence) / 2)) ** 2
    lead = 1 + z2 * spread
    ends = []
    for side in (-1, 1):
        at = support + side * step
        middle = at + z2 * b / 2
        end = (middle + side * np.sqrt(np.maximum(middle**2 - lead * (at**2 - z2 * a), 0))) / lead
        # Far below zero no support explains the estimate: its own noise, that of nobody, is left.
        ends.append(np.where(side * (end - support) < 0, at + side * np.sqrt(z2 * a), end))
    return ends[0], ends[1]


def leaning(noise: tuple[Floats, Floats], n: Counts, weights: Floats, gamma: float) -> tuple[Floats, Floats]:
    """The same noise where as many of those with an item as Γ allows chose the levels at which they make most of it.

    They are ρ_g times as frequent there as at large, 1/Γ ≤ ρ_g ≤ Γ and Σ π_g ρ_g = 1 (where they are few; of many less
    is possible): their noise counts ρ_g times.
    """
    none, whole, by = (np.asarray(each, dtype=np.float64) for each in np.broadcast_arrays(*noise, weights))
    if gamma == 1 or n.size == 1:
        return none, whole
    shares = n / n.sum()
    most = (by**2 / n * (whole - none) / shares).reshape(-1, n.size).T
    tilt = worst_tilt(most, shares, np.full(most.shape[1], _FEW), gamma)
    return none, none + (whole - none) * tilt.T.reshape(by.shape)


def single_ends(
    support: Floats,
    channels: Sequence[Bits | OneValue],
    n: Counts,
    weights: Floats,
    confidence: float,
    population: bool,
    gamma: float = 1.0,
) -> tuple[Floats, Floats]:
    """Of every item by itself; weights are (item, group). Half a report more, because counts are whole numbers."""
    n_users = int(n.sum())
    shares = np.clip(support, 1 / n_users, 1)
    parts = [_single_noise(channel, shares) for channel in channels]
    none, whole, moves = (np.stack(column, axis=1) for column in zip(*parts, strict=True))
    step = (weights * moves / n).max(axis=1) / 2
    noise = none, whole
    return score_ends(
        support, noise, n, weights, confidence, n_users=n_users, population=population, step=step, gamma=gamma
    )


def _single_noise(channel: Bits | OneValue, shares: Floats) -> tuple[Floats, Floats, Floats]:
    """By item: noise of one report of those without it and of those with it, and what one report moves, times n."""
    if isinstance(channel, Bits):
        q, gap = channel.kernel.false_one, channel.kernel.gap
        p = q + gap
        return q * (1 - q) / gap**2, p * (1 - p) / gap**2, 1 / gap
    inverse = channel.kernel.inverse
    noise = np.maximum(np.square(inverse) @ channel.kernel.matrix.T - np.eye(len(shares)), 0)
    whole = np.diag(noise).copy()
    # Those without it hold the others in proportion to these shares: alike where all are kept with one chance.
    none = (noise @ shares - whole * shares) / (shares.sum() - shares)
    return none, whole, np.diag(inverse) - inverse.min(axis=1)
