"""Hidden levels: an interval that holds whatever the level reports tell, and what a plan needs to choose or refuse.

AUEM is a ratio A/D of two means: D̂ = Σ_l ρ̂_l (p_l − q_l) may be poorly known. What it solves for is not a ratio: with
ψ_j(f) = 1{Z supports j} − q(b) − f d(b) (docs/frequencies.md) the mean of ψ_j is zero at the true share. So the
interval is all f with |mean ψ_j(f)| ≤ z·√(V(f)/N), V the variance at f: Fieller's interval. Where D̂ cannot be told
from zero every share is accepted, which is the honest answer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pldp.channels.protocol import Counts, Floats, PureProtocol
from pldp.channels.unary import BRR
from pldp.estimate.critical import accepted_reach
from pldp.estimate.distributions import norm
from pldp.estimate.hidden import (
    auem,
    calibrated_noise,
    hidden_sum,
    level_report,
    level_shares,
    own_bit,
    self_calibrated,
    spread_of_levels,
)
from pldp.estimate.score import Interval

MOST_VARIATION = 0.25
"""Coefficient of variation of D̂ above which a spec says too little about levels: a share is then known to ± a half."""
_LARGEST_EPSILON = 30.0
_HALVINGS = 40


@dataclass(frozen=True)
class HiddenChoice:
    """`method` has the least predicted error among those whose interval holds; `errors` are typical, by method."""

    method: str
    errors: dict[str, float]
    variation: float
    needed: float | None
    """The ε_p that would do where `variation` is too large; None where it is not, or where none would."""


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
    at least that of the support to be expected at f. Of a `population` behind the users nothing is taken off. Ends are
    interpolated between the shares of a fine grid.
    """
    n = tally.sum(axis=-1)[..., None, None]
    q, d = (np.array([getattr(one, part) for one in protocols]) for part in ("q", "gap"))
    q_of, d_of = ((part - report.q * part.sum()) / report.gap for part in (q, d))
    share = tally / n[..., 0]
    low, gap = ((share * part).sum(axis=-1)[..., None, None] for part in (q_of, d_of))
    spread = np.maximum((share * d_of**2).sum(axis=-1)[..., None, None] - gap**2, 0) / n
    f = _GRID
    mean = q_of[:, None] + d_of[:, None] * f  # (b, hypothesis)
    squares = (
        np.einsum("...bv,bh->...vh", joint, 1 - 2 * mean) + np.einsum("...b,bh->...h", tally, mean**2)[..., None, :]
    ) / n
    sure = np.maximum(gap - np.sqrt(spread), d.min())
    implied = np.clip(low + f * np.clip(gap, d.min(), d.max()), 0, 1)
    within = 0 * f if population else f * (1 - f) * sure**2
    away = joint.sum(axis=-2)[..., None] / n - low - f * gap
    # mean ψ² has away² in it, which between two shares of the grid is no line: |away| ≤ z √(V/N) with V = C + away² is
    # |away| ≤ z √(C/(1 − z²/N)/N), which nearly is.
    centred = (squares - np.square(away) - within) / np.maximum(1 - z**2 / n, 0.5)
    variance = np.maximum(centred, implied * (1 - implied) - within)
    blind = (gap <= z * np.sqrt(spread))[..., 0]
    ends = _accepted(away, np.sqrt(np.maximum(variance, 1e-300) / n), np.clip(gap, d.min(), d.max()), z)
    return Interval(np.where(blind, 0.0, ends.low), np.where(blind, 1.0, ends.high))


def _accepted(away: Floats, deviation: Floats, gap: Floats | float, z: float) -> Interval:
    """The shares of the grid that are not rejected, (…, value, hypothesis) → (…, value).

    `away` is normal around zero with this deviation if the hypothesis is true, and moves by `gap` per share: that is
    how far from 0 and 1 it is known to lie. Near them the test is one-sided (`critical.boundary_ratio`).
    """
    below, above = accepted_reach(_GRID * gap / deviation, (1 - _GRID) * gap / deviation, float(2 * norm.cdf(z) - 1))
    low_end = _crossing(deviation * above - away)
    high_end = 1 - _crossing((deviation * below + away)[..., ::-1])
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

    E[φ²] is linear in f: a holder's φ² is larger by a slope that the levels' shares give, on average. So the mean of
    φ² that was seen, at the estimate, is moved to the hypothesis along that slope. It is at least what would be
    expected of holders who chose as people at large do.
    """
    n = tally.sum(axis=-1)[..., None, None]
    combined = hidden_sum(joint, tally, protocols, report)
    levels = len(protocols)
    telling = np.full((levels, levels), report.q) + np.eye(levels) * report.gap  # (level, level that is told)
    p, q, d = (np.array([getattr(one, part) for one in protocols]) for part in ("p", "q", "gap"))
    steep, flat = ((part - report.q * part.sum()) / report.gap for part in (1 / d, q / d))
    hit, miss = telling @ (steep - flat) ** 2, telling @ flat**2  # φ² of a report that supports the value, or does not
    people = level_shares(tally, report).frequency
    holder, other = ((people * (part * hit + (1 - part) * miss)).sum(axis=-1)[..., None, None] for part in (p, q))
    estimate = combined.frequency[..., None]
    seen = combined.standard_error[..., None] ** 2 * n + np.clip(estimate, 0, 1)
    f, slope = _GRID, np.maximum(holder - other, 0)
    square = np.maximum(seen + slope * (f - np.clip(estimate, 0, 1)), other + slope * f)
    variance = square - (f**2 if population else f)
    return _accepted(estimate - f, np.sqrt(np.maximum(variance, 1e-12) / n), 1.0, z)


def calibrated_interval(
    support: Counts | Floats, n: int, protocols: tuple[PureProtocol, ...], z: float, *, population: bool = False
) -> Interval:
    """For `self_calibrated`: c_j/N − q̂ − f·(u + (w − 1)q̂) is linear in the counts and has mean zero at the true f, so
    the interval is all f where it lies within z standard deviations, taken at f and at the worse mix of levels."""
    u, w = own_bit(protocols)
    size = protocols[0].domain_size
    mean = ((support.sum(axis=-1, keepdims=True) / n - u) / (size - 1 + w))[..., None]
    inside, *ends = spread_of_levels(mean, protocols)
    gap = u + (w - 1) * mean
    f = _GRID
    noise = np.max([calibrated_noise(f, inside, u + (w - 1) * inside, v, size, u, w) for v in ends], axis=0)
    if population:
        noise = noise + f * (1 - f) * gap**2
    # How near a bound is, is only known as well as the gap is: a gap that seems small must not make the test one-sided.
    unsure = abs(w - 1) * np.sqrt(size * np.max(ends, axis=0) / n) / (size - 1 + w)
    # Counts are whole numbers: half of one more, which the normal law does not see where they are few.
    deviation = np.sqrt(noise / n) + 0.5 / (z * n)
    return _accepted(support[..., None] / n - mean - f * gap, deviation, np.abs(gap) + 2 * unsure, z)


def _crossing(room: Floats) -> Floats:
    """The first share of the grid with room, (…, hypothesis) → (…,), interpolated with the one before; else 1."""
    first = np.where((room >= 0).any(axis=-1), (room >= 0).argmax(axis=-1), _GRID.size - 1)
    before = np.maximum(first - 1, 0)
    inside, outside = (np.take_along_axis(room, at[..., None], axis=-1)[..., 0] for at in (first, before))
    part = np.where(outside < 0, np.maximum(inside, 0) / np.maximum(np.maximum(inside, 0) - outside, 1e-300), 0.0)
    return np.asarray(_GRID[first] + part * (_GRID[before] - _GRID[first]))


_SMALL = np.geomspace(1e-6, 0.5, 400)
_GRID = np.concatenate([[0.0], _SMALL, 1 - _SMALL[-2::-1], [1.0]])


def gap_variation(sizes: Counts, protocols: tuple[PureProtocol, ...], report: PureProtocol) -> float:
    """Coefficient of variation of D̂ = Σ ρ̂_l (p_l − q_l), given who chose which level: noise of the level reports."""
    d = np.array([one.gap for one in protocols])
    d_of = (d - report.q * d.sum()) / report.gap
    telling = np.full((d.size, d.size), report.q) + np.eye(d.size) * report.gap  # (level, told)
    per_level = telling @ d_of**2 - (telling @ d_of) ** 2
    n = sizes.sum()
    return float(np.sqrt((sizes * per_level).sum()) / (sizes * d).sum() if n else np.inf)


def needed_epsilon(sizes: Counts, protocols: tuple[PureProtocol, ...], most: float = MOST_VARIATION) -> float | None:
    """The smallest ε_p of the level report with `gap_variation` ≤ `most`; None where no ε_p up to 30 does it."""

    def enough(epsilon: float) -> bool:
        return gap_variation(sizes, protocols, level_report(len(protocols), epsilon)) <= most

    if not enough(_LARGEST_EPSILON):
        return None
    low, high = 1e-4, _LARGEST_EPSILON
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(low * high))
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def choose_hidden(
    sizes: Counts, protocols: tuple[PureProtocol, ...], report: PureProtocol, frequency: Floats
) -> HiddenChoice:
    """From a plan's assumptions alone: expected counts, typical (root mean square) errors over the values.

    `self-calibrated` needs no level report and holds with symmetric unary reports of more than two values; `auem` holds
    by `fieller_interval`. `em` is not among them: its error does not know of ρ̂ at its bound (docs/intervals.md).
    """
    telling = np.full((sizes.size, sizes.size), report.q) + np.eye(sizes.size) * report.gap
    supported = np.stack([one.q + frequency * one.gap for one in protocols])
    joint, tally = telling.T @ (sizes[:, None] * supported), sizes @ telling
    variation = gap_variation(sizes, protocols, report)
    # The delta method understates a ratio's error: by about the square of its variation.
    errors = {"auem": _typical(auem(joint, tally, protocols, report).standard_error) * (1 + variation**2)}
    if isinstance(protocols[0], BRR) and frequency.size > 2:
        calibrated = self_calibrated(joint.sum(axis=0), int(sizes.sum()), protocols)
        errors["self-calibrated"] = _typical(calibrated.standard_error)
    method = min(errors, key=lambda name: errors[name])
    short = method == "auem" and variation > MOST_VARIATION
    return HiddenChoice(method, errors, variation, needed_epsilon(sizes, protocols) if short else None)


def _typical(standard_error: Floats) -> float:
    return float(np.sqrt(np.mean(np.square(standard_error))))
