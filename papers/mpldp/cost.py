"""mpldp Section V-B measured: how the time of OP grows with values, levels and iterations."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial

import numpy as np

from pldp.channels.protocol import Floats
from pldp.estimate.op import descend
from pldp.papers.model import Point

GRIDS = {
    "values": tuple(int(2**power) for power in np.arange(14, 18.1, 0.5)),
    "levels": (96, 128, 192, 256, 384, 512),
    "iterations": (10, 15, 20, 30, 40, 60, 80),
}
"""Large enough that arithmetic, not the call of a function, takes the time."""
_WHOLE = tuple(int(2**power) for power in np.arange(10.5, 12.3, 0.25))
_VALUES = {"levels": 5_000, "iterations": 40_000}
_LEVELS, _STEPS, _WHOLE_STEPS = 3, 10, 2


def whole_projector_method(estimates: Floats, reference: Floats, steps: int) -> Floats:
    """Algorithm 3 as its cost is counted in V-B: every step makes all of L = H̃ᵀ(H̃H̃ᵀ)⁻¹H̃, k rows of k."""
    fitted = reference
    for _ in range(steps):
        projector = estimates.T @ np.linalg.solve(estimates @ estimates.T, estimates)
        fitted = projector @ reference
    return fitted


def cost_points(over: str, repeats: int, seed: int) -> list[Point]:
    """Exponents b of time ∝ sizeᵇ: least squares on logarithms, each time the least of three; mean over `repeats`.

    The error is what the lines leave over, or the spread between repetitions where that is more.
    """
    rng = np.random.default_rng(seed)
    timed = {"OP": [_steps(over, size, rng) for size in GRIDS[over]]}
    sizes = {"OP": GRIDS[over]}
    if over == "values":
        sizes["OP, all of L"] = _WHOLE
        timed["OP, all of L"] = [_whole(size, rng) for size in _WHOLE]
    points = []
    for name, grid in sizes.items():
        lines = [
            exponent(np.array(grid, dtype=np.float64), np.array([_seconds(work) for work in timed[name]]))
            for _ in range(repeats)
        ]
        slopes, errors = np.array(lines).T
        spread = float(slopes.std(ddof=1)) if repeats > 1 else 0.0
        points.append(
            Point(
                place="Section V-B",
                series=name,
                x=over,
                value=float(slopes.mean()),
                standard_error=max(spread, float(errors.mean())) / math.sqrt(repeats),
                repeats=repeats,
            )
        )
    return points


def exponent(sizes: Floats, seconds: Floats) -> tuple[float, float]:
    """Slope on logarithms and its standard error, from what the line leaves over."""
    x, y = np.log(sizes), np.log(seconds)
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    left = y - y.mean() - slope * centred
    return slope, float(np.sqrt(left @ left / (x.size - 2) / (centred @ centred)))


def _steps(over: str, size: int, rng: np.random.Generator) -> Callable[[], Floats]:
    """Steps on orthonormal levels, so that making them orthonormal is no part of what is timed."""
    k = size if over == "values" else _VALUES[over]
    levels = size if over == "levels" else _LEVELS
    reference = rng.dirichlet(np.ones(k))
    projector, _ = np.linalg.qr(rng.normal(size=(k, levels)))
    rows = np.ascontiguousarray(projector.T)
    return partial(descend, rows, reference, np.zeros(k), size if over == "iterations" else _STEPS)


def _whole(k: int, rng: np.random.Generator) -> Callable[[], Floats]:
    reference = rng.dirichlet(np.ones(k))
    return partial(
        whole_projector_method, reference + rng.normal(scale=1 / k, size=(_LEVELS, k)), reference, _WHOLE_STEPS
    )


def _seconds(work: Callable[[], Floats]) -> float:
    """Of the processor's own time, which other programs do not lengthen."""
    best = np.inf
    for _ in range(3):
        started = time.process_time()
        work()
        best = min(best, time.process_time() - started)
    return float(best)
