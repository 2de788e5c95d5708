"""Score intervals by roots and by bisection: what sql/65 and sql/67 publish, said again for tests.

    { f : |f̂ − f| ≤ z σ(f) },      σ²(f) = base + slope·f − bend·f²

A Wald interval takes σ at the estimate, where a rare value seems to have no noise; the test takes it at the value in
question (docs/intervals.md). For fixed weights of a linear estimator σ² is a quadratic, so the ends are its roots.
Contrasts of two groups have a second unknown that the noise depends on; it is held at its estimate, moved as little as
the hypothesis needs, and the ends are found by bisection. Arrays may have leading dimensions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pldp.channels.protocol import Counts, Floats
from pldp.estimate.score import ContrastNoise, Interval

_HALVINGS = 60


@dataclass(frozen=True)
class Curve:
    """σ²(f) = base + slope·f − bend·f², one entry per cell; base and bend are not negative."""

    base: Floats
    slope: Floats
    bend: Floats

    def __call__(self, frequency: Floats) -> Floats:
        return self.base + self.slope * frequency - self.bend * frequency**2


def linear_curve(weights: Floats, n: Counts, held: Floats, other: Floats, *, population: bool = False) -> Curve:
    """Variance of Σ_τ w_τ f̂_τ − f over the hypothesised f, the weights being fixed (docs/methods.md section 7).

    `weights` is (…, level, cell); `held` and `other` are the noise of one report about a holder and about anybody else,
    (level,). With `population` the error is against the share behind the n users.
    """
    sizes = n[:, None].astype(np.float64)
    total = sizes.sum()
    noise = weights**2 / sizes
    between = ((weights - sizes / total) ** 2 / sizes).sum(axis=-2) * total / max(total - 1, 1)
    if population:
        between = noise.sum(axis=-2)
    base = (noise * other[:, None]).sum(axis=-2)
    return Curve(base, (noise * (held - other)[:, None]).sum(axis=-2) + between, between)


def score_interval(frequency: Floats, curve: Curve, z: float) -> Interval:
    """The roots of (f̂ − f)² = z² σ²(f), cut to [0, 1].

    With a = 1 + z²·bend, b = f̂ + z²·slope/2, c = f̂² − z²·base they are (b ± √(b² − ac))/a. An estimate so far outside
    [0, 1] that not even the bound is accepted counts as the furthest one that is: it cannot speak against the bound.
    This rejects nothing that would otherwise be accepted.
    """
    least = -z * np.sqrt(curve.base)
    most = 1 + z * np.sqrt(np.maximum(curve(np.ones_like(curve.base)), 0.0))
    f = np.clip(frequency, least, most)
    a = 1 + z**2 * curve.bend
    b = f + z**2 * curve.slope / 2
    c = f**2 - z**2 * curve.base
    root = np.sqrt(np.maximum(b**2 - a * c, 0.0))
    return Interval(np.clip((b - root) / a, 0, 1), np.clip((b + root) / a, 0, 1))


def invert(
    estimate: Floats, variance: Callable[[Floats], Floats], z: float, least: float = 0.0, most: float = 1.0
) -> Interval:
    """The ends of the accepted values around the estimate, within [least, most], by bisection.

    `variance` gives σ² at a hypothesised value, elementwise. Between the estimate and the outermost value the
    rejected ones are taken to lie outside of the accepted ones; `score_interval` needs no such assumption.
    """
    centre = np.clip(np.asarray(estimate, dtype=np.float64), least, most)
    ends = (z * np.sqrt(np.maximum(variance(np.full_like(centre, bound)), 0.0)) for bound in (least, most))
    possible = np.clip(estimate, least - next(ends), most + next(ends))  # as in `score_interval`

    def end(outer: float) -> Floats:
        inside, outside = centre.copy(), np.full_like(centre, outer)
        accepted = np.abs(possible - outside) <= z * np.sqrt(np.maximum(variance(outside), 0.0))
        for _ in range(_HALVINGS):
            middle = (inside + outside) / 2
            holds = np.abs(possible - middle) <= z * np.sqrt(np.maximum(variance(middle), 0.0))
            inside, outside = np.where(holds, middle, inside), np.where(holds, outside, middle)
        return np.where(accepted, outer, inside)

    return Interval(end(least), end(most))


def contrast_interval(
    estimate: Floats,
    total: Floats,
    weights: Floats,
    n: Counts,
    noises: tuple[ContrastNoise, ...],
    z: float,
    *,
    population: bool = False,
) -> Interval:
    """Of F_A − F_B (or of one group's share, where every `second` is 0), by inverting the test.

    `estimate` and `total` are the combined estimates of F_A − F_B and F_A + F_B, `weights` (…, level, contrast). At a
    hypothesised difference D the total is its estimate, no less than that of |D|, kept within [|D|, 1]; then
    F_A = (total + D)/2, and users differ by S² = (total − D²)·n/(n−1): nobody holds both.
    """
    sizes = n[:, None].astype(np.float64)
    users = sizes.sum()
    noise = weights**2 / sizes
    uneven = ((weights - sizes / users) ** 2 / sizes).sum(axis=-2) + (1 / users if population else 0.0)
    between = uneven * users / max(users - 1, 1)
    parts = [
        (noise * np.array([getattr(level, part) for level in noises])[:, None]).sum(axis=-2)
        for part in ("first", "second", "neither")
    ]
    one_group = all(level.second == 0.0 for level in noises)
    total = np.maximum(total, np.abs(np.clip(estimate, -1, 1)))

    def variance(difference: Floats) -> Floats:
        both = np.abs(difference) if one_group else np.clip(total, np.abs(difference), 1)
        first, second = (both + difference) / 2, (both - difference) / 2
        drawn = first * parts[0] + second * parts[1] + (1 - both) * parts[2]
        return drawn + (both - difference**2) * between

    return invert(estimate, variance, z, 0.0 if one_group else -1.0, 1.0)
