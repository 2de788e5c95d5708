"""Laws of the numeric mechanisms at one value, computed again from ε: moments of what their reports tally."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from pldp.channels.exact import BITS
from pldp.channels.numeric.duchi import Duchi
from pldp.channels.numeric.hybrid import HM, SWITCH
from pldp.channels.numeric.laplace import Laplace
from pldp.channels.numeric.window import Window
from pldp.channels.protocol import Floats
from pldp.proof.laws import FLOOR, ROUNDING

_BEYOND = 34.0
"""e^-34 is the chance that noise goes further than so many lengths, far below any false alarm."""


@dataclass(frozen=True)
class Moments:
    """Of the centred integer c of one report at an output scale, 0 where the report has another scale."""

    chance: float
    """That the report has this scale."""
    mean: float
    square: float
    fourth: float
    largest: float


def numeric_law(mechanism: Any, epsilon: float, x: float) -> tuple[Moments, ...]:
    """By output scale, of a mechanism of this shape at ε, for x on its grid."""
    match mechanism:
        case Window():
            return (_window(mechanism.bits, mechanism.window, epsilon, x),)
        case Duchi():
            return (_signs(epsilon, x),)
        case HM():
            share = -math.expm1(-epsilon / 2) if epsilon > float(SWITCH) else 0.0
            parts = (_window(mechanism.bits, mechanism.window, epsilon, x), _signs(epsilon, x))
            return tuple(_part(one, chance) for one, chance in zip(parts, (share, 1 - share), strict=True))
        case Laplace():
            return (_laplace(mechanism.bits, epsilon, x),)
    raise ValueError(f"no law of {type(mechanism).__name__} is known here")


def _part(law: Moments, chance: float) -> Moments:
    return Moments(chance, chance * law.mean, chance * law.square, chance * law.fourth, law.largest)


def window_chances(bits: int, window: int, epsilon: float) -> tuple[float, float]:
    """Of a cell inside the window, e^ε times as likely as one outside; the G cells outside and w inside make one."""
    inside = 1 / (window + (1 << bits) * math.exp(-epsilon))
    return inside, math.exp(-epsilon) * inside


def window_gap(bits: int, window: int, epsilon: float) -> float:
    """How much likelier a cell inside is, without cancellation."""
    return -math.expm1(-epsilon) * window_chances(bits, window, epsilon)[0]


def steps(mechanism: Window) -> Floats:
    """What whole weights leave open of a cell's chance inside, outside, and of their difference."""
    inside = 2.0 ** (mechanism.bits - BITS)
    outside = inside * mechanism.window / mechanism.steps
    return np.array([inside, max(outside, FLOOR), inside + outside])


def blur(mechanism: Any, epsilon: float) -> float:
    """The same, and what doubles lose, as a share of what a mean is scaled by."""
    match mechanism:
        case Window():
            return float(
                (steps(mechanism)[2] + ROUNDING / mechanism.cells)
                / window_gap(mechanism.bits, mechanism.window, epsilon)
            )
        case HM():
            parts = [mechanism.duchi, *([mechanism.pm] if mechanism.mix else [])]
            return max(blur(part, epsilon) for part in parts)
        case Duchi():
            return ROUNDING / math.tanh(epsilon / 2)
    return ROUNDING


@lru_cache(maxsize=256)
def _window(bits: int, window: int, epsilon: float, x: float) -> Moments:
    grid = 1 << bits
    outside, gap = window_chances(bits, window, epsilon)[1], window_gap(bits, window, epsilon)
    cells = grid + window
    centred: Floats = 2 * np.arange(cells, dtype=np.float64) - (cells - 1)
    first = round((x + 1) / 2 * grid)

    def moment(power: int) -> float:
        raised = centred**power
        return float(outside * raised.sum() + gap * raised[first : first + window].sum())

    return Moments(1.0, moment(1), moment(2), moment(4), float(cells - 1))


def _signs(epsilon: float, x: float) -> Moments:
    """Duchi's: Pr[+] = 1/2 + x (e^ε − 1)/(2e^ε + 2)."""
    return Moments(1.0, x * math.tanh(epsilon / 2), 1.0, 1.0, 1.0)


def _laplace(bits: int, epsilon: float, x: float) -> Moments:
    """c = G x + 2Z, Z two-sided geometric with α = e^{−ε/G}."""
    steps = float(1 << bits)
    rate = epsilon / steps
    rest = -math.expm1(-rate)
    alpha = math.exp(-rate)
    two, four = 2 * alpha / rest**2, 2 * alpha * (1 + 10 * alpha + alpha**2) / rest**4
    at = steps * x
    mean_fourth = at**4 + 24 * at**2 * two + 16 * four
    return Moments(1.0, at, at**2 + 4 * two, mean_fourth, abs(at) + 2 * _BEYOND / rate)


def bucket_law(mechanism: Window, epsilon: float, x: float, bins: int) -> Floats:
    """Pr[bucket] of a report at x, where buckets are as wide as bins of the input grid."""
    shape = mechanism.bits, mechanism.window, epsilon
    outside, gap = window_chances(*shape)[1], window_gap(*shape)
    width, cells = mechanism.steps // bins, mechanism.cells
    edges = np.minimum(np.arange(0, cells + width, width), cells)
    first = round((x + 1) / 2 * mechanism.steps)
    reached = np.clip(edges - first, 0, mechanism.window)
    return np.asarray(np.diff(outside * edges + gap * reached))
