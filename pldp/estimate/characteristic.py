"""Characteristic functions of a linear estimate at a hypothesised share, and its deviation (`law` has the formulas).

They differ in how the holders of the value get to their levels.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, xlogy

from pldp.channels.protocol import Counts, Floats, PureProtocol

POINTS = 1 << 12
REACH = 12.0
"""Standard deviations on either side that the transform sees; what lies beyond wraps around."""
STEP = 2 * REACH / POINTS
FREQUENCY = 2 * np.pi * np.arange(POINTS // 2 + 1) / (POINTS * STEP)

Complexes = NDArray[np.complex128]
Characteristic = Callable[[float], Complexes]
"""At `FREQUENCY` times a scale."""
_BLOCK = 64
_NEAR = FREQUENCY[:_BLOCK]
_FAR = FREQUENCY[::_BLOCK]
_UNSEEN = -45.0
"""The logarithm of a characteristic function that adds less than rounding does."""
_BLURRED = 0.3  # a report whose characteristic function is below this tells nothing of where steps lie
_RARE, _WAYS = 12, 128  # people who are dealt out to levels in every way there is, and these ways


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


def dealt(channels: Channels, step: Floats, held: Floats, share: float) -> tuple[Characteristic, float]:
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


def every_way(channels: Channels, step: Floats, held: Floats, holders: int) -> tuple[Characteristic, float] | None:
    """The same where so few hold the value, or do not, that all ways to deal them out can be gone through: each as
    likely as if everybody held it by the level's share and there were so many. None where there are too many ways."""
    n, levels = channels.n, channels.n.size
    most = 2 * holders > n.sum()
    rare = int(n.sum()) - holders if most else holders
    if levels == 1 or rare > _RARE or math.comb(rare + levels - 1, levels - 1) > _WAYS:
        return None
    dealings, share = _dealings(rare, levels), 1 - held if most else held
    dealings = dealings[(dealings <= n).all(axis=1)]
    chance = np.exp(
        xlogy(dealings, share) + xlogy(n - dealings, 1 - share) - betaln(n - dealings + 1, dealings + 1)
    ).prod(axis=1)
    dealings, chance = (n - dealings if most else dealings)[chance > 0], chance[chance > 0]
    if not chance.size:
        return None
    chance = chance / chance.sum()
    p, q, gap = channels.p, channels.q, channels.gap
    inside = chance @ dealings
    variance = (step**2 * (inside * p * (1 - p) + (n - inside) * q * (1 - q))).sum()
    variance += chance @ ((dealings - inside) @ (step * gap)) ** 2
    centre = float((step * (n * q + inside * gap)).sum())
    powers = np.hstack([n - dealings, dealings]).astype(np.float64)

    def characteristic(scale: float) -> Complexes:
        turn = _turns(step * scale) - 1
        bases = np.vstack([1 + q[:, None] * turn, 1 + p[:, None] * turn])
        size = powers @ np.log(np.maximum(np.abs(bases), 1e-150))
        angle = powers @ np.angle(bases) - FREQUENCY * centre * scale
        return np.asarray(chance @ np.exp(size + 1j * angle))

    return characteristic, float(np.sqrt(max(float(variance), 0.0)))


@lru_cache(maxsize=64)
def _dealings(people: int, levels: int) -> Counts:
    """All ways to deal so many people out to so many levels, (way, level)."""
    bars = np.array([*combinations(range(people + levels - 1), levels - 1)], dtype=np.int64).reshape(-1, levels - 1)
    fence = np.pad(bars, ((0, 0), (1, 1)), constant_values=((0, 0), (-1, people + levels - 1)))
    return np.diff(fence, axis=1) - 1


def shared(channels: Channels, step: Floats, held: Floats, holders: int) -> tuple[Characteristic, float]:
    """The same where neither are few: every level has its holders by chance but the largest, which has all others.

    So there are as many as are tested: steps of reports lie where they do with so many. Who of a level are drawn, by
    how much holders vary there among so many in all; the rest of the level holds its share exactly.
    """
    n = channels.n.astype(np.float64)
    p, q, gap = channels.p, channels.q, channels.gap
    loose = n * np.maximum(held * (1 - held), 1e-12)
    last = int((loose * (np.abs(2 * p - 1) + 1e-9)).argmax())  # what it takes on is told apart by clear reports
    drawn = np.rint(n * (1 - loose / loose.sum()))
    drawn[last] = 0
    fixed = np.rint((n - drawn) * held)
    fixed[last] = holders - fixed.sum() + fixed[last]
    chance = np.clip((n * held - fixed) / np.maximum(drawn, 1), 0, 1)
    varied = drawn * chance * (1 - chance)
    inside = n * held
    variance = (step**2 * (inside * p * (1 - p) + (n - inside) * q * (1 - q))).sum()
    variance += (varied * (step * gap - step[last] * gap[last]) ** 2).sum()
    others = np.where(drawn > 0, drawn * chance, 0.0)
    expected = fixed + others
    expected[last] -= others.sum()
    centre = float((step * (n * q + expected * gap)).sum())

    def characteristic(scale: float) -> Complexes:
        turn = _turns(step * scale) - 1
        miss, hit = 1 + q[:, None] * turn, 1 + p[:, None] * turn
        blurred = np.abs(hit[last]) < _BLURRED  # to the power of all holders that is next to nothing
        hit[last, blurred] = 1e-150
        moved = np.where(blurred, 1.0, miss[last] / hit[last])
        mixed = (1 - chance)[:, None] * miss + chance[:, None] * hit * moved
        some = drawn > 0
        bases = np.vstack([miss, hit, mixed[some]])
        return _product(bases, np.concatenate([n - drawn - fixed, fixed, drawn[some]]), centre * scale)

    return characteristic, float(np.sqrt(max(float(variance), 0.0)))


def independent(channels: Channels, step: Floats, held: Floats) -> tuple[Characteristic, float]:
    """The law of T − E T where everybody at level τ holds the value with the share f_τ, for themselves."""
    n, chance = channels.n.astype(np.float64), channels.q + held * channels.gap
    variance = (n * step**2 * chance * (1 - chance)).sum()
    centre = float((n * step * chance).sum())

    def characteristic(scale: float) -> Complexes:
        return _product(1 + chance[:, None] * (_turns(step * scale) - 1), n, centre * scale)

    return characteristic, float(np.sqrt(max(float(variance), 0.0)))


def _turns(angle: Floats) -> Complexes:
    """e^{isu} at all frequencies s, (level, frequency): they are evenly spaced, so a product of two short tables."""
    far, near = (np.exp(1j * angle[:, None] * steps) for steps in (_FAR, _NEAR))
    table = (far[:, :, None] * near[:, None, :]).reshape(angle.size, -1)
    return np.asarray(table[:, : FREQUENCY.size])


def _product(bases: Complexes, powers: Floats, centre: float) -> Complexes:
    """Π base^power · e^{−is·centre} of (base, frequency): in polar form, and zero where nobody would see it."""
    size = powers @ np.log(np.maximum(bases.real**2 + bases.imag**2, 1e-300)) / 2
    seen = np.flatnonzero((size > _UNSEEN) & (size < 1e-6))
    some = bases[:, seen]
    angle = powers @ np.arctan2(some.imag, some.real) - FREQUENCY[seen] * centre
    product = np.zeros(size.size, dtype=np.complex128)
    product[seen] = np.exp(size[seen] + 1j * angle)
    return product
