"""The law of a linear estimate at a hypothesised share, and how far from it the estimate may fall.

T = Σ_τ u_τ (c_τ − n_τ q_τ), u_τ = w_τ/(n_τ (p_τ − q_τ)), is a weighted sum of support counts, each the sum of two
binomials: N_τ holders are supported with p_τ, the others with q_τ. Where few reports decide, its law is discrete and
skewed, and 1.96 standard errors are not its 95 %. With g_τ(s) = 1 + q_τ(e^{isu_τ} − 1) and h_τ likewise with p_τ, and
every one of N holders at level τ with probability π_τ ρ_τ, the characteristic function is

    E e^{isT} = e^{−is Σ u_τ n_τ q_τ} · Π_τ g_τ^{n_τ} · (Σ_τ π_τ ρ_τ h_τ/g_τ)^N

and a Fourier transform gives the law (docs/intervals.md). Holders are dealt with replacement here; the variance is
therefore put right afterwards, by stretching the standardised law. Where most people hold the value the roles of
holders and others are exchanged. Where neither are few, everybody at level τ is a holder with the share f_τ, and the
law is that of T − N/n: (Π_τ [(1 − f_τ) g_τ + f_τ e^{−is/n} h_τ]^{n_τ}).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Counts, Floats, PureProtocol

POINTS = 1 << 12
REACH = 12.0
"""Standard deviations on either side that the transform sees; what lies beyond wraps around."""
STEP = 2 * REACH / POINTS
_SMEAR = 1.5  # steps by which every atom is smeared, so that the transform does not ring
PAD = 2 * _SMEAR * STEP
"""To add to a quantile, so that it holds the whole atom it falls on."""

FEW = 0.05
"""Up to this share, of holders or of others, they are dealt out to the levels; beyond, everybody is drawn."""

Distribution = Callable[[Floats], Floats]
Complexes = NDArray[np.complex128]
Characteristic = Callable[[float], Complexes]
"""At `_FREQUENCY` times a scale."""
_FREQUENCY = 2 * np.pi * np.arange(POINTS // 2 + 1) / (POINTS * STEP)
_BLOCK = 64
_NEAR = _FREQUENCY[:_BLOCK]
_FAR = _FREQUENCY[::_BLOCK]
_UNSEEN = -45.0
"""The logarithm of a characteristic function that adds less than rounding does."""
_SMEARED = np.exp(-((_FREQUENCY * STEP * _SMEAR) ** 2) / 2 + 1j * _FREQUENCY * REACH)


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
        """u_τ: how far one report moves the estimate, `weights` being (level,) or (level, hypothesis)."""
        unit = self.n * self.gap
        return weights / (unit if weights.ndim == 1 else unit[:, None])


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
            characteristic, deviation = _independent(channels, step, held, 0.0)
        elif min(share[i], 1 - share[i]) <= FEW:
            characteristic, deviation = _dealt(channels, step, held, share[i])
        else:
            characteristic, deviation = _independent(channels, step, held, 1 / total)
        if deviation <= 1e-9 * step.max():
            laws[i, POINTS // 2] = 1.0
            continue
        laws[i] = np.fft.irfft(np.conj(characteristic(1 / deviation) * _SMEARED), POINTS)
    return np.maximum(laws, 0.0)


def _dealt(channels: Channels, step: Floats, held: Floats, share: float) -> tuple[Characteristic, float]:
    """E e^{is(T − E T)} and the deviation, the rare ones (holders, or the others) dealt out one by one."""
    most = share > 0.5
    n = channels.n.astype(np.float64)
    rare_people = n * (1 - held) if most else n * held
    few = float(np.rint(rare_people.sum()))
    where = rare_people / rare_people.sum() if few else n / n.sum()
    usual, rare = (channels.p, channels.q) if most else (channels.q, channels.p)
    extra = step * (rare - usual)  # what replacing a usual person by a rare one adds
    mean_extra = float((where * extra).sum())
    spread = step**2 * (rare * (1 - rare) - usual * (1 - usual))
    variance = float((n * step**2 * usual * (1 - usual)).sum())
    variance += few * (float((where * (spread + extra**2)).sum()) - mean_extra**2)
    centre = float((n * step * usual).sum()) + few * mean_extra

    def characteristic(scale: float) -> Complexes:
        turn = _turns(step * scale) - 1
        base = 1 + usual[:, None] * turn
        mixed = (where[:, None] * (1 + rare[:, None] * turn) / base).sum(axis=0)
        return _product(np.vstack([base, mixed]), np.append(n, few), centre * scale)

    return characteristic, float(np.sqrt(max(variance, 0.0)))


def _independent(channels: Channels, step: Floats, held: Floats, one: float) -> tuple[Characteristic, float]:
    """The same of T − N·one where everybody at level τ holds the value with the share f_τ, for themselves."""
    n, p, q = channels.n.astype(np.float64), channels.p, channels.q
    chance = q + held * channels.gap
    spread = held * (1 - held)
    variance = (n * (step**2 * chance * (1 - chance) + spread * one * (one - 2 * step * channels.gap))).sum()
    centre = float((n * (step * chance - held * one)).sum())

    def characteristic(scale: float) -> Complexes:
        turn = _turns(step * scale) - 1
        shift = _turns(np.array([-one * scale]))
        mixed = (1 - held)[:, None] * (1 + q[:, None] * turn) + held[:, None] * shift * (1 + p[:, None] * turn)
        return _product(mixed, n, centre * scale)

    return characteristic, float(np.sqrt(max(float(variance), 0.0)))


def _turns(angle: Floats) -> Complexes:
    """e^{isu} at all frequencies s, (level, frequency): they are evenly spaced, so a product of two short tables."""
    far, near = (np.exp(1j * angle[:, None] * steps) for steps in (_FAR, _NEAR))
    table = (far[:, :, None] * near[:, None, :]).reshape(angle.size, -1)
    return np.asarray(table[:, : _FREQUENCY.size])


def _product(bases: Complexes, powers: Floats, centre: float) -> Complexes:
    """Π base^power · e^{−is·centre} of (base, frequency): in polar form, and zero where nobody would see it."""
    size = powers @ np.log(np.maximum(bases.real**2 + bases.imag**2, 1e-300)) / 2
    seen = np.flatnonzero(size > _UNSEEN)
    some = bases[:, seen]
    angle = powers @ np.arctan2(some.imag, some.real) - _FREQUENCY[seen] * centre
    product = np.zeros(size.size, dtype=np.complex128)
    product[seen] = np.exp(size[seen] + 1j * angle)
    return product


def distribution(law: Floats) -> Distribution:
    """The function Pr[Z ≤ z] of every hypothesis, Z standardised; it takes and gives (hypothesis,)."""
    below = np.cumsum(law, axis=1) / law.sum(axis=1, keepdims=True)
    rows = np.arange(len(law))

    def up_to(z: Floats) -> Floats:
        place = np.floor((np.clip(z, -2 * REACH, 2 * REACH) + REACH) / STEP).astype(np.intp)
        return np.where(place < 0, 0.0, below[rows, np.clip(place, 0, POINTS - 1)])

    return up_to
