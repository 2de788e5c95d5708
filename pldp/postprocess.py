"""Named post-processing. The estimate before it is always kept: after it, an estimate is biased."""

from __future__ import annotations

import numpy as np

from pldp.protocol import Floats

POSTPROCESSES = ("none", "clip", "norm-sub")


def postprocess(name: str, frequency: Floats) -> Floats:
    match name:
        case "none":
            return frequency
        case "clip":
            return np.clip(frequency, 0, 1)
        case "norm-sub":
            return project_to_simplex(frequency)
        case _:
            raise ValueError(f"{name!r} is not one of {', '.join(POSTPROCESSES)}")


def project_to_simplex(frequency: Floats) -> Floats:
    """The nearest histogram: subtract one number from all cells, set negative ones to zero, sum to one.

    The simplex is convex and holds the truth, so the summed squared error never rises.
    """
    falling = -np.sort(-frequency, axis=-1)
    ranks = np.arange(1, frequency.shape[-1] + 1)
    excess = (np.cumsum(falling, axis=-1) - 1) / ranks
    last = (falling > excess).sum(axis=-1, keepdims=True) - 1
    return np.clip(frequency - np.take_along_axis(excess, last, axis=-1), 0, None)
