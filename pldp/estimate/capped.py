"""Levels that may weigh no more than a stated multiple of their people: w_τ ≤ c·π_τ, π_τ = n_τ/n, c ≥ 1.

m fakes at level τ move a share by w_τ·m/(n_τ + m)·(1 − q_τ)/(p_τ − q_τ) at most, so a cap bounds what the weakest level
gives them: each counts for at most c people of that level in `sum`. c = 1 is `sum` itself.

Weights of least variance Σ w_τ² cost_τ/π_τ under the cap are those of water filled into vessels of height c:

    w_τ = π_τ·min(c, λ/cost_τ),    Σ w_τ = 1    ⇒    λ = max over k of (1 − c·Σ_{τ ≤ k} π_τ) / Σ_{τ > k} π_τ/cost_τ,

levels from the clearest to the noisiest: Σ min(c π_τ, λ π_τ/cost_τ) is the least over all sets of capped levels of what
these and the others come to, and the least has the clearest ones. Between `sum` and this end lies a path as without a
cap (`path`): the mass R that is taken from the noisiest levels goes to the clearest until they are full.
Nothing here looks at reports, so tests with capped weights are as valid as those with any others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from pldp.channels.protocol import Counts, Floats
from pldp.estimate.critical import CONFIDENCE
from pldp.estimate.guarded import Noise
from pldp.estimate.path import Guard, Path

UNCAPPED = math.inf
_NO_COST = 1e-150


@dataclass(frozen=True)
class CappedPath(Path):
    """The path of weights that keep the cap; `cap` is c."""

    cap: float

    @classmethod
    def along(cls, path: Path, cap: float) -> CappedPath:
        if not cap >= 1:
            raise ValueError(f"a cap on weights must be at least 1 (got {cap:g})")
        return cls(path.order, path.people, path.cost, cap)

    @cached_property
    def level(self) -> Floats:
        """λ, (…, 1, cell)."""
        mass, precision, _, _ = self._sums
        none = np.zeros_like(mass[..., :1, :])
        full = np.concatenate([none, mass[..., :-1, :]], axis=-2)
        left = precision[..., -1:, :] - np.concatenate([none, precision[..., :-1, :]], axis=-2)
        return np.asarray(((1 - self.cap * full) / left).max(axis=-2, keepdims=True))

    @property
    def longest(self) -> Floats:
        """The mass that moves at the end of least variance, (…, cell)."""
        filled = np.minimum(self.cap, self.level / self.cost)
        return np.asarray((self.people * np.maximum(filled - 1, 0)).sum(axis=-2))

    @cached_property
    def _poured(self) -> tuple[Floats, Floats]:
        """Levels of water at which a vessel begins to fill or is full, rising, and the mass that is poured in there."""
        breaks = np.sort(np.concatenate([self.cost, self.cap * self.cost], axis=-2), axis=-2)
        heights = np.clip(breaks[..., :, None, :] / self.cost[..., None, :, :], 1, self.cap) - 1
        return breaks, (heights * self.people[..., None, :, :]).sum(axis=-2)

    def weights(self, moved: Floats) -> Floats:
        """Of least variance among those that keep the cap and have Σ|w_τ − π_τ| = 2·moved, sorted."""
        _, _, mass_back, precision_back = self._sums
        breaks, poured = self._poured
        amount = moved[..., None, :]
        shape = np.broadcast_shapes(poured.shape, (*amount.shape[:-2], 1, amount.shape[-1]))
        breaks, poured = np.broadcast_to(breaks, shape), np.broadcast_to(poured, shape)
        last = breaks.shape[-2] - 1
        # Mass is linear in the height of the water between two breaks.
        at = np.clip((poured < amount).sum(axis=-2, keepdims=True) - 1, 0, last - 1)
        low, high = (np.take_along_axis(breaks, at + step, axis=-2) for step in (0, 1))
        before, after = (np.take_along_axis(poured, at + step, axis=-2) for step in (0, 1))
        rise = np.where(after > before, after - before, 1.0)
        water = low + np.clip((amount - before) / rise, 0, 1) * (high - low)
        drained = ((mass_back - amount) / precision_back).max(axis=-2, keepdims=True)
        # Where one level is full and the next not begun, rounding must not take the water to the next one's height.
        water = np.minimum(water, drained)
        raw = self.people * np.maximum(np.minimum(1.0, drained / self.cost), np.minimum(self.cap, water / self.cost))
        weights: Floats = raw / raw.sum(axis=-2, keepdims=True)
        return weights


def limited(guard: Guard, cap: float) -> Guard:
    """The same choice of weights on the path of those that keep the cap."""
    if cap == UNCAPPED:
        return guard
    return replace(guard, path=CappedPath.along(guard.path, cap))


def capped_guarded(
    n: Counts, noise: Noise, share: Floats, gamma: float, confidence: float = CONFIDENCE, cap: float = UNCAPPED
) -> Floats:
    """Weights, (…, level, share), whose bias-aware half-width at each share by itself is shortest under the cap."""
    guard = limited(Guard.of(n, noise, share, gamma, confidence), cap)
    return guard.weights(guard.shortest())


def water_filled(shares: Floats, cost: Floats, cap: float) -> Floats:
    """Weights of least Σ w_τ² cost_τ/π_τ with w_τ ≤ cap·π_τ; `cost` is (…, level, cell), `shares` (level,).

    Levels that cost nothing (of a single value, which everybody has, there is no noise) share everything by size.
    """
    cost = np.maximum(cost, _NO_COST)
    if cap == UNCAPPED:
        raw = shares[:, None] / cost
    else:
        path = CappedPath.along(Path.of(shares, cost), cap)
        raw = path.unsorted(path.people * np.minimum(cap, path.level / path.cost))
    weights: Floats = raw / raw.sum(axis=-2, keepdims=True)
    return weights


def cap_sentence(cap: float | None) -> str:
    """For plan and statement; empty where there is no cap."""
    if cap is None:
        return ""
    return (
        f"no level weighs more than {cap:g} times its share of the people, which bounds what many reports at a weak "
        "level move"
    )
