"""What ε promises of a channel, computed again from the published formulas in floating point.

The plan works with integers (`pldp/channels`); nothing here reads its thresholds. Only a channel's shape is taken from
it: how many values, the size of a subset, the number of buckets, the width of a window.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from pldp.channels.olh import OLH, PRIME
from pldp.channels.protocol import Floats, PureProtocol
from pldp.channels.subset import Subset

FLOOR = 2.0**-60
"""Probabilities closer than this are equal: thresholds are whole multiples of 2^-64."""
ROUNDING = 2.0**-48
"""What doubles may lose of a probability on the way through an estimator: sixteen of their last digits."""


@dataclass(frozen=True)
class SupportLaw:
    """Chances that a report supports the own value, another, the own and another, two others."""

    p: float
    q: float
    gap: float
    """p − q by a formula of its own: at a tiny ε the difference of two doubles has no digits left."""
    own_pair: float
    other_pair: float

    def sum_of(self, held: int) -> tuple[float, float]:
        """Mean and variance of how many of `held` given values a report supports, the reported one among them."""
        mean = self.p + (held - 1) * self.q
        pairs = 2 * (held - 1) * self.own_pair + (held - 1) * (held - 2) * self.other_pair
        return mean, mean + pairs - mean**2


def _krr(protocol: PureProtocol, epsilon: float) -> SupportLaw:
    q = 1 / (math.exp(epsilon) + protocol.domain_size - 1)
    return SupportLaw(math.exp(epsilon) * q, q, math.expm1(epsilon) * q, 0.0, 0.0)


def _brr(_: PureProtocol, epsilon: float) -> SupportLaw:
    q = 1 / (math.exp(epsilon / 2) + 1)
    return SupportLaw(1 - q, q, math.tanh(epsilon / 4), (1 - q) * q, q * q)


def _oue(_: PureProtocol, epsilon: float) -> SupportLaw:
    q = 1 / (math.exp(epsilon) + 1)
    return SupportLaw(0.5, q, math.tanh(epsilon / 2) / 2, q / 2, q * q)


def _subset(protocol: Subset, epsilon: float) -> SupportLaw:
    k, w = protocol.domain_size, protocol.size
    if k == 1:
        return SupportLaw(1.0, 1.0, 0.0, 1.0, 1.0)
    missed = (k - w) / (w * math.exp(epsilon) + k - w)
    p = 1 - missed
    held_pair = p * (w - 1) / (k - 1)
    others = (p * (w - 1) * (w - 2) + missed * w * (w - 1)) / max((k - 1) * (k - 2), 1)
    gap = missed * w * math.expm1(epsilon) / (k - 1)
    return SupportLaw(p, (w - 1 + missed) / (k - 1), gap, held_pair, others)


def _olh(protocol: OLH, epsilon: float) -> SupportLaw:
    g = protocol.buckets
    size, larger = divmod(PRIME, g)  # so many buckets have one number of the field more
    two, three = ((larger * (size + 1) ** n + (g - larger) * size**n) / PRIME**n for n in (2, 3))
    other = 1 / (math.exp(epsilon) + g - 1)  # a bucket that is not the own value's
    kept = math.expm1(epsilon) * other
    p = math.exp(epsilon) * other
    return SupportLaw(p, kept * two + other, kept * (1 - two), p * two, kept * three + other * two)


LAWS: dict[str, Callable[[Any, float], SupportLaw]] = {
    "krr": _krr,
    "brr": _brr,
    "oue": _oue,
    "subset": _subset,
    "olh": _olh,
}


def support_law(protocol: PureProtocol, epsilon: float) -> SupportLaw:
    """Of a protocol of this shape at this ε: k-RR of Kairouz et al. 2016, BRR of mpldp Theorem 1, OUE and hashing of
    Wang et al. 2017, subsets of Ye and Barg 2018."""
    return LAWS[protocol.name](protocol, min(epsilon, 700.0))


def off(realised: Floats, again: Floats, floor: float | Floats = FLOOR) -> float:
    """How far probabilities are from those computed again: the largest relative difference, chances and their
    complements; what lies below a threshold's step counts as equal."""
    pairs = [(realised, again), (1 - realised, 1 - again)]
    apart = [np.maximum(np.abs(a - b) - floor, 0) / np.maximum(np.abs(b), floor) for a, b in pairs]
    # 1 − p of a double near one knows its 53 bits only.
    least = np.maximum(floor, 2.0**-52)
    apart[1] = np.maximum(np.abs((1 - realised) - (1 - again)) - least, 0) / np.maximum(np.abs(1 - again), floor)
    return float(np.max(apart))
