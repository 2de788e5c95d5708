"""Named post-processing. The estimate before it is always kept: after it, an estimate is biased."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Floats

POSTPROCESSES = ("none", "clip", "norm-sub", "norm-mul", "base-cut", "auto")
CHOICES = ("norm-sub", "norm-mul")
"""What `auto` chooses among; of equal risk estimates the first. `none` is never closer in sum than `norm-sub`."""
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
        case "auto":
            if standard_error is None:
                raise ValueError("auto needs the estimate's standard error")
            best = least_risk(frequency, standard_error)
            done = [postprocess(choice, frequency) for choice in CHOICES]
            return np.choose(best[..., None], done)
        case _:
            raise ValueError(f"{name!r} is not one of {', '.join(POSTPROCESSES)}")


def risk_estimates(frequency: Floats, standard_error: Floats) -> Floats:
    """Of each of `CHOICES` the estimated summed squared error, (choice, …) of histograms (…, value).

    Stein's unbiased estimate, which needs no truth: Σ (h_j − x_j)² + 2 Σ s_j² ∂h_j/∂x_j − Σ s_j² has the mean of the
    summed squared error of h(x), x normal with standard errors s. Covariances between cells, a part of 1/k of the
    variances and less, are left out.
    """
    noise = np.broadcast_to(standard_error, frequency.shape) ** 2
    kept = project_to_simplex(frequency) > 0
    positive = np.maximum(frequency, 0)
    total = positive.sum(axis=-1, keepdims=True)
    safe = np.where(total > 0, total, 1.0)
    slopes = (
        kept * (1 - 1 / np.maximum(kept.sum(axis=-1, keepdims=True), 1)),
        (positive > 0) * (1 / safe - positive / safe**2),
    )
    return np.stack(
        [
            ((postprocess(name, frequency) - frequency) ** 2 + 2 * noise * slope - noise).sum(axis=-1)
            for name, slope in zip(CHOICES, slopes, strict=True)
        ]
    )


def least_risk(frequency: Floats, standard_error: Floats) -> NDArray[np.intp]:
    """Which of `CHOICES` has the least estimated risk, one for each histogram, (…, value) → (…,)."""
    return np.argmin(risk_estimates(frequency, standard_error), axis=0)


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
