"""The weights of levels between `sum` and `oc+`, and which of them `guarded` takes at a hypothesised share.

The half-width of a bias-aware interval is se·cv(B/se) (`critical`). It rises with both variance and bias, so the best
weights have the least variance at some bias. For the bias M·Σ|w_τ − π_τ| these lie on one path: mass R is taken from
the noisiest levels and given to the clearest, R = 0 is `sum`, the other end is `oc+` (docs/intervals.md derives it).

A test of one share f should take the shortest place on the path. But tests of neighbouring shares with different
weights see different estimates: if people depend on their values as far as Γ allows, T(f) moves by B(f)/f while f moves
from one hypothesis to the next, and the hull of what is accepted is longer than any single test's reach, by
1/(1 − slope of T). So the place moves towards `sum` early and gradually: the slope that it causes at the worst choice
stays below what is gained against `sum`, slope ≤ 1 − h(f)/(LONGEST·h_sum(f)), and no interval is longer than LONGEST
times that of `sum`. Each test remains valid by itself: nothing of this looks at the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Counts, Floats
from pldp.estimate.critical import CONFIDENCE, biased_quantile
from pldp.estimate.guarded import Noise, filled

LONGEST = 1.015
"""How much longer than that of `sum` an interval may become at most; 1.02 is promised."""
_SWEEPS = 4
_PLACES = np.linspace(0.0, 1.0, 129)
_TABLE = np.linspace(0.0, 10.0, 4001)


@dataclass(frozen=True)
class Path:
    """Levels sorted from the clearest to the noisiest; arrays (…, level, cell)."""

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
        mass, information, mass_back, information_back = self._sums
        amount = moved[..., None, :]
        low = ((amount + mass) / information).min(axis=-2, keepdims=True)
        high = ((mass_back - amount) / information_back).max(axis=-2, keepdims=True)
        raw = self.people * np.maximum(np.minimum(1.0, high / self.cost), low / self.cost)
        weights: Floats = raw / raw.sum(axis=-2, keepdims=True)
        return weights

    def unsorted(self, weights: Floats) -> Floats:
        back = np.empty_like(weights)
        np.put_along_axis(back, np.broadcast_to(self.order, weights.shape), weights, axis=-2)
        return back


@dataclass(frozen=True)
class Guard:
    """Half-widths and biases along the path of every hypothesised share; `place` runs from 0, `sum`, to 1, `oc+`."""

    path: Path
    share: Floats
    between: Floats
    total: float
    gamma: float
    confidence: float

    @classmethod
    def of(cls, n: Counts, noise: Noise, share: Floats, gamma: float, confidence: float = CONFIDENCE) -> Guard:
        if not gamma >= 1:
            raise ValueError(f"gamma must be at least 1 (got {gamma:g})")
        total = float(n.sum())
        inside = np.clip(share, 0, 1)
        between = inside * (1 - inside) * total / max(total - 1, 1)
        path = Path.of(n / total, noise.at(inside[..., None, :]) + between[..., None, :])
        return cls(path, inside, between, total, gamma, confidence)

    @cached_property
    def _tilts(self) -> tuple[Floats, Floats]:
        """Shares by level where Γ is used up. Along the path w_τ/π_τ falls from the clearest level to the noisiest, so
        the worst tilts are the same for all its weights."""
        up, down = (filled(self.path.people, self.share, self.gamma, last=last) for last in (False, True))
        return up * self.share[..., None, :], down * self.share[..., None, :]

    @cached_property
    def _quantiles(self) -> Floats:
        return biased_quantile(_TABLE, self.confidence)

    def widths(self, place: Floats) -> tuple[Floats, Floats]:
        """The half-width at a place, (…, share), and the worst bias."""
        weights = self.path.weights(place * self.path.longest)
        # Σ w² (v + S²)/n_τ − S²/n, cancelling no worse than the square of what `oc+` gains.
        variance = ((weights**2 * self.path.cost / self.path.people).sum(axis=-2) - self.between) / self.total
        error = np.sqrt(np.maximum(variance, 1e-300))
        away = weights - self.path.people
        up, down = self._tilts
        bias = np.maximum(np.abs((away * up).sum(axis=-2)), np.abs((away * down).sum(axis=-2)))
        ratio = bias / error
        half = error * (np.interp(ratio, _TABLE, self._quantiles) + np.maximum(ratio - _TABLE[-1], 0))
        return np.asarray(half), np.asarray(bias)

    def shortest(self) -> Floats:
        """The place of the shortest half-width: it is convex along the path, so the least of a parabola through the
        best of a few places and its neighbours is near enough."""
        if self.gamma == 1:
            return np.ones_like(self.share)
        places = _PLACES.reshape(-1, *(1,) * self.share.ndim) * np.ones_like(self.share)
        half, _ = self.widths(places)
        best = half.argmin(axis=0)
        inner = np.clip(best, 1, _PLACES.size - 2)
        before, at, after = (np.take_along_axis(half, (inner + step)[None], axis=0)[0] for step in (-1, 0, 1))
        bend = before - 2 * at + after
        step = np.where(bend > 0, (before - after) / (2 * np.where(bend > 0, bend, 1)), 0.0)
        tabled, between = best / (_PLACES.size - 1), np.clip((inner + np.clip(step, -1, 1)) / (_PLACES.size - 1), 0, 1)
        return np.where(self.widths(between)[0] < half.min(axis=0), between, tabled)

    def gradual(self, kept: NDArray[np.bool_] | None = None) -> Floats:
        """Places of rising shares, (share,), that keep intervals within `LONGEST` of those of `sum`; `kept` ones are
        `sum` itself.

        With m = min(f, 1 − f) and b = B/m the estimate moves by m₀·Δb from one hypothesis to the next if people choose
        as badly as Γ allows, m₀ of the true share. Where f is an end of the interval the truth is typically h further
        in: m₀ = m + h. Sweeps from either end lower what rises faster than it gains, until neither finds anything.
        """
        best = self.shortest()
        if self.gamma == 1:
            return best
        if kept is not None:
            best = np.where(kept, 0.0, best)
        half, bias = self.widths(_PLACES[:, None] * best)  # places up to the best one, (place, share)
        rare = np.maximum(np.minimum(self.share, 1 - self.share), 1e-300)
        slope, factor = 1 - half / (LONGEST * half[0]), bias / rare
        steps = np.diff(self.share)
        part, last = np.ones(self.share.size), self.share.size - 1
        for sweep in range(_SWEEPS):
            for i in range(1, last + 1) if sweep % 2 else range(last - 1, -1, -1):
                before = i - 1 if sweep % 2 else i + 1
                at = float(part[before])
                risen, allowed = np.interp(at, _PLACES, factor[:, before]), np.interp(at, _PLACES, slope[:, before])
                gap = steps[min(i, before)] / (rare[i] + half[:, i])
                part[i] = min(part[i], _largest(factor[:, i] - (slope[:, i] + allowed) / 2 * gap - risen))
        return part * best

    def weights(self, place: Floats) -> Floats:
        """(…, level, share), in the levels' own order."""
        return self.path.unsorted(self.path.weights(place * self.path.longest))


def _largest(excess: Floats) -> float:
    """The largest place at which nothing is in excess, between the tabled ones."""
    fine = np.flatnonzero(excess <= 0)
    last = int(fine[-1]) if fine.size else 0
    if last == excess.size - 1:
        return 1.0
    over = excess[last + 1] - excess[last]
    step = -excess[last] / over if over > 0 else 0.0
    return float(_PLACES[last] + np.clip(step, 0, 1) * (_PLACES[last + 1] - _PLACES[last]))


def guarded_weights(n: Counts, noise: Noise, share: Floats, gamma: float, confidence: float = CONFIDENCE) -> Floats:
    """Weights, (…, level, share), whose bias-aware half-width at each share by itself is shortest; `oc+` at Γ = 1."""
    guard = Guard.of(n, noise, share, gamma, confidence)
    return guard.weights(guard.shortest())
