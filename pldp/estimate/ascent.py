"""EM steps, accelerated and guarded: the likelihood never falls."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pldp.channels.protocol import Floats

Step = Callable[[Floats], tuple[float, float, Floats]]
"""A pass over the data: log-likelihood at a point, bound on what is left to gain, and the EM step from there."""

_SHRINK = 0.1
_SMALLEST = 1e-100
_GROWTH = 4.0


@dataclass(frozen=True)
class Path:
    point: Floats
    gap: float
    passes: int
    trace: tuple[float, ...]
    """Log-likelihood of every point that was kept."""


def climb(step: Step, start: Floats, sizes: tuple[int, ...], tolerance: float, steps: int) -> Path:
    """Repeat EM steps from a strictly positive start until the gap is within tolerance or the passes are used up.

    Plain EM needs thousands of passes where reports say little (small ε). SQUAREM (Varadhan and Roland 2008, scheme S3)
    takes two steps r, r + v and extrapolates to x + 2ar + a²v, a = |r|/|v|. A cell that this would empty keeps a tenth
    of what EM gave it, since zeros absorb; and where the likelihood would be below EM's, EM's point is kept and the
    next stride is shorter. `sizes` are the groups of parameters that sum to one each.
    """
    if float(start.min()) <= 0:
        raise ValueError("EM must start from strictly positive shares: a zero would stay zero")
    trace: list[float] = []
    point, stride, passes = start, _GROWTH, 0
    while True:
        value, gap, first = step(point)
        passes += 1
        trace.append(value)
        if gap <= tolerance or passes >= steps:
            return Path(point, gap, passes, tuple(trace))
        better, _, second = step(first)
        r, v = first - point, second - 2 * first + point
        bend = float(np.linalg.norm(v))
        reach = float(np.linalg.norm(r)) / bend if bend > 0 else stride
        a = max(1.0, min(stride, reach))
        leap = _shares(np.maximum(point + 2 * a * r + a * a * v, _SHRINK * second), sizes)
        there, _, onward = step(leap)
        passes += 2
        trace.append(better)
        if there >= better:
            trace.append(there)
            point = _shares(onward, sizes)
            stride = _GROWTH * stride if a == stride else stride
        else:
            point = _shares(second, sizes)
            stride = max(1.0, a / 2)


def _shares(raw: Floats, sizes: tuple[int, ...]) -> Floats:
    positive = np.maximum(raw, _SMALLEST)
    parts = np.split(positive, np.cumsum(sizes)[:-1])
    return np.concatenate([part / part.sum() for part in parts])
