"""Critical values: how many standard errors an interval reaches when its estimate may be off by a bounded bias."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from scipy.special import ndtr, ndtri

from pldp.channels.protocol import Floats

CONFIDENCE = 0.95
_NEWTON = 8
_HALVINGS = 50
_MOST_RATIO = 1e6
_FAR = 12.0
_NEAR = np.linspace(0.0, 4.0, 801)


def two_sided(confidence: float = CONFIDENCE) -> float:
    """z with Pr[|N(0, 1)| ≤ z] = confidence."""
    return float(ndtri(0.5 + confidence / 2))


def biased_quantile(bias: Floats | float, confidence: float = CONFIDENCE) -> Floats:
    """cv(t): the c with Pr[|N(t, 1)| ≤ c] = confidence, t = `bias` ≥ 0 in standard errors (Armstrong and Kolesár 2018).

    cv(0) is the two-sided z; for large t all errors lie on one side and cv(t) = t + the one-sided z. Newton's steps on
    Φ(c − t) − Φ(−c − t) start at the larger of the two, which is below the root, where the function is concave.
    """
    t = np.abs(np.asarray(bias, dtype=np.float64))
    c = np.maximum(two_sided(confidence), t + float(ndtri(confidence)))
    for _ in range(_NEWTON):
        miss = confidence - (ndtr(c - t) - ndtr(-c - t))
        slope = (np.exp(-((c - t) ** 2) / 2) + np.exp(-((c + t) ** 2) / 2)) / np.sqrt(2 * np.pi)
        c = c + miss / slope
    return np.asarray(c)


def boundary_ratio(distance: Floats, confidence: float = CONFIDENCE) -> Floats:
    """How many times further an estimate may fall towards a bound of the parameter than away from it.

    `distance` x is that of the hypothesis from the bound, in standard errors. An estimate beyond the bound speaks for
    the bound, not against a hypothesis near it: the likelihood ratio to the best *possible* value orders estimates
    (Feldman and Cousins 1998). It accepts [x − a, x + b] with a = x/2 + b²/(2x) where that exceeds x, and the same
    likelihood ratio at both ends; so at the bound the test is one-sided, and from x = 1.96 on symmetric. Returns a/b.
    """
    x = np.maximum(np.asarray(distance, dtype=np.float64), 1e-9)
    least, most = np.full(x.shape, float(ndtri(confidence))), np.full(x.shape, two_sided(confidence))
    for _ in range(_HALVINGS):
        b = (least + most) / 2
        enough = ndtr(b) - ndtr(-(x / 2 + b**2 / (2 * x))) >= confidence
        least, most = np.where(enough, least, b), np.where(enough, b, most)
    ratio = np.where(x >= two_sided(confidence), 1.0, x / (2 * most) + most / (2 * x))
    return np.asarray(np.clip(ratio, 1.0, _MOST_RATIO))


def accepted_reach(from_least: Floats, from_most: Floats, confidence: float = CONFIDENCE) -> tuple[Floats, Floats]:
    """How many standard errors below and above a hypothesis a normal estimate may fall, near either bound.

    The arguments are the hypothesis' distances from its two bounds in standard errors. Where both are near, the test
    accepts what either accepts.
    """
    towards, away = _near_bound(confidence)
    z = two_sided(confidence)

    def one_side(near: Floats, other: Floats) -> Floats:
        return np.where(near < z, np.interp(near, _NEAR, towards), np.interp(other, _NEAR, away))

    return one_side(from_least, from_most), one_side(from_most, from_least)


@lru_cache(maxsize=8)
def _near_bound(confidence: float) -> tuple[Floats, Floats]:
    """Reaches towards a bound and away from it, over `_NEAR`; at the bound nothing beyond it is ever rejected."""
    ratio = boundary_ratio(_NEAR, confidence)
    one = np.ones_like(_NEAR)
    away = reach(0 * one, one, ratio, one, confidence=confidence)
    return ratio * away, away


def reach(
    bias: Floats,
    deviation: Floats,
    below: Floats,
    above: Floats,
    distribution: Callable[[Floats], Floats] = ndtr,
    step: float = 0.0,
    confidence: float = CONFIDENCE,
    shifts: Sequence[Floats | float] = (0.0,),
) -> Floats:
    """The least c with Pr[−below·c ≤ bias + deviation·Z ≤ above·c] ≥ confidence, wherever `shifts` put the bias.

    `distribution` is Pr[Z ≤ z], elementwise; on a grid, `step` is its spacing. With `below` = `above` = 1 and a normal
    Z it is deviation·cv(|bias|/deviation).
    """
    scale = np.maximum(deviation, 1e-300)
    places = [bias + shift for shift in shifts]
    least, most = np.zeros(scale.shape), np.max(np.abs(places), axis=0) + _FAR * deviation
    for _ in range(_HALVINGS):
        c = (least + most) / 2
        sides = ((above * c - at, -below * c - at) for at in places)
        holds = np.min([distribution(up / scale) - distribution(down / scale - step) for up, down in sides], axis=0)
        least, most = np.where(holds >= confidence, least, c), np.where(holds >= confidence, c, most)
    return np.asarray(most)
