"""Intervals of linear estimates by inverting a test whose weights, noise and law are those of the hypothesis.

For every share f that might be true: combine the levels with the weights that are best at f, and accept f if the
result lies within a reach h(f) of f. The weights do not depend on the data, so each test is valid as it stands:
no pilot, no estimated noise. They do not depend on the value either, so one table of hypotheses serves all cells of an
attribute and all repetitions of a study; inverting it is one matrix product.

h(f) is se·cv(B/se) where reports are many, and the exact quantile of the law (`law`) where one report moves the
estimate by more than 0.08 of its standard error. With Γ > 1 it is the largest over the worst tilts (`guarded`),
whatever the weights: an interval covers what is declared by every method. Near 0 and 1, where estimates beyond the
bound speak for the bound, h is longer towards it and shorter away from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.estimate.capped import UNCAPPED, limited, water_filled
from pldp.estimate.characteristic import STEP, Channels
from pldp.estimate.critical import CONFIDENCE, boundary_ratio, reach
from pldp.estimate.ends import Table
from pldp.estimate.guarded import Noise, tilted_moments, tilts, worst_tilt
from pldp.estimate.law import PAD, coarseness, distribution, standard_law
from pldp.estimate.lengths import Rehearsal
from pldp.estimate.path import Guard

ANYTHING = 1e12
"""The Γ of `unknown`: no tilt of the levels is excluded."""
COARSE = 0.08
"""Steps of one report, in standard errors, from which on the exact law is used."""
_WHOLE = 24  # hypotheses of 0, 1, 2 … holders before the grid widens
_WIDER = 48
_ALL = 300  # up to so many people every number of holders is a hypothesis
_FURTHER = (0, 1, 2, 4, 8, 16, 32, 64)  # tests beyond one longer than that of `sum` that are given up too, by round
_PLACES = np.linspace(-1.0, 1.0, 9)  # where steps may lie, as parts of how far they can shift
_LEAST_HOLDERS = 3.0  # weights are made for at least so many: with none, levels would not count as different people


@dataclass(frozen=True)
class Cover:
    """What an interval must hold for: choices that depend on values up to Γ, and these users or those behind them; and
    how much a level may weigh at most, in multiples of its share of the people (`capped`)."""

    gamma: float = 1.0
    confidence: float = CONFIDENCE
    population: bool = False
    cap: float = UNCAPPED


INDEPENDENT = Cover()


def hypotheses(n: int) -> Counts:
    """Numbers of holders to test: all small ones, then wider steps; the same from the other end."""
    if n <= _ALL:
        return np.arange(n + 1)
    half = np.unique(np.rint(np.append(np.arange(_WHOLE), np.geomspace(_WHOLE, max(n / 2, _WHOLE), _WIDER))))
    low = half[half <= n / 2].astype(np.int64)
    counts: Counts = np.unique(np.append(low, n - low))
    return counts


def hypothesis_table(method: str, n: Counts, protocols: tuple[PureProtocol, ...], cover: Cover = INDEPENDENT) -> Table:
    """The tests of one attribute by `sum`, `oc`, `oc+` or `guarded`; levels that nobody chose must have dropped out."""
    if n.size == 1:
        method, cover = "sum", replace(cover, gamma=1.0)  # nothing to weigh, nothing to choose
    elif method == "guarded" and cover.gamma == 1:
        method = "oc+"
    return _table(method, tuple(n.tolist()), protocols, cover)


@lru_cache(maxsize=256)
def _table(method: str, n: tuple[int, ...], protocols: tuple[PureProtocol, ...], cover: Cover) -> Table:
    """Attributes, methods and gates of a release ask for the same tests several times."""
    sizes = np.array(n)
    plain = _table("sum", n, protocols, cover) if method == "guarded" else None
    return make_table(method, sizes, Noise.of(protocols), Channels.of(sizes, protocols), cover, plain)


def make_table(
    method: str, n: Counts, noise: Noise, channels: Channels | None, cover: Cover, plain: Table | None = None
) -> Table:
    """The tests of anything with this noise per report; without `channels`, every law is taken to be normal. `plain` is
    that of `sum`, where it is known."""
    total = int(n.sum())
    holders = hypotheses(total)
    edge = min(_LEAST_HOLDERS / total, 0.5)
    share = np.clip(holders / total, edge, 1 - edge)
    if method == "guarded" and cover.gamma > 1:
        plain = make_table("sum", n, noise, channels, cover) if plain is None else plain
        return _guarded(n, channels, noise, share, holders, cover, plain)
    return _reaches(n, channels, noise, _weights(method, n, noise, share, cover.cap), holders, cover)


def _guarded(
    n: Counts, channels: Channels | None, noise: Noise, share: Floats, holders: Counts, cover: Cover, plain: Table
) -> Table:
    """The shortest tests of those between `sum` and `oc+` whose reach is nowhere longer than that of `sum`, nor their
    interval by more than `lengths.LONGEST`.

    Which weights are shortest is told by normal laws and without noise. Where the exact law or a rehearsal says
    otherwise (steps of equal weights fall on whole people, those of unequal ones between them; where intervals are long
    the estimate moves far within one), tests are those of `sum`, and so are all between there and a half, so that
    weights still move gradually.
    """
    guard = limited(Guard.of(n, noise, share, cover.gamma, cover.confidence), cover.cap)
    table = _reaches(n, channels, noise, guard.weights(guard.gradual()), holders, cover)
    rehearsal = Rehearsal.of(plain, n, noise, channels, cover.gamma)
    kept, half = np.zeros(holders.size, dtype=np.bool_), int(np.abs(share - 0.5).argmin())
    for further in _FURTHER:
        longer = np.flatnonzero((table.reach > plain.reach * (1 + 1e-9)) | rehearsal.longer(table))
        if not longer.size:
            return table
        kept[max(longer[0] - further, 0) : half + 1] = True
        kept[half : longer[-1] + further + 1] = True
        weights = guard.weights(guard.gradual(kept)).T
        weights[kept] = plain.weights[kept]
        below, above = (np.where(kept, *sides) for sides in ((plain.below, table.below), (plain.above, table.above)))
        new = np.flatnonzero(~kept & (np.abs(weights - table.weights).max(axis=1) > 1e-12))
        if new.size:
            part = _reaches(n, channels, noise, weights[new].T, holders[new], cover, _sparse(holders)[new])
            below[new], above[new] = part.below, part.above
        table = replace(table, weights=weights, below=below, above=above)
    return plain


def _reaches(
    n: Counts,
    channels: Channels | None,
    noise: Noise,
    weights: Floats,
    holders: Counts,
    cover: Cover,
    sparse: NDArray[np.bool_] | None = None,
) -> Table:
    """How far the estimate with these weights, (level, hypothesis), may fall: the most over the tilts that Γ allows."""
    total, population = int(n.sum()), cover.population
    share = holders / total
    _, plain = tilted_moments(weights, n, noise, share, population=population)
    error = np.sqrt(np.maximum(plain, 1e-300))
    below, above = (boundary_ratio(distance / error, cover.confidence) for distance in (share, 1 - share))
    step = np.zeros(share.size) if channels is None else coarseness(channels, weights, share)
    coarse = np.flatnonzero(step > COARSE)
    width = np.zeros(share.size)
    shifts: Sequence[Floats] = (np.zeros(coarse.size),)
    if channels is not None and coarse.size and cover.gamma > 1:
        further = np.minimum(step * error / 2, _shift(channels, weights, share, cover.gamma))[coarse]
        shifts = [place * further for place in _PLACES]
    for tilt in tilts(weights, n, noise, share, cover.gamma):
        bias, variance = tilted_moments(weights, n, noise, share, tilt, population=population)
        error = np.sqrt(np.maximum(variance, 0.0))
        least = reach(bias, error, below, above, confidence=cover.confidence)
        if channels is not None and coarse.size:
            law = standard_law(channels, weights[:, coarse], holders[coarse], tilt[:, coarse], population=population)
            parts = (bias[coarse], error[coarse], below[coarse], above[coarse])
            least[coarse] = reach(*parts, distribution(law), STEP, cover.confidence, shifts) + PAD * error[coarse]
        width = np.maximum(width, least)
    sparse = _sparse(holders) if sparse is None else sparse
    unseen = (step > COARSE) & (sparse | population)
    width = width + np.where(unseen, step * np.sqrt(np.maximum(plain, 0.0)) / 4, 0.0)
    return Table(share, weights.T, below * width, above * width, total, coarse.size, not population)


def _shift(channels: Channels, weights: Floats, share: Floats, gamma: float) -> Floats:
    """How far the steps of reports can shift against the share, (hypothesis,), between the ends of what Γ allows.

    A holder who is reported truly moves the estimate by more than the own weight, so where the steps lie depends on how
    many holders sit where reports are noisy. Between the tilts that are looked at they may lie anywhere within this.
    """
    n = channels.n[:, None]
    shares, more = channels.n / channels.n.sum(), channels.steps(weights) - weights / n
    most, least = ((n * more * worst_tilt(side * more, shares, share, gamma)).sum(axis=0) for side in (1, -1))
    return np.asarray(share * (most - least))


def _sparse(holders: Counts) -> NDArray[np.bool_]:
    """Hypotheses with neighbours that are further than one person away.

    Between them the steps of a law shift against the share, by up to half a step either way, which interpolation does
    not see; a quarter of a step is added there.
    """
    gaps = np.diff(holders)
    return np.asarray(np.maximum(np.append(gaps[:1], gaps), np.append(gaps, gaps[-1:])) > 1)


def _weights(method: str, n: Counts, noise: Noise, share: Floats, cap: float) -> Floats:
    """(level, hypothesis)"""
    sizes = n[:, None].astype(np.float64)
    match method:
        case "sum":
            raw = np.broadcast_to(sizes, (n.size, share.size))
        case "oc":
            return water_filled(n / n.sum(), noise.at(share), cap)
        case "oc+" | "guarded":  # without dependence they are the same
            guard = limited(Guard.of(n, noise, share, 1.0), cap)
            return guard.weights(guard.shortest())
        case _:
            raise ValueError(f"{method!r} is not one of sum, oc, oc+, guarded")
    return np.asarray(raw / raw.sum(axis=0))
