"""The law of a linear estimate at a hypothesised share, and how far from it the estimate may fall.

T = Σ_τ u_τ (c_τ − n_τ q_τ), u_τ = w_τ/(n_τ (p_τ − q_τ)), is a weighted sum of support counts, each the sum of two
binomials: N_τ holders are supported with p_τ, the others with q_τ. Where few reports decide, its law is discrete and
skewed, and 1.96 standard errors are not its 95 %. With g_τ(s) = 1 + q_τ(e^{isu_τ} − 1) and h_τ likewise with p_τ, and
every one of N holders at level τ with probability π_τ ρ_τ, the characteristic function is

    E e^{isT} = e^{−is Σ u_τ n_τ q_τ} · Π_τ g_τ^{n_τ} · (Σ_τ π_τ ρ_τ h_τ/g_τ)^N

and a Fourier transform gives the law (docs/intervals.md). Holders are dealt with replacement here; the variance is
therefore put right afterwards, by stretching the standardised law. Where most people hold the value the roles of
holders and others are exchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pldp.channels.protocol import Counts, Floats, PureProtocol

POINTS = 1 << 12
REACH = 12.0
"""Standard deviations on either side that the transform sees; what lies beyond wraps around."""
STEP = 2 * REACH / POINTS
_SMEAR = 1.0  # steps by which every atom is smeared, so that the transform does not ring
PAD = 2.5 * _SMEAR * STEP
"""To add to a quantile, so that it holds the whole atom it falls on."""

Distribution = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Channels:
    """Sizes and probabilities of the levels that have reports, each (level,)."""

    n: Counts
    p: Floats
    q: Floats
    gap: Floats

    @classmethod
    def of(cls, n: Counts, protocols: tuple[PureProtocol, ...]) -> Channels:
        parts = np.array([(one.p, one.q, one.gap) for one in protocols])
        return cls(n, parts[:, 0], parts[:, 1], parts[:, 2])

    def steps(self, weights: Floats) -> Floats:
        """u_τ: how far one report moves the estimate, `weights` being (level, hypothesis)."""
        return weights / (self.n * self.gap)[:, None]


def coarseness(channels: Channels, weights: Floats, share: Floats) -> Floats:
    """The step of one report in standard deviations of the noise, the mean over levels by their part in it.

    A lattice of step h moves the coverage of a two-sided interval by at most φ(1.96)·h = 0.06 h; the skewness is below
    h, and a skewness g moves it by 0.03 g² (docs/intervals.md).
    """
    chance = channels.q[:, None] + share * channels.gap[:, None]
    step = channels.steps(weights)
    parts = channels.n[:, None] * step**2 * chance * (1 - chance)
    total = np.maximum(parts.sum(axis=0), 1e-300)
    return np.asarray((parts * step).sum(axis=0) / total**1.5)


def standard_law(channels: Channels, weights: Floats, holders: Counts, tilt: Floats) -> Floats:
    """Probabilities of (T − E T)/sd at −REACH + i·STEP, (hypothesis, point).

    `weights` and `tilt` are (level, hypothesis), `holders` (hypothesis,) whole numbers. A law without any spread has
    everything in the middle.
    """
    n, total = channels.n.astype(np.float64), float(channels.n.sum())
    share = holders / total
    most = share > 0.5
    few = np.where(most, total - holders, holders)
    held = np.clip(share * tilt, 0, 1)
    where = np.where(most, 1 - held, held) * n[:, None]
    mass = where.sum(axis=0)
    where = np.where(mass > 0, where / np.where(mass > 0, mass, 1), (n / total)[:, None])
    p, q = channels.p[:, None], channels.q[:, None]
    usual, rare = np.where(most, p, q), np.where(most, q, p)
    step = channels.steps(weights)
    # Per rare person at τ: mean and variance of what replacing a usual one adds.
    extra = step * (rare - usual)
    mean_extra = (where * extra).sum(axis=0)
    spread = step**2 * (rare * (1 - rare) - usual * (1 - usual))
    variance = (n[:, None] * step**2 * usual * (1 - usual)).sum(axis=0)
    variance += few * ((where * (spread + extra**2)).sum(axis=0) - mean_extra**2)
    deviation = np.sqrt(np.maximum(variance, 0))
    flat = deviation <= 1e-9 * step.max(axis=0)
    scale = step / np.where(flat, 1.0, deviation)
    laws = np.empty((holders.size, POINTS))
    frequency = 2 * np.pi * np.arange(POINTS // 2 + 1) / (POINTS * STEP)
    smear = np.exp(-((frequency * STEP * _SMEAR) ** 2) / 2 + 1j * frequency * REACH)
    for i in range(holders.size):
        size, chance, other = (part[:, i : i + 1] for part in (scale, usual, rare))
        cosine, sine = np.cos(frequency * size) - 1, np.sin(frequency * size)
        # ln(1 + q(e^{iθ} − 1)) in polar form, several times faster than a complex logarithm.
        real, imaginary = 1 + chance * cosine, chance * sine
        modulus = np.log1p(2 * chance * (1 - chance) * cosine) / 2
        log = (n[:, None] * (modulus + 1j * np.arctan2(imaginary, real))).sum(axis=0)
        odds = (1 + other * (cosine + 1j * sine)) / (real + 1j * imaginary)
        log += few[i] * np.log((where[:, i : i + 1] * odds).sum(axis=0))
        centre = (n[:, None] * size * chance).sum() + few[i] * mean_extra[i] / (1.0 if flat[i] else deviation[i])
        laws[i] = np.fft.irfft(np.conj(np.exp(log - 1j * frequency * centre) * smear), POINTS)
    laws[flat] = 0.0
    laws[flat, POINTS // 2] = 1.0
    return np.maximum(laws, 0.0)


def distribution(law: Floats) -> Distribution:
    """The function Pr[Z ≤ z] of every hypothesis, Z standardised; it takes and gives (hypothesis,)."""
    below = np.cumsum(law, axis=1) / law.sum(axis=1, keepdims=True)
    rows = np.arange(len(law))

    def up_to(z: Floats) -> Floats:
        place = np.floor((np.clip(z, -2 * REACH, 2 * REACH) + REACH) / STEP).astype(np.intp)
        return np.where(place < 0, 0.0, below[rows, np.clip(place, 0, POINTS - 1)])

    return up_to
