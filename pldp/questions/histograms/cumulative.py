"""Quantiles of binned numbers by testing cumulative shares, whatever dependence is declared.

Reports tell how many people lie below an edge: the share of a group of values, estimated at every level without bias.
For every inner edge e and probability p there is one test of "a share p lies below e", with weights of the levels that
are best if that is so. Nothing in it looks at the data, so it is valid as it stands. A choice of levels that depends on
values as far as Γ allows biases it by at most B (`guarded`): people below e are a mixture of holders of values, so Γ
bounds them as it bounds holders of one.

The quantile Q lies in one bin, from e_b to e_{b+1}: less than p lie below e_b, at least p below e_{b+1}. The interval
begins one edge before the first at which p is not rejected from below, and ends one edge after the last at which it is
not rejected from above. Each end is wrong only if the test at one fixed edge errs on one side: at most 2.5 % each.

Where reports are rarely flipped the law is no normal one: of 1,000 people of whom a third of a report is flipped on
average, one flip is beyond 1.96 standard errors. So a test reaches further by what one report moves, at the level where
it moves most: enumerated, no side of any test then errs by more than 2.5 % (docs/numeric.md, section 15).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.estimate.capped import capped_guarded
from pldp.estimate.combine import Levels
from pldp.estimate.critical import two_sided
from pldp.estimate.guarded import Noise, tilted_moments, worst_tilt
from pldp.estimate.invert import ANYTHING, Cover
from pldp.estimate.score import contrast_noise


@dataclass(frozen=True)
class EdgeTests:
    """`weights` (level, edge, probability) and `reach` (edge, probability) of all inner edges."""

    weights: Floats
    reach: Floats


def edge_tests(levels: Levels, probabilities: tuple[float, ...], method: str, cover: Cover) -> EdgeTests:
    """By `sum`, which nothing can bias, or by the weights of `guarded` (at Γ = 1 those of `oc+`)."""
    plain = method == "sum" or cover.gamma >= ANYTHING or levels.n.size == 1
    values = levels.frequencies.shape[-1]
    return _tests(values, tuple(levels.n.tolist()), levels.protocols, probabilities, cover, plain)


@lru_cache(maxsize=64)
def _tests(
    values: int,
    n: tuple[int, ...],
    protocols: tuple[PureProtocol, ...],
    probabilities: tuple[float, ...],
    cover: Cover,
    plain: bool,
) -> EdgeTests:
    sizes, shares = np.array(n), np.asarray(probabilities)
    weights, reach = [], []
    for edge in range(1, values):
        below = _from_below(edge, values)
        group = edge if below else values - edge
        parts = [contrast_noise(protocol, group) for protocol in protocols]
        noise = Noise(np.array([part.first for part in parts]), np.array([part.neither for part in parts]))
        gaps = np.array([protocol.gap for protocol in protocols])
        shortest = _shortest(sizes, noise, gaps, shares if below else 1 - shares, cover, plain=plain)
        weights.append(shortest[0])
        reach.append(shortest[1])
    return EdgeTests(np.stack(weights, axis=1), np.stack(reach))


def _from_below(edge: int, values: int) -> bool:
    """Whether the values below an edge are fewer than those above: of the fewer the noise is less."""
    return edge <= values - edge


def _shortest(
    n: Counts, noise: Noise, gaps: Floats, share: Floats, cover: Cover, *, plain: bool
) -> tuple[Floats, Floats]:
    """Weights (level, share) and reach (share,): those of `guarded`, or of `sum` where they reach less far."""
    equal = np.broadcast_to((n / n.sum())[:, None], (n.size, share.size))
    least = _reach(equal, n, noise, gaps, share, cover)
    if plain:
        return equal, least
    weights = capped_guarded(n, noise, share, cover.gamma, cover.confidence, cover.cap)
    reach = _reach(weights, n, noise, gaps, share, cover)
    return np.where(reach < least, weights, equal), np.minimum(reach, least)


def _reach(weights: Floats, n: Counts, noise: Noise, gaps: Floats, share: Floats, cover: Cover) -> Floats:
    """B + z·se at the worst tilt, and the most that one report moves: one-sided tests at two edges, whose biases need
    not have the same sign."""
    shares, z = n / n.sum(), two_sided(cover.confidence)
    relative = weights / shares[:, None]
    loudest = relative**2 * (noise.held - noise.other)[:, None]
    tilts = [np.ones_like(weights)]
    if cover.gamma > 1 and n.size > 1:
        tilts = [worst_tilt(side, shares, share, cover.gamma) for side in (relative, -relative, loudest)]
    reaches = []
    for tilt in tilts:
        bias, variance = tilted_moments(weights, n, noise, share, tilt, population=cover.population)
        reaches.append(np.abs(bias) + z * np.sqrt(np.maximum(variance, 0.0)))
    step = (weights / (n * gaps)[:, None]).max(axis=0)
    return np.asarray(np.max(reaches, axis=0) + step)


def quantile_edges(tests: EdgeTests, frequencies: Floats, probabilities: tuple[float, ...]) -> tuple[Counts, Counts]:
    """Which edges the intervals run from and to, (…, probability); `frequencies` are the levels', (…, level, value)."""
    values = frequencies.shape[-1]
    under = np.cumsum(frequencies, axis=-1)[..., :-1]
    over = 1 - np.cumsum(frequencies[..., ::-1], axis=-1)[..., ::-1][..., 1:]
    below = np.array([_from_below(edge, values) for edge in range(1, values)])
    cumulative = np.where(below, under, over)
    away = np.einsum("...le,lep->...ep", cumulative, tests.weights) - np.asarray(probabilities)
    # The last edge has everybody below it, the first nobody.
    high_enough, low_enough = away >= -tests.reach - 1e-12, away < tests.reach + 1e-12
    first = np.where(high_enough.any(axis=-2), high_enough.argmax(axis=-2), values - 1)
    last = np.where(low_enough.any(axis=-2), values - 2 - low_enough[..., ::-1, :].argmax(axis=-2), -1)
    return np.asarray(np.minimum(first, last + 1)), np.asarray(np.maximum(last + 2, first + 1))
