"""Intervals of linear estimates by inverting a test whose weights, noise and law are those of the hypothesis.

For every share f that might be true: combine the levels with the weights that are best at f, and accept f if the
result lies within a reach h(f) of f. The weights do not depend on the data, so each test is valid as it stands:
no pilot, no estimated noise. They do not depend on the value either, so one table of hypotheses serves all cells of an
attribute and all repetitions of a study; inverting it is one matrix product.

h(f) is se·cv(B/se) where reports are many, and the exact quantile of the law (`law`) where one report moves the
estimate by more than 0.08 of its standard error. With Γ > 1 it is the largest over the worst tilts (`guarded`). Near
0 and 1, where estimates beyond the bound speak for the bound, h is longer towards it and shorter away from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.estimate.critical import CONFIDENCE, boundary_ratio, reach
from pldp.estimate.guarded import Noise, guarded_weights, tilted_moments, worst_tilt
from pldp.estimate.law import PAD, STEP, Channels, coarseness, distribution, standard_law
from pldp.estimate.score import Interval

COARSE = 0.08
"""Steps of one report, in standard errors, from which on the exact law is used."""
_WHOLE = 24  # hypotheses of 0, 1, 2 … holders before the grid widens
_WIDER = 48
_ALL = 300  # up to so many people every number of holders is a hypothesis
_LEAST_HOLDERS = 3.0  # weights are made for at least so many: with none, levels would not count as different people


@dataclass(frozen=True)
class Table:
    """What is tested: `share` (hypothesis,) rising, `weights` (hypothesis, level), and how far below or above the
    share the combined estimate may fall, (hypothesis,)."""

    share: Floats
    weights: Floats
    below: Floats
    above: Floats
    n: int
    exact: int
    """How many hypotheses were judged by the exact law."""


def hypotheses(n: int) -> Counts:
    """Numbers of holders to test: all small ones, then wider steps; the same from the other end."""
    if n <= _ALL:
        return np.arange(n + 1)
    half = np.unique(np.rint(np.append(np.arange(_WHOLE), np.geomspace(_WHOLE, max(n / 2, _WHOLE), _WIDER))))
    low = half[half <= n / 2].astype(np.int64)
    found: Counts = np.unique(np.append(low, n - low))
    return found


def hypothesis_table(
    method: str,
    n: Counts,
    protocols: tuple[PureProtocol, ...],
    *,
    gamma: float = 1.0,
    confidence: float = CONFIDENCE,
) -> Table:
    """The tests of one attribute by `sum`, `oc`, `oc+` or `guarded`; levels that nobody chose must have dropped out.

    Γ matters to `guarded` and to `sum`, whose noise depends on where the holders are; `oc` and `oc+` assume Γ = 1.
    """
    total = int(n.sum())
    holders = hypotheses(total)
    noise = Noise.of(protocols)
    edge = min(_LEAST_HOLDERS / total, 0.5)
    weights = _weights(method, n, noise, np.clip(holders / total, edge, 1 - edge), gamma, confidence)
    channels = Channels.of(n, protocols)
    declared = gamma if method in ("guarded", "sum") else 1.0
    table = _reaches(channels, noise, weights, holders, declared, confidence)
    if method != "guarded" or gamma == 1:
        return table
    # Weights are chosen by normal laws without tilts; where the exact reach of `sum` is shorter after all, it is taken.
    even = np.broadcast_to((n / total)[:, None], weights.shape)
    plain = _reaches(channels, noise, even, holders, gamma, confidence)
    ours = table.below + table.above <= plain.below + plain.above
    return Table(
        share=table.share,
        weights=np.where(ours[:, None], table.weights, plain.weights),
        below=np.where(ours, table.below, plain.below),
        above=np.where(ours, table.above, plain.above),
        n=total,
        exact=max(table.exact, plain.exact),
    )


def _reaches(
    channels: Channels, noise: Noise, weights: Floats, holders: Counts, gamma: float, confidence: float
) -> Table:
    """How far the estimate with these weights, (level, hypothesis), may fall: the most over the tilts that Γ allows."""
    n, total = channels.n, int(channels.n.sum())
    share = holders / total
    _, plain = tilted_moments(weights, n, noise, share)
    error = np.sqrt(np.maximum(plain, 1e-300))
    below, above = (boundary_ratio(distance / error, confidence) for distance in (share, 1 - share))
    step = coarseness(channels, weights, share)
    coarse = np.flatnonzero(step > COARSE)
    width = np.zeros(share.size)
    for tilt in _tilts(weights, n, noise, share, gamma):
        bias, variance = tilted_moments(weights, n, noise, share, tilt)
        error = np.sqrt(np.maximum(variance, 0.0))
        least = reach(bias, error, below, above, confidence=confidence)
        if coarse.size:
            law = standard_law(channels, weights[:, coarse], holders[coarse], tilt[:, coarse])
            parts = (bias[coarse], error[coarse], below[coarse], above[coarse])
            least[coarse] = reach(*parts, distribution(law), STEP, confidence) + PAD * error[coarse]
        width = np.maximum(width, least)
    unseen = np.where(_sparse(holders), 1 / 4, 0.0 if gamma == 1 else 1 / 8)
    width = width + np.where(step > COARSE, unseen * step * np.sqrt(np.maximum(plain, 0.0)), 0.0)
    return Table(share, weights.T, below * width, above * width, total, coarse.size)


def _sparse(holders: Counts) -> NDArray[np.bool_]:
    """Hypotheses with neighbours that are further than one person away.

    Between them the steps of a law shift against the share, by up to half a step either way, which interpolation does
    not see; a quarter of a step is added there. Between the tilts that Γ allows they shift too, by less: an eighth.
    """
    gaps = np.diff(holders)
    return np.asarray(np.maximum(np.append(gaps[:1], gaps), np.append(gaps, gaps[-1:])) > 1)


def _weights(method: str, n: Counts, noise: Noise, share: Floats, gamma: float, confidence: float) -> Floats:
    """(level, hypothesis)"""
    sizes = n[:, None].astype(np.float64)
    match method:
        case "sum":
            raw = np.broadcast_to(sizes, (n.size, share.size))
        case "oc":
            raw = sizes / noise.at(share)
        case "oc+":
            return guarded_weights(n, noise, share, 1.0, confidence)
        case "guarded":
            return guarded_weights(n, noise, share, gamma, confidence)
        case _:
            raise ValueError(f"{method!r} is not one of sum, oc, oc+, guarded")
    return np.asarray(raw / raw.sum(axis=0))


def _tilts(weights: Floats, n: Counts, noise: Noise, share: Floats, gamma: float) -> list[Floats]:
    """The tilts that bias upwards and downwards and the noisiest one; none at Γ = 1."""
    shares = n / n.sum()
    relative = weights / shares[:, None]
    if gamma == 1:
        return [np.ones_like(weights)]
    loudest = relative**2 * (noise.own - noise.other)[:, None]
    uneven = np.ptp(relative, axis=0).max() > 1e-9
    directions = (relative, -relative, loudest) if uneven else (loudest,)
    return [worst_tilt(direction, shares, share, gamma) for direction in directions]


def invert_table(table: Table, frequencies: Floats, estimate: Floats | None = None) -> Interval:
    """Ends of the accepted shares, (…, value); `frequencies` are the levels' estimates, (…, level, value).

    With D(f) the combined estimate minus f, the low end is the first f with D ≤ above, the high end the last with
    D ≥ −below: interpolated between hypotheses, and whole people where neighbours differ by one person. The published
    `estimate`, where there is one, is always inside, cut to [0, 1].
    """
    away = np.swapaxes(frequencies, -1, -2) @ table.weights.T - table.share
    # Not quite zero: a law without spread is compared up to rounding.
    room_above, room_below = table.above + 1e-12 - away, table.below + 1e-12 + away
    last = table.share.size - 1
    first = np.where((room_above >= 0).any(axis=-1), (room_above >= 0).argmax(axis=-1), last)
    final = np.where((room_below >= 0).any(axis=-1), last - (room_below >= 0)[..., ::-1].argmax(axis=-1), 0)
    low = _crossing(table, room_above, first, first - 1)
    high = _crossing(table, room_below, final, final + 1)
    # Between two whole numbers of people nothing may be accepted: then both are ends.
    low, high = np.minimum(low, high), np.maximum(low, high)
    if estimate is None:
        return Interval(low, high)
    inside = np.clip(estimate, 0, 1)
    return Interval(np.minimum(low, inside), np.maximum(high, inside))


def _crossing(table: Table, margin: Floats, accepted: Counts, rejected: Counts) -> Floats:
    """The share where the margin crosses zero, between an accepted hypothesis and its rejected neighbour."""
    outside = np.clip(rejected, 0, table.share.size - 1)
    at, beyond = (np.take_along_axis(margin, index[..., None], axis=-1)[..., 0] for index in (accepted, outside))
    part = np.where(beyond < 0, np.maximum(at, 0) / np.maximum(np.maximum(at, 0) - beyond, 1e-300), 0.0)
    gap = table.share[outside] - table.share[accepted]
    part = np.where(np.abs(gap) * table.n <= 1.5, 0.0, part)
    return np.asarray(table.share[accepted] + part * gap)
