"""Weights that stay honest when the choice of a level may depend on the value: the combination `guarded`.

The spec declares Γ: the holders of any value are at most Γ times likelier, or less likely, to choose any level than
people at large. Then the share f_τ among the people of level τ lies within [L, U]·f, where

    U = min(Γ, (1 − (1−f)/Γ)/f),      L = max(1/Γ, (1 − (1−f)Γ)/f)

(the second parts because those who do *not* hold the value are bounded by Γ too), and Σ π_τ f_τ = f, π_τ = n_τ/n.
Weights w have the bias Σ (w_τ − π_τ)(f_τ − f). Its largest value is exact: with r_τ = w_τ/π_τ − 1, give the upper
bound to the levels of largest r up to a share α = (1−L)/(U−L) of the people, the lower bound to the rest,

    B⁺ = f (U − L) · max { Σ m_τ r_τ : 0 ≤ m_τ ≤ π_τ, Σ m_τ = α },

which is at most f(Γ−1)·Σ|w_τ − π_τ|; B⁻ likewise with the smallest r. The interval's half-width is se·cv(B/se)
(`critical`), and the weights make it shortest along the path that is optimal for Σ|w_τ − π_τ|: mass R is taken from
the noisiest levels and given to the clearest, R = 0 is `sum`, the other end is `oc+` (docs/intervals.md derives it).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.estimate.critical import CONFIDENCE, biased_quantile

_SECTIONS = 20
_GOLDEN = (np.sqrt(5) - 1) / 2
_TABLE = np.linspace(0.0, 10.0, 4001)


@dataclass(frozen=True)
class Noise:
    """Of one report at every level, (level,): about a holder of the value and about anybody else."""

    own: Floats
    other: Floats

    @classmethod
    def of(cls, protocols: tuple[PureProtocol, ...]) -> Noise:
        ends = np.array([protocol.noise_variance(np.array([1.0, 0.0])) for protocol in protocols])
        return cls(ends[:, 0], ends[:, 1])

    def at(self, frequency: Floats) -> Floats:
        """v_τ(f), (…, level, cell); `frequency` is (…, cell), or (…, level, cell) where levels differ."""
        return self.other[:, None] + (self.own - self.other)[:, None] * frequency


def ratio_bounds(frequency: Floats, gamma: float) -> tuple[Floats, Floats]:
    """(L, U) of f_τ/f; where f is 0 or 1 there is nothing to tilt."""
    f = np.clip(frequency, 0, 1)
    safe = np.where(f > 0, f, 1.0)
    upper = np.clip(np.minimum(gamma, (1 - (1 - f) / gamma) / safe), 1, None)
    lower = np.clip(np.maximum(1 / gamma, (1 - (1 - f) * gamma) / safe), 0, 1)
    whole = (f <= 0) | (f >= 1)
    return np.where(whole, 1.0, lower), np.where(whole, 1.0, upper)


def worst_tilt(direction: Floats, shares: Floats, frequency: Floats, gamma: float) -> Floats:
    """f_τ/f, (…, level, cell), that makes Σ π_τ direction_τ f_τ largest under Γ; π = `shares`, (level,)."""
    order = np.argsort(-direction, axis=-2, kind="stable")
    people = np.take_along_axis(np.broadcast_to(shares[:, None], direction.shape), order, axis=-2)
    tilt = np.empty_like(people)
    np.put_along_axis(tilt, order, _filled(people, frequency, gamma), axis=-2)
    return tilt


def _filled(people: Floats, frequency: Floats, gamma: float, *, last: bool = False) -> Floats:
    """The same for sorted levels: the upper bound to the first ones (or the last ones), the lower to the others."""
    lower, upper = ratio_bounds(frequency, gamma)
    width = upper - lower
    part = np.where(width > 0, (1 - lower) / np.where(width > 0, width, 1), 0.0)
    ahead = np.cumsum(people[..., ::-1, :], axis=-2)[..., ::-1, :] if last else np.cumsum(people, axis=-2)
    share = np.clip((part[..., None, :] - (ahead - people)) / people, 0, 1)
    return lower[..., None, :] + share * width[..., None, :]


def tilted_moments(
    weights: Floats, n: Counts, noise: Noise, frequency: Floats, tilt: Floats | float = 1.0
) -> tuple[Floats, Floats]:
    """Bias and variance of Σ w_τ f̂_τ − f where level τ's people hold the value with the share f·tilt_τ.

    Who of the holders chose which level varies, their number does not: with e_τ = f_τ(1 − f_τ) and b_τ = w_τ/n_τ − 1/n
    this part is [Σ n_τ b_τ² e_τ − (Σ n_τ b_τ e_τ)²/Σ n_τ e_τ]·n/(n−1); without tilt it is S² Σ (w_τ − π_τ)²/n_τ.
    """
    sizes = n[:, None].astype(np.float64)
    total = sizes.sum()
    inside = np.clip(frequency[..., None, :] * tilt, 0, 1) * np.ones_like(sizes)
    apart = weights / sizes - 1 / total
    bias = (sizes * apart * inside).sum(axis=-2)
    spread = sizes * inside * (1 - inside)
    all_spread = spread.sum(axis=-2)
    shared = (apart * spread).sum(axis=-2) ** 2 / np.where(all_spread > 0, all_spread, 1)
    chosen = np.maximum((apart**2 * spread).sum(axis=-2) - shared, 0) * total / max(total - 1, 1)
    return bias, (weights**2 * noise.at(inside) / sizes).sum(axis=-2) + chosen


@dataclass(frozen=True)
class Path:
    """The weights between `sum` and `oc+`, levels sorted from the clearest to the noisiest; arrays (…, level, cell)."""

    order: NDArray[np.intp]
    people: Floats
    cost: Floats

    @classmethod
    def of(cls, shares: Floats, cost: Floats) -> Path:
        """`cost` is v_τ + S², so that Σ w_τ² cost_τ/n_τ is the variance up to a constant."""
        order = np.argsort(cost, axis=-2, kind="stable")
        people = np.take_along_axis(np.broadcast_to(shares[:, None], cost.shape), order, axis=-2)
        return cls(order, people, np.take_along_axis(cost, order, axis=-2))

    @cached_property
    def _sums(self) -> tuple[Floats, Floats, Floats, Floats]:
        """People and their information, summed from the clearest level on and from the noisiest back."""
        parts = (self.people, self.people / self.cost)
        ahead = [np.cumsum(part, axis=-2) for part in parts]
        back = [np.cumsum(part[..., ::-1, :], axis=-2) for part in parts]
        return ahead[0], ahead[1], back[0], back[1]

    @property
    def longest(self) -> Floats:
        """The mass that `oc+` moves, (…, cell)."""
        even = 1 / self._sums[1][..., -1:, :]
        return (self.people * np.maximum(1 - even / self.cost, 0)).sum(axis=-2)

    def weights(self, moved: Floats) -> Floats:
        """Of least variance among those with Σ|w_τ − π_τ| = 2·moved, sorted.

        By Lagrange w_τ = π_τ·lo/cost_τ where cost_τ < lo, π_τ·hi/cost_τ where cost_τ > hi, else π_τ. The mass given
        is the largest of Σ_U (π_τ lo/cost_τ − π_τ) over sets U of levels, reached at the clearest ones: so lo is the
        least of (moved + Σ_U π)/(Σ_U π/cost) over these, and hi the largest of (Σ_D π − moved)/(Σ_D π/cost) over the
        noisiest.
        """
        mass, told, mass_back, told_back = self._sums
        amount = moved[..., None, :]
        low = ((amount + mass) / told).min(axis=-2, keepdims=True)
        high = ((mass_back - amount) / told_back).max(axis=-2, keepdims=True)
        raw = self.people * np.maximum(np.minimum(1.0, high / self.cost), low / self.cost)
        weights: Floats = raw / raw.sum(axis=-2, keepdims=True)
        return weights

    def unsorted(self, weights: Floats) -> Floats:
        back = np.empty_like(weights)
        np.put_along_axis(back, self.order, weights, axis=-2)
        return back


def guarded_weights(n: Counts, noise: Noise, frequency: Floats, gamma: float, confidence: float = CONFIDENCE) -> Floats:
    """Weights, (…, level, cell), whose bias-aware half-width at this `frequency` is shortest; `oc+` at Γ = 1.

    The half-width is convex along the path (tests/pldp/test_guarded.py), so golden sections find its least. Along the
    path w_τ/π_τ falls from the clearest level to the noisiest, so the worst tilts are the same for all its weights.
    """
    if not gamma >= 1:
        raise ValueError(f"gamma must be at least 1 (got {gamma:g})")
    total = float(n.sum())
    inside = np.clip(frequency, 0, 1)
    between = (inside * (1 - inside) * total / max(total - 1, 1))[..., None, :]
    path = Path.of(n / total, noise.at(inside[..., None, :]) + between)
    most = path.longest
    if gamma == 1:
        return path.unsorted(path.weights(most))
    up, down = (_filled(path.people, inside, gamma, last=last) * inside[..., None, :] for last in (False, True))
    quantiles = biased_quantile(_TABLE, confidence)

    def half_width(part: Floats) -> Floats:
        weights = path.weights(part * most)
        # Σ w² (v + S²)/n_τ − S²/n, cancelling no worse than the square of what `oc+` gains.
        variance = ((weights**2 * path.cost / path.people).sum(axis=-2) - between[..., 0, :]) / total
        error = np.sqrt(np.maximum(variance, 1e-300))
        away = weights - path.people
        bias = np.maximum(np.abs((away * up).sum(axis=-2)), np.abs((away * down).sum(axis=-2)))
        ratio = bias / error
        return np.asarray(error * (np.interp(ratio, _TABLE, quantiles) + np.maximum(ratio - _TABLE[-1], 0)))

    left, right = np.zeros_like(most), np.ones_like(most)
    a, b = 1 - _GOLDEN * right, _GOLDEN * right
    at_a, at_b = half_width(a), half_width(b)
    for _ in range(_SECTIONS):
        nearer = at_a <= at_b
        left, right = np.where(nearer, left, a), np.where(nearer, b, right)
        kept, at_kept = np.where(nearer, a, b), np.where(nearer, at_a, at_b)
        fresh = np.where(nearer, right - _GOLDEN * (right - left), left + _GOLDEN * (right - left))
        at_fresh = half_width(fresh)
        a, b = np.where(nearer, fresh, kept), np.where(nearer, kept, fresh)
        at_a, at_b = np.where(nearer, at_fresh, at_kept), np.where(nearer, at_kept, at_fresh)
    return path.unsorted(path.weights((left + right) / 2 * most))


def worst_bias(weights: Floats, shares: Floats, frequency: Floats, gamma: float) -> Floats:
    """The larger of B⁺ and B⁻."""
    relative = weights / shares[:, None]
    return np.maximum(
        *(
            np.abs(((weights - shares[:, None]) * worst_tilt(side * relative, shares, frequency, gamma)).sum(axis=-2))
            for side in (1, -1)
        )
    ) * np.clip(frequency, 0, 1)


def guarded_half_width(
    weights: Floats, n: Counts, noise: Noise, frequency: Floats, gamma: float, confidence: float = CONFIDENCE
) -> Floats:
    """se·cv(B/se), the largest over the tilts that bias upwards, downwards, and that are noisiest."""
    shares = n / n.sum()
    relative = weights / shares[:, None]
    loudest = relative**2 * ((noise.own - noise.other) / n)[:, None]
    widths = []
    for direction in (relative, -relative, loudest):
        tilt = worst_tilt(np.broadcast_to(direction, weights.shape), shares, frequency, gamma)
        bias, variance = tilted_moments(weights, n, noise, frequency, tilt)
        error = np.sqrt(np.maximum(variance, 1e-300))
        widths.append(error * biased_quantile(bias / error, confidence))
    return np.max(widths, axis=0)
