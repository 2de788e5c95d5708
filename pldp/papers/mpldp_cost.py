"""mpldp Section V-B measured: how the time of OP grows with values, levels and iterations."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from pldp.mechanisms.protocol import Floats
from pldp.op import perturbation_method
from pldp.papers.model import Point

GRIDS = {
    "values": tuple(int(2**power) for power in np.arange(14, 18.1, 0.5)),
    "levels": (96, 128, 192, 256, 384),
    "iterations": (10, 15, 20, 30, 40, 60, 80),
}
"""Large enough that arithmetic, not the call of a function, takes the time."""
_WHOLE = tuple(int(2**power) for power in np.arange(9, 12.1, 0.5))
_VALUES = {"levels": 3_000, "iterations": 40_000}
_LEVELS, _STEPS = 3, {"values": 10, "levels": 150}


def whole_projector_method(estimates: Floats, reference: Floats, steps: int) -> Floats:
    """Algorithm 3 as its cost is counted in V-B: every step makes all of L = H̃ᵀ(H̃H̃ᵀ)⁻¹H̃, k rows of k."""
    fitted = reference
    for _ in range(steps):
        projector = estimates.T @ np.linalg.solve(estimates @ estimates.T, estimates)
        fitted = projector @ reference
    return fitted


def cost_points(over: str, repeats: int, seed: int) -> list[Point]:
    """Exponents b of time ∝ sizeᵇ: least squares on logarithms, each time the least of `repeats`."""
    methods: dict[str, Callable[[Floats, Floats, int], Floats]] = {"OP": perturbation_method}
    if over == "values":
        methods["OP, all of L"] = whole_projector_method
    found = []
    for name, method in methods.items():
        rng = np.random.default_rng(seed)
        grid = GRIDS[over] if method is perturbation_method else _WHOLE
        seconds = [_seconds(method, over, size, repeats, rng) for size in grid]
        slope, error = exponent(np.array(grid, dtype=np.float64), np.array(seconds))
        found.append(
            Point(place="Section V-B", series=name, x=over, value=slope, standard_error=error, repeats=repeats)
        )
    return found


def exponent(sizes: Floats, seconds: Floats) -> tuple[float, float]:
    """Slope on logarithms and its standard error, from what the line leaves over."""
    x, y = np.log(sizes), np.log(seconds)
    centred = x - x.mean()
    slope = float(centred @ y / (centred @ centred))
    left = y - y.mean() - slope * centred
    return slope, float(np.sqrt(left @ left / (x.size - 2) / (centred @ centred)))


def _seconds(
    method: Callable[[Floats, Floats, int], Floats], over: str, size: int, repeats: int, rng: np.random.Generator
) -> float:
    """Of the steps alone: what a run without any takes is no part of them."""
    k = size if over == "values" else _VALUES[over]
    levels = size if over == "levels" else _LEVELS
    steps = size if over == "iterations" else _STEPS[over] if method is perturbation_method else 2
    reference = rng.dirichlet(np.ones(k))
    estimates = reference + rng.normal(scale=1 / k, size=(levels, k))
    best = {steps: np.inf, 0: np.inf}  # of the processor's own time, which other programs do not lengthen
    for _ in range(repeats):
        for count in best:
            started = time.process_time()
            method(estimates, reference, count)
            best[count] = min(best[count], time.process_time() - started)
    return float(best[steps] - best[0])
