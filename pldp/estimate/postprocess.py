"""Named post-processing. The estimate before it is always kept: after it, an estimate is biased."""

from __future__ import annotations

import numpy as np

from pldp.channels.protocol import Floats

POSTPROCESSES = ("none", "clip", "norm-sub", "norm-mul", "base-cut")
CUT = 2.0
"""Standard errors below which `base-cut` sees nothing."""


def postprocess(name: str, frequency: Floats, standard_error: Floats | None = None) -> Floats:
    """`standard_error` is what `base-cut` measures by; the others do without."""
    match name:
        case "none":
            return frequency
        case "clip":
            return np.clip(frequency, 0, 1)
        case "norm-sub":
            return project_to_simplex(frequency)
        case "norm-mul":
            return rescale(frequency)
        case "base-cut":
            if standard_error is None:
                raise ValueError("base-cut needs the estimate's standard error")
            return base_cut(frequency, standard_error)
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


def rescale(frequency: Floats) -> Floats:
    """Set negative cells to zero, divide by the sum. Clipping adds mass, so large cells come out too small."""
    positive = np.maximum(frequency, 0)
    total = positive.sum(axis=-1, keepdims=True)
    size = frequency.shape[-1]
    # Without a positive cell nothing tells the values apart.
    return np.divide(positive, total, out=np.full(frequency.shape, 1 / size), where=total > 0)


def base_cut(frequency: Floats, standard_error: Floats, cut: float = CUT) -> Floats:
    """Set cells below `cut` standard errors to zero and leave the others alone: what stays is not noise alone.

    Small true values are lost with the noise, and the rest need not sum to one.
    """
    return np.where(frequency < cut * standard_error, 0.0, frequency)
