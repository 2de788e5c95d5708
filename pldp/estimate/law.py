"""The law of a linear estimate at a hypothesised share, and how far from it the estimate may fall.

T = Σ_τ u_τ (c_τ − n_τ q_τ), u_τ = w_τ/(n_τ (p_τ − q_τ)), is a weighted sum of support counts, each the sum of two
binomials: N_τ holders are supported with p_τ, the others with q_τ. Where few reports decide, its law is discrete and
skewed, and 1.96 standard errors are not its 95 %. With g_τ(s) = 1 + q_τ(e^{isu_τ} − 1) and h_τ likewise with p_τ, and
every one of N holders at level τ with probability π_τ ρ_τ, the characteristic function is

    E e^{isT} = e^{−is Σ u_τ n_τ q_τ} · Π_τ g_τ^{n_τ} · (Σ_τ π_τ ρ_τ h_τ/g_τ)^N

and a Fourier transform gives the law (docs/intervals.md). Holders are dealt with replacement here; the variance is
therefore put right afterwards, by stretching the standardised law. Where most people hold the value the roles of
holders and others are exchanged. Where neither are a small share, there are as many holders as are tested: all ways to
deal out at most twelve are gone through (`every_way`), more are drawn at all levels but
one, which has the others (`shared`).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pldp.channels.protocol import Counts, Floats
from pldp.estimate.characteristic import FREQUENCY, POINTS, REACH, STEP, Channels, dealt, every_way, independent, shared

_SMEAR = 1.5  # steps by which every atom is smeared, so that the transform does not ring
PAD = 2 * _SMEAR * STEP
"""To add to a quantile, so that it holds the whole atom it falls on."""
FEW = 0.05
"""Up to this share, of holders or of others, they are dealt out to the levels with replacement."""
_SMEARED = np.exp(-((FREQUENCY * STEP * _SMEAR) ** 2) / 2 + 1j * FREQUENCY * REACH)

Distribution = Callable[[Floats], Floats]


def coarseness(channels: Channels, weights: Floats, share: Floats) -> Floats:
    """The step of one report or one person in standard deviations, the mean over levels by their part in the variance.

    A lattice of step h moves the coverage of a two-sided interval by at most φ(1.96)·h = 0.06 h; the skewness is below
    h, and a skewness g moves it by 0.03 g² (docs/intervals.md).
    """
    n, p, q = channels.n[:, None], channels.p[:, None], channels.q[:, None]
    step, apart = channels.steps(weights), np.abs(weights / n - 1 / channels.n.sum())
    drawn = n * step**2 * (share * p * (1 - p) + (1 - share) * q * (1 - q))
    chosen = n * apart**2 * share * (1 - share)
    total = np.maximum((drawn + chosen).sum(axis=0), 1e-150)
    return np.asarray((drawn * step + chosen * apart).sum(axis=0) / total**1.5)


def standard_law(
    channels: Channels, weights: Floats, holders: Counts, tilt: Floats, *, population: bool = False
) -> Floats:
    """Probabilities of (T − E T)/sd at −REACH + i·STEP, (hypothesis, point).

    `weights` and `tilt` are (level, hypothesis), `holders` (hypothesis,) whole numbers. A law without any spread has
    everything in the middle. Of a population the holders are drawn too, and the law is that of T alone.
    """
    laws = np.zeros((holders.size, POINTS))
    total = float(channels.n.sum())
    share = holders / total
    for i in range(holders.size):
        held = np.clip(share[i] * tilt[:, i], 0, 1)
        step = np.asarray(channels.steps(weights[:, i]), dtype=np.float64)
        if population:
            characteristic, deviation = independent(channels, step, held)
        elif min(share[i], 1 - share[i]) <= FEW:
            characteristic, deviation = dealt(channels, step, held, share[i])
        else:
            exact = every_way(channels, step, held, int(holders[i]))
            characteristic, deviation = exact or shared(channels, step, held, int(holders[i]))
        if deviation <= 1e-9 * step.max():
            laws[i, POINTS // 2] = 1.0
            continue
        laws[i] = np.fft.irfft(np.conj(characteristic(1 / deviation) * _SMEARED), POINTS)
    return np.maximum(laws, 0.0)


def distribution(law: Floats) -> Distribution:
    """The function Pr[Z ≤ z] of every hypothesis, Z standardised; it takes and gives (hypothesis,)."""
    below = np.cumsum(law, axis=1) / law.sum(axis=1, keepdims=True)
    rows = np.arange(len(law))

    def up_to(z: Floats) -> Floats:
        place = np.floor((np.clip(z, -2 * REACH, 2 * REACH) + REACH) / STEP).astype(np.intp)
        return np.where(place < 0, 0.0, below[rows, np.clip(place, 0, POINTS - 1)])

    return up_to
