"""Hidden levels by moments: what can be had from support counts by level report, which add up over partitions.

Each user sends a value report Z by the protocol of the level chosen, and a level report b: k-RR over the t levels with
budget ε_p. `joint` counts support by level report, (…, b, value); `tally` counts level reports, (…, b). Leading
dimensions are repetitions. What each estimator assumes about the choice of a level stands in docs/frequencies.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, Floats, PureProtocol, Reports
from pldp.channels.unary import BRR, OUE
from pldp.estimate.likelihood import check_levels


@dataclass(frozen=True)
class Estimate:
    """Shares, unbiased up to terms of order 1/N: they may be negative. Errors are against the N users' own shares."""

    frequency: Floats
    standard_error: Floats


def level_report(n_levels: int, epsilon_p: Fraction | float) -> KRR:
    """The protocol by which a user reports the level chosen."""
    if n_levels < 2:
        raise ValueError("hidden levels need at least two levels: with one there is nothing to hide")
    if not 0 < epsilon_p < float("inf"):
        raise ValueError(f"epsilon_p must be > 0 and finite (got {float(epsilon_p):g})")
    return KRR.for_budget(n_levels, epsilon_p if isinstance(epsilon_p, Fraction) else Fraction(str(epsilon_p)))


def level_tally(level_reports: NDArray[np.integer], n_levels: int) -> Counts:
    """How many users reported each level; additive."""
    check_levels(level_reports, n_levels)
    return np.bincount(level_reports, minlength=n_levels)


def joint_support(
    protocol: PureProtocol, reports: Reports, level_reports: NDArray[np.integer], n_levels: int
) -> Counts:
    """Support by level report, (b, value); additive. Any level's protocol will do: their reports look alike."""
    check_levels(level_reports, n_levels)
    return np.stack([protocol.support(reports[level_reports == b]) for b in range(n_levels)])


def level_shares(tally: Counts | Floats, report: PureProtocol) -> Estimate:
    """Shares of the levels from the level reports alone; unbiased, may be negative."""
    n = tally.sum(axis=-1, keepdims=True)
    shares = (tally / n - report.q) / report.gap
    noise = report.noise_variance(np.clip(shares, 0, 1)) / n
    return Estimate(shares, np.sqrt(noise))


def auem(
    joint: Counts | Floats,
    tally: Counts | Floats,
    protocols: tuple[PureProtocol, ...],
    report: PureProtocol,
    *,
    levels: Literal["random", "fixed"] = "random",
    clip: bool = False,
    renormalise: bool = False,
) -> Estimate:
    """febsf Theorem 5.2: p̃ = (c/N − q*) / (p* − q*) with p* = Σ ρ̂_i p_i, q* = Σ ρ̂_i q_i.

    A ratio, heavy-tailed where ε_p is small. p* − q* cannot be less than the least p_i − q_i, so it is kept there.
    `clip` sets negative ρ̂ to zero, as evaluations in the literature do; q* then grows with Σ ρ̂ unless `renormalise`
    (tests/pldp/estimate/test_hidden.py measures both).

    Errors by the delta method. *febsf Theorem 5.3* is off by N² and drops the covariance of numerator and denominator.
    With c_l(b) = (1{b=l} − q_p)/(p_p − q_p), q(b) = Σ_l q_l c_l(b), d(b) = Σ_l (p_l − q_l) c_l(b), D = E d(b) and
    ψ = 1{Z supports i} − q(b) − p_i d(b):  Var(p̃_i − f_i) = E[ψ²]/(N D²) − p_i(1−p_i)/N if levels are random;
    with the composition of every level fixed the last term is −p_i(1−p_i) Σ_l ρ_l (p_l − q_l)² / (N D²).
    """
    same_class(protocols)
    n = tally.sum(axis=-1)[..., None]
    q = np.array([protocol.q for protocol in protocols])
    d = np.array([protocol.gap for protocol in protocols])
    raw = level_shares(tally, report).frequency
    shares = np.maximum(raw, 0) if clip else raw
    if renormalise:
        shares = shares / shares.sum(axis=-1, keepdims=True)
    low = (shares * q).sum(axis=-1, keepdims=True)
    gap = np.maximum((shares * d).sum(axis=-1, keepdims=True), d.min())
    frequency = (joint.sum(axis=-2) / n - low) / gap
    inside = np.clip(frequency, 0, 1)
    # By level report b: mean of the level's q and p − q given b, as linear functions of 1{b = l}.
    q_of = (q - report.q * q.sum()) / report.gap
    d_of = (d - report.q * d.sum()) / report.gap
    mean = q_of[:, None] + inside[..., None, :] * d_of[:, None]
    squares = (joint * (1 - 2 * mean) + tally[..., None] * mean**2).sum(axis=-2) / n
    # A value that hardly any report supports shows no variance: it has at least that of its expected support.
    implied = np.clip(low + np.clip(frequency, 1 / n, 1 - 1 / n) * gap, 0, 1)
    squares = np.maximum(squares, implied * (1 - implied))
    between = inside * (1 - inside)
    if levels == "fixed":
        # Σ ρ d² is at least D² (Jensen), whatever noise does to ρ̂.
        between = between * np.maximum((raw * d**2).sum(axis=-1, keepdims=True) / gap**2, 1)
    variance = (squares / gap**2 - between) / n
    # ρ̂ may lie outside the simplex where people are few, and their reports alike: no mix of levels has less noise than
    # its clearest one alone, since Σ ρ d² is at least D².
    least = np.min([one.noise_variance(inside) for one in protocols], axis=0) / n
    return Estimate(frequency, np.sqrt(np.maximum(variance, least)))


def hidden_sum(
    joint: Counts | Floats, tally: Counts | Floats, protocols: tuple[PureProtocol, ...], report: PureProtocol
) -> Estimate:
    """Unbiased however levels depend on values: what `sum` is for public levels, at a price in variance.

    Pr[b | level] is known, so each level's support and size can be had from `joint` and `tally` by inverting it:
    f̂_j = 1/N Σ_u φ_j(u), φ_j = Σ_l c_l(b) (1{Z supports j} − q_l) / (p_l − q_l), and E[φ_j | value x] = 1{x = j}.
    Hence Var(f̂_j − f_j) = (E[φ_j²] − f_j)/N.
    """
    same_class(protocols)
    n = tally.sum(axis=-1)[..., None]
    d = np.array([protocol.gap for protocol in protocols])
    q = np.array([protocol.q for protocol in protocols])
    # Per level report: φ = steep · 1{Z supports j} − flat.
    steep, flat = ((part - report.q * part.sum()) / report.gap for part in (1 / d, q / d))
    frequency = (joint * steep[:, None] - tally[..., None] * flat[:, None]).sum(axis=-2) / n
    squares = joint * (steep**2 - 2 * steep * flat)[:, None] + tally[..., None] * (flat**2)[:, None]
    inside = np.clip(frequency, 0, 1)
    variance = squares.sum(axis=-2) / n - inside
    # Few people may all have the same φ. Whatever their levels, they have the variance of the level that has least.
    hit, miss = mean_powers(protocols, report, 2)
    holder, other = (part * hit + (1 - part) * miss for part in (q + d, q))
    by_level = inside[..., None, :] * (holder - 1)[:, None] + (1 - inside[..., None, :]) * other[:, None]
    least = np.maximum(by_level.min(axis=-2), 0)  # rounding falls below where nothing is noisy
    return Estimate(frequency, np.sqrt(np.maximum(variance, least) / n))


def mean_powers(protocols: tuple[PureProtocol, ...], report: PureProtocol, power: int) -> tuple[Floats, Floats]:
    """By level: the mean of a power of `hidden_sum`'s φ over level reports, of a report that supports the value or does
    not."""
    q, d = (np.array([getattr(one, part) for one in protocols]) for part in ("q", "gap"))
    levels = len(protocols)
    telling = np.full((levels, levels), report.q) + np.eye(levels) * report.gap  # (level, level that is told)
    steep, flat = ((part - report.q * part.sum()) / report.gap for part in (1 / d, q / d))
    return telling @ (steep - flat) ** power, telling @ (-flat) ** power


def self_calibrated(
    support: Counts | Floats, n: int, protocols: tuple[PureProtocol, ...], shares: Floats | None = None
) -> Estimate:
    """Without any level report: how many bits are set tells how much noise there is.

    Where p_l = u + w q_l at every level (SUE: 1 − q; OUE: constant), a report of s bits has E s = u + (k − 1 + w) q_l,
    so q̂ = (Σ_j c_j/N − u)/(k − 1 + w) estimates the mean q, and p̂_j = (c_j/N − q̂)/(u + (w − 1) q̂).

    Errors by the delta method with g_j = (1 + (w − 1) p_j)/(k − 1 + w): bit j enters with 1 − g_j, every other bit
    with −g_j, and bits are independent given value and level. What the levels' mix adds depends on it only through
    V = Σ_l ρ_l q_l(1 − q_l), linearly. `shares` gives V; without them the worse end of the range that q̂ leaves.
    """
    same_class(protocols)
    size = protocols[0].domain_size
    u, w = own_bit(protocols)
    if size - 1 + w <= 0:
        raise ValueError(
            f"self-calibration is undefined for {protocols[0].name} over {size} values: the mean number of supported "
            "values does not depend on the level"
        )
    levels_q = np.array([protocol.q for protocol in protocols])
    mean = (support.sum(axis=-1, keepdims=True) / n - u) / (size - 1 + w)
    inside_q, lowest, highest = spread_of_levels(mean, protocols)
    gap = np.maximum(u + (w - 1) * mean, min(protocol.gap for protocol in protocols))
    frequency = (support / n - mean) / gap
    p = np.clip(frequency, 0, 1)
    known = None if shares is None else np.clip((shares * levels_q * (1 - levels_q)).sum(), lowest, highest)
    ends_of_v = (lowest, highest) if known is None else (known,)
    worst = np.max([calibrated_noise(p, inside_q, gap, v, size, u, w) for v in ends_of_v], axis=0)
    return Estimate(frequency, np.sqrt(worst / n) / gap)


def calibrated_noise(p: Floats, mean_q: Floats, gap: Floats, v: Floats, size: int, u: float, w: float) -> Floats:
    """Variance of one report's part in p̂_j − p_j times the gap, at a share p, with V = `v`: `self_calibrated`."""
    g = (1 + (w - 1) * p) / (size - 1 + w)
    held = u * (1 - u) + w * (1 - 2 * u) * mean_q - w**2 * (mean_q - v)  # Σ ρ_l p_l(1 − p_l)
    noise = p * ((1 - g) ** 2 * held + (size - 1) * g**2 * v)
    noise += (1 - p) * ((1 - g) ** 2 * v + g**2 * held + (size - 2) * g**2 * v)
    square = u**2 + 2 * u * (w - 1) * mean_q + (w - 1) ** 2 * (mean_q - v)  # Σ ρ_l (p_l − q_l)²
    return np.asarray(noise + p * (1 - p) * np.maximum(square - gap**2, 0))


def spread_of_levels(mean: Floats, protocols: tuple[PureProtocol, ...]) -> tuple[Floats, Floats, Floats]:
    """The mean q kept where levels can have it, and the least and the most that Σ_l ρ_l q_l(1 − q_l) can be with it."""
    levels_q = np.array([protocol.q for protocol in protocols])
    inside = np.clip(mean, levels_q.min(), levels_q.max())
    part = (inside - levels_q.min()) / (np.ptp(levels_q) or 1.0)
    ends = levels_q[[levels_q.argmin(), levels_q.argmax()]]
    lowest = (1 - part) * ends[0] * (1 - ends[0]) + part * ends[1] * (1 - ends[1])  # everybody at the two extremes
    return inside, lowest, inside * (1 - inside)  # Jensen: everybody at one level


def same_class(protocols: tuple[PureProtocol, ...]) -> None:
    """ValueError unless all levels draw by one protocol: else reports tell the level."""
    if len({type(protocol) for protocol in protocols}) != 1:
        raise ValueError("hidden levels need one protocol for all levels of an attribute")


def own_bit(protocols: tuple[PureProtocol, ...]) -> tuple[float, float]:
    """(u, w) of p_l = u + w q_l."""
    if isinstance(protocols[0], BRR):
        return 1.0, -1.0
    if isinstance(protocols[0], OUE) and len({protocol.exact_p for protocol in protocols}) == 1:
        return protocols[0].p, 0.0
    raise ValueError(f"self-calibration needs brr or oue reports: those of {protocols[0].name} do not show their noise")


def draw_hidden(
    true_counts: Counts, protocols: tuple[PureProtocol, ...], report: PureProtocol, rng: np.random.Generator
) -> tuple[Counts, Counts]:
    """`joint` and `tally` from their exact distribution, given true counts (…, level, value); never for a release."""
    t = len(protocols)
    joint = np.zeros(true_counts.shape, dtype=np.int64)
    tally = np.zeros(true_counts.shape[:-1], dtype=np.int64)
    for level, protocol in enumerate(protocols):
        chances = np.full(t, report.q)
        chances[level] = report.p
        chances /= chances.sum()
        sent = rng.multinomial(true_counts[..., level, :], chances)  # (…, value, b)
        for b in range(t):
            joint[..., b, :] += protocol.sample_support(sent[..., b], rng)
            tally[..., b] += sent[..., b].sum(axis=-1)
    return joint, tally
