"""Combining the levels' estimates of one attribute: `sum`, `oc` and `oc+`.

All three are weighted means over levels, f̂ = Σ_τ w_τ f̂_τ with Σ_τ w_τ = 1. They estimate the shares of the n users
of the release. If levels were chosen independently of the value, the groups are random samples of these users, and

    Var(f̂ − f) = Σ_τ w_τ² v_τ / n_τ  +  S² Σ_τ (w_τ − n_τ/n)² / n_τ,      S² = f(1−f) · n/(n−1)

noise first, then what choosing other weights than the groups' sizes costs (docs/methods.md derives it).
Arrays may have leading dimensions for repetitions; the last two are levels and values.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.estimate.capped import UNCAPPED, water_filled

CLASSIC = ("sum", "oc", "oc+")
"""The paper's two combinations and ours, which all take choices to be independent of values, or need not."""
LINEAR_METHODS = (*CLASSIC, "guarded")


@dataclass(frozen=True)
class Levels:
    """The unbiased estimates of every level that has reports."""

    frequencies: Floats
    n: Counts
    protocols: tuple[PureProtocol, ...]

    @property
    def n_reports(self) -> int:
        return int(self.n.sum())


@dataclass(frozen=True)
class Combined:
    frequency: Floats
    standard_error: Floats
    weights: Floats


def estimate_levels(support: Counts, n: Counts, protocols: tuple[PureProtocol, ...]) -> Levels:
    """Per-level estimates (mpldp Algorithm 2); `support` is (…, level, value). Levels nobody chose drop out."""
    chosen = [level for level, size in enumerate(n) if size > 0]
    frequencies = np.stack(
        [protocols[level].estimate(support[..., level, :], int(n[level])) for level in chosen], axis=-2
    )
    return Levels(frequencies, n[chosen], tuple(protocols[level] for level in chosen))


def noise_variances(protocols: tuple[PureProtocol, ...], frequency: Floats) -> Floats:
    """v_τ of one report at this frequency, (…, level, value)."""
    return np.stack([protocol.noise_variance(frequency) for protocol in protocols], axis=-2)


def spread(frequency: Floats, n_users: int) -> Floats:
    """S²: the variance between users of one cell, finite population."""
    inside = np.clip(frequency, 0, 1)
    return inside * (1 - inside) * n_users / max(n_users - 1, 1)


def linear_weights(method: str, n: Counts, noise: Floats, between: Floats, cap: float = UNCAPPED) -> Floats:
    """`sum` ∝ n_τ; `oc` ∝ n_τ/v_τ (mpldp Theorem 2, Eq. 10); `oc+` ∝ n_τ/(v_τ + S²), per cell; all up to the cap."""
    shares = n / n.sum()
    match method:
        case "sum":
            return np.broadcast_to(shares[:, None], noise.shape)
        case "oc":
            return water_filled(shares, noise, cap)
        case "oc+":
            return water_filled(shares, noise + between[..., None, :], cap)
        case _:
            raise ValueError(f"{method!r} is not one of {', '.join(CLASSIC)}")


def linear_variance(weights: Floats, n: Counts, noise: Floats, between: Floats) -> Floats:
    """The variance in the module's docstring: a sum of positive terms, so it neither cancels nor goes negative."""
    sizes = n[:, None].astype(np.float64)
    drawn = (weights**2 * noise / sizes).sum(axis=-2)
    chosen = ((weights - sizes / sizes.sum()) ** 2 / sizes).sum(axis=-2)
    return drawn + between * chosen


def combine_linear(method: str, levels: Levels, cap: float = UNCAPPED) -> Combined:
    """One of `CLASSIC`, with the standard error at the estimate; no level weighs more than `cap` times its people.

    `oc+` needs S² before it has an estimate; a first pass gives it. Its weights are therefore estimated, which costs a
    bias of order 1/n, far below the standard error (tests/pldp/estimate/test_combine.py). Both are kept one user away
    from 0 and 1: a rare value that the first pass misses still has a spread between users.
    """
    pilot = first_pass(levels)
    noise = noise_variances(levels.protocols, pilot)
    return weighted(levels, linear_weights(method, levels.n, noise, spread(pilot, levels.n_reports), cap))


def first_pass(levels: Levels) -> Floats:
    """Shares that weights may be made for, by `oc+` as if all values were alike: within one user of 0 and 1.

    Not by `oc`: at large budgets it rests on the few people of the clearest level, and weights made for its estimate
    have more than twice the error of `sum`.
    """
    edge = 1 / max(levels.n_reports, 2)
    uniform = np.full(levels.frequencies.shape[-1], 1 / levels.protocols[0].domain_size)
    noise = noise_variances(levels.protocols, uniform)
    weights = linear_weights("oc+", levels.n, noise, spread(uniform, levels.n_reports))
    return np.clip((weights * levels.frequencies).sum(axis=-2), edge, 1 - edge)


def weighted(levels: Levels, weights: Floats) -> Combined:
    """With these weights, (…, level, value), and the standard error at the estimate."""
    edge = 1 / max(levels.n_reports, 2)
    frequency = (weights * levels.frequencies).sum(axis=-2)
    inside = np.clip(frequency, edge, 1 - edge)
    variance = linear_variance(
        weights, levels.n, noise_variances(levels.protocols, inside), spread(inside, levels.n_reports)
    )
    return Combined(frequency, np.sqrt(variance), weights)
