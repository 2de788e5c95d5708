"""What a choice of levels that depends on the value can do to a combined estimate: its bias and its noise.

The spec declares Γ: the holders of any value are at most Γ times likelier, or less likely, to choose any level than
people at large. Then the share f_τ among the people of level τ lies within [L, U]·f, where

    U = min(Γ, (1 − (1−f)/Γ)/f),      L = max(1/Γ, (1 − (1−f)Γ)/f)

(the second parts because those who do *not* hold the value are bounded by Γ too), and Σ π_τ f_τ = f, π_τ = n_τ/n.
Weights w have the bias Σ (w_τ − π_τ)(f_τ − f). Its largest value is exact: with r_τ = w_τ/π_τ − 1, give the upper
bound to the levels of largest r up to a share α = (1−L)/(U−L) of the people, the lower bound to the rest,

    B⁺ = f (U − L) · max { Σ m_τ r_τ : 0 ≤ m_τ ≤ π_τ, Σ m_τ = α },

which is at most f(Γ−1)·Σ|w_τ − π_τ|; B⁻ likewise with the smallest r. `path` chooses weights by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pldp.channels.protocol import Counts, Floats, PureProtocol


@dataclass(frozen=True)
class Noise:
    """Of one report at every level, (level,): about a holder of the value and about anybody else."""

    held: Floats
    other: Floats

    @classmethod
    def of(cls, protocols: tuple[PureProtocol, ...]) -> Noise:
        ends = np.array([protocol.noise_variance(np.array([1.0, 0.0])) for protocol in protocols])
        return cls(ends[:, 0], ends[:, 1])

    def at(self, frequency: Floats) -> Floats:
        """v_τ(f), (…, level, cell); `frequency` is (…, cell), or (…, level, cell) where levels differ."""
        return self.other[:, None] + (self.held - self.other)[:, None] * frequency


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
    np.put_along_axis(tilt, order, filled(people, frequency, gamma), axis=-2)
    return tilt


def filled(people: Floats, frequency: Floats, gamma: float, *, last: bool = False) -> Floats:
    """The same for sorted levels: the upper bound to the first ones (or the last ones), the lower to the others."""
    lower, upper = ratio_bounds(frequency, gamma)
    width = upper - lower
    part = np.where(width > 0, (1 - lower) / np.where(width > 0, width, 1), 0.0)
    ahead = np.cumsum(people[..., ::-1, :], axis=-2)[..., ::-1, :] if last else np.cumsum(people, axis=-2)
    share = np.clip((part[..., None, :] - (ahead - people)) / people, 0, 1)
    return lower[..., None, :] + share * width[..., None, :]


def tilts(weights: Floats, n: Counts, noise: Noise, share: Floats, gamma: float) -> list[Floats]:
    """The tilts that bias upwards and downwards, the noisiest and the quietest one; none at Γ = 1."""
    shares = n / n.sum()
    relative = weights / shares[:, None]
    if gamma == 1:
        return [np.ones_like(weights)]
    louder = noise.held - noise.other
    alike = bool(np.all(louder == 0))  # of two values a holder's report is as noisy as any
    loudest = relative**2 * (noise.other if alike else louder)[:, None]
    # Equal weights have no bias to tilt for. But where few reports decide, the quietest tilt may have its steps beyond
    # a reach that just holds those of the noisiest; and steps to one side only, at the ends, need another reach than
    # those to both sides between them.
    uneven = np.ptp(relative, axis=0) > 1e-9
    directions = [np.where(uneven, side * relative, side * loudest) for side in (1, -1)]
    directions += [loudest] if uneven.any() and not alike else []
    ends = [worst_tilt(direction, shares, share, gamma) for direction in directions]
    return [*ends, np.ones_like(weights)] if alike else ends


def tilted_moments(
    weights: Floats,
    n: Counts,
    noise: Noise,
    frequency: Floats,
    tilt: Floats | float = 1.0,
    *,
    population: bool = False,
) -> tuple[Floats, Floats]:
    """Bias and variance of Σ w_τ f̂_τ − f where level τ's people hold the value with the share f·tilt_τ.

    Who of the holders chose which level varies, their number does not: with e_τ = f_τ(1 − f_τ) and b_τ = w_τ/n_τ − 1/n
    this part is [Σ n_τ b_τ² e_τ − (Σ n_τ b_τ e_τ)²/Σ n_τ e_τ]·n/(n−1); without tilt it is S² Σ (w_τ − π_τ)²/n_τ. Where
    f is the share of a population that these people are drawn from, holders vary too, and with them how many people
    chose each level: Σ w_τ² e_τ/n_τ + Σ n_τ (f_τ − f)²/n², for `sum` f(1 − f)/n whoever chose what.
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
    if population:
        away = inside - np.clip(frequency, 0, 1)[..., None, :]
        chosen = ((weights / sizes) ** 2 * spread).sum(axis=-2) + (sizes * away**2).sum(axis=-2) / total**2
    return bias, (weights**2 * noise.at(inside) / sizes).sum(axis=-2) + chosen


def worst_bias(weights: Floats, shares: Floats, frequency: Floats, gamma: float) -> Floats:
    """The larger of B⁺ and B⁻."""
    relative = weights / shares[:, None]
    return np.maximum(
        *(
            np.abs(((weights - shares[:, None]) * worst_tilt(side * relative, shares, frequency, gamma)).sum(axis=-2))
            for side in (1, -1)
        )
    ) * np.clip(frequency, 0, 1)
