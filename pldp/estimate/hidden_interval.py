"""Hidden levels: intervals that hold whatever the level reports tell, by inverting what each method solves for.

AUEM is a ratio A/D of two means: D̂ = Σ_l ρ̂_l (p_l − q_l) may be poorly known. What it solves for is not a ratio: with
ψ_j(f) = 1{Z supports j} − q(b) − f d(b) (docs/frequencies.md) the mean of ψ_j is zero at the true share. So the
interval is all f with |mean ψ_j(f)| ≤ z·√(V(f)/N), V the variance at f: Fieller's interval. Where D̂ cannot be told
from zero every share is accepted, which is the honest answer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.estimate.critical import accepted_reach
from pldp.estimate.distributions import norm
from pldp.estimate.hidden import calibrated_noise, hidden_sum, level_shares, mean_powers, own_bit, spread_of_levels
from pldp.estimate.score import Interval

Test = Callable[[Floats], tuple[Floats, Floats, Floats | float]]
"""Of hypothesised shares: how far what was seen is away from each, and if that one is true its standard deviation and
third moment over variance."""
_SMALL = np.geomspace(1e-6, 0.5, 400)
_SCALE = np.concatenate([[0.0], _SMALL, 1 - _SMALL[-2::-1], [1.0]])
_CUTS = 18  # of 800 places: 0.01 % of a share each


def fieller_interval(
    joint: Counts | Floats,
    tally: Counts | Floats,
    protocols: tuple[PureProtocol, ...],
    report: PureProtocol,
    z: float,
    *,
    population: bool = False,
) -> Interval:
    """For AUEM's shares: `joint` is the support by level report, (…, b, value), `tally` (…, b).

    V(f) = mean of ψ² − f(1−f)·D², because the users' own shares are asked for; D is taken one standard error low. It is
    at least that of the support to be expected at f, and at least what reports add to answers of known
    levels. Of a `population` behind the users nothing is taken off.
    """
    n = tally.sum(axis=-1)[..., None]
    q, d = (np.array([getattr(one, part) for one in protocols]) for part in ("q", "gap"))
    q_of, d_of = ((part - report.q * part.sum()) / report.gap for part in (q, d))
    share = tally / n
    low, gap = ((share * part).sum(axis=-1)[..., None] for part in (q_of, d_of))
    spread = np.maximum((share * d_of**2).sum(axis=-1)[..., None] - gap**2, 0) / n
    possible = np.clip(gap, d.min(), d.max())
    sure = np.maximum(gap - np.sqrt(spread), d.min())
    seen = joint.sum(axis=-2) / n
    known = level_shares(tally, report)
    # Of a level that seems empty there may be as many as the error; `people` are those that there seem to be.
    people, perhaps = (_as_shares(np.maximum(known.frequency, least)) for least in (0, known.standard_error))
    telling = np.full((d.size, d.size), report.q) + np.eye(d.size) * report.gap

    def apart(f: Floats) -> Floats:
        """What ψ² is to be expected where reports tell the levels: people of one level vary less than all together."""
        chance, mean = (a[:, None] + b[:, None] * f[..., None, :] for a, b in ((q, d), (q_of, d_of)))
        square = chance * (1 - 2 * (telling @ mean)) + telling @ mean**2
        return np.asarray((people[..., None] * square).sum(axis=-2))

    def test(f: Floats) -> tuple[Floats, Floats, float]:
        mean = q_of[:, None] + d_of[:, None] * f[..., None, :]  # (…, b, value)
        squares = (joint * (1 - 2 * mean) + tally[..., None] * mean**2).sum(axis=-2) / n
        implied = np.clip(low + f * possible, 0, 1)
        least = np.minimum(implied * (1 - implied), apart(f))
        within = 0 * f if population else f * (1 - f) * sure**2
        chance = q[:, None] + d[:, None] * f[..., None, :]
        drawn = chance * (1 - chance) - (0 if population else 1) * (f * (1 - f))[..., None, :] * d[:, None] ** 2
        variance = np.maximum(np.maximum(squares, least) - within, (perhaps[..., None] * drawn).sum(axis=-2))
        # Counts are whole numbers: half of one more, which the normal law does not see where they are few.
        return seen - low - f * gap, np.sqrt(np.maximum(variance, 1e-300) / n) + 0.5 / (z * n), 0.0

    blind = gap <= z * np.sqrt(spread)
    ends = _accepted(test, seen.shape, possible, z)
    return Interval(np.where(blind, 0.0, ends.low), np.where(blind, 1.0, ends.high))


def _as_shares(people: Floats) -> Floats:
    """As shares of all, (…, level)."""
    return np.asarray(people / people.sum(axis=-1, keepdims=True))


def _accepted(test: Test, shape: tuple[int, ...], gap: Floats | float, z: float) -> Interval:
    """The shares that are not rejected, (…, value).

    What `test` calls away is normal around zero with this deviation if the hypothesis is true, but for its skewness,
    and moves by `gap` per share: that is how far from 0 and 1 it is known to lie. Near them the test is one-sided
    (`critical.boundary_ratio`), and its quantile less extreme, which skewness moves less (Cornish and Fisher).
    """
    confidence = float(2 * norm.cdf(z) - 1)

    def room(f: Floats, side: int) -> Floats:
        away, deviation, third = test(f)
        reach = accepted_reach(f * gap / deviation, (1 - f) * gap / deviation, confidence)[int(side > 0)]
        moved = third * (np.minimum(reach, z) ** 2 - 1) / 6
        return np.asarray(deviation * reach + side * (moved - away))

    low_end = _crossing(lambda f: room(f, 1), shape)
    high_end = 1 - _crossing(lambda f: room(1 - f, -1), shape)
    ends = np.sort(np.stack([low_end, high_end]), axis=0)  # where nothing is accepted, both are next to the estimate
    return Interval(ends[0], ends[1])


def sum_interval(
    joint: Counts | Floats,
    tally: Counts | Floats,
    protocols: tuple[PureProtocol, ...],
    report: PureProtocol,
    z: float,
    *,
    population: bool = False,
) -> Interval:
    """For `hidden_sum`, however levels depend on values: f̂ is a mean of φ, and Var(f̂ − f) = (E[φ²] − f)/N.

    E[φ²] is linear in f. The mean of φ² that was seen goes along with the estimate: rare large steps that happen to be
    few make both small. So it is moved to the hypothesis by their regression, which the levels' shares give. It is at
    least what would be expected of holders who chose as people at large do.
    """
    n = tally.sum(axis=-1)[..., None]
    combined = hidden_sum(joint, tally, protocols, report)
    p, q, d = (np.array([getattr(one, part) for one in protocols]) for part in ("p", "q", "gap"))
    (hit, miss), (cube, plain) = (mean_powers(protocols, report, power) for power in (2, 3))
    # Of a level that reports cannot tell from one that nobody chose there may be as many as the error: estimated at
    # nothing or below, it would seem to add no noise. Shares of more than everybody would skew what has no noise.
    known = level_shares(tally, report)
    people = _as_shares(np.maximum(known.frequency, known.standard_error))

    def mean(of_level: Floats) -> Floats:
        return np.asarray((people * of_level).sum(axis=-1)[..., None])

    holder, other, most, rare = (
        mean(part * hits + (1 - part) * misses) for hits, misses in ((hit, miss), (cube, plain)) for part in (p, q)
    )
    step, low, gap = np.sqrt(np.maximum(mean(hit), 0)) / n, mean(q), mean(d)
    estimate, slope = combined.frequency, np.maximum(holder - other, 0)
    seen = combined.standard_error**2 * n + np.clip(estimate, 0, 1)

    def test(f: Floats) -> tuple[Floats, Floats, Floats]:
        drawn = np.maximum(other + (slope - 1) * f, 1e-12)  # variance of one report's φ
        along = (f * (most - holder) + (1 - f) * rare) / drawn
        square = np.maximum(seen + along * (f - estimate), other + slope * f)
        deviation = np.sqrt(np.maximum(square - (f**2 if population else f), 1e-12) / n)
        # Where few reports decide: half a step of one more, and both quantiles moved by the skewness of rare steps,
        # or by that of φ: where a few people of a noisy level make more of it, or where reports are lost, not flipped.
        # By no more than leaves half a step on either side: an estimate that is exact is never rejected.
        steps = np.maximum(step, 1e-12) * (1 - 2 * (low + f * gap) + 1e-12)
        third = (rare + f * (most - 3 * holder + 2 - rare)) / (n * drawn)
        limit = 6 * z * deviation / max(z**2 - 1, 1.0)
        third = np.clip(np.where((third < 0) | (third > steps), third, steps), -limit, limit)
        return estimate - f, deviation + step / (2 * z), third

    return _accepted(test, estimate.shape, 1.0, z)


def calibrated_interval(
    support: Counts | Floats, n: int, protocols: tuple[PureProtocol, ...], z: float, *, population: bool = False
) -> Interval:
    """For `self_calibrated`: c_j/N − q̂ − f·(u + (w − 1)q̂) is linear in the counts and has mean zero at the true f, so
    the interval is all f where it lies within z standard deviations, taken at f and at the worse mix of levels."""
    u, w = own_bit(protocols)
    size = protocols[0].domain_size
    mean = (support.sum(axis=-1, keepdims=True) / n - u) / (size - 1 + w)
    most = spread_of_levels(mean, protocols)[2]
    gap = u + (w - 1) * mean
    # How near a bound is, is only known as well as the gap is: a gap that seems small must not make the test one-sided.
    unsure = abs(w - 1) * np.sqrt(size * most / n) / (size - 1 + w)

    def test(f: Floats) -> tuple[Floats, Floats, float]:
        away = support / n - mean - f * gap
        # Bits that are few by chance make q̂ small and `away` large: noise is taken at a q̂ that does not go along, the
        # regression of one on the other taken off (with three values of nobody's that is the share of the own bit).
        g = (1 + (w - 1) * f) / (size - 1 + w)
        shared = (1 - g * size) / ((size - 1 + w) * ((1 - g) ** 2 + (size - 1) * g**2))
        level, *ends = spread_of_levels(np.maximum(mean, mean - shared * away), protocols)
        noise = np.max([calibrated_noise(f, level, u + (w - 1) * level, v, size, u, w) for v in ends], axis=0)
        if population:
            noise = noise + f * (1 - f) * gap**2
        return away, np.sqrt(noise / n) + 0.5 / (z * n), 0.0  # half a count more, as above

    return _accepted(test, support.shape, np.abs(gap) + 2 * unsure, z)


def _crossing(room: Callable[[Floats], Floats], shape: tuple[int, ...]) -> Floats:
    """The first share with room, 1 where none has any: room is one-sided, so that all shares beyond it have it too.

    By halving places on a scale that is fine near 0 and 1, and by a line at last. A line between shares further apart
    than an interval is long would not do: the noise differs at both.
    """
    before, first = np.zeros(shape), np.full(shape, float(_SCALE.size - 1))
    for _ in range(_CUTS):
        middle = (before + first) / 2
        enough = room(_share(middle)) >= 0
        before, first = np.where(enough, before, middle), np.where(enough, middle, first)
    outer, inner = _share(before), _share(first)
    outside, inside = room(outer), np.maximum(room(inner), 0)
    part = np.where(outside < 0, inside / np.maximum(inside - outside, 1e-300), 1.0)
    return np.asarray(inner + part * (outer - inner))


def _share(place: Floats) -> Floats:
    return np.asarray(np.interp(place, np.arange(_SCALE.size), _SCALE))
