"""Named post-processing. The estimate before it is always kept: after it, an estimate is biased."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Floats

CHOICES = ("norm-sub", "norm-mul")
"""What `auto` chooses among; of equal risk estimates the first. `none` is never closer in sum than `norm-sub`."""
CUT = 2.0
"""Standard errors below which `base-cut` sees nothing."""


@dataclass(frozen=True)
class Postprocess:
    """One way to treat estimates afterwards: a spec's name for it, what a page says of it, and what it does."""

    name: str
    words: str
    apply: Callable[[Floats, Floats], Floats]
    """From shares and their standard errors."""
    measures: bool = False
    """Whether it goes by the standard errors, which only linear estimates have of every share."""


def postprocess(name: str, frequency: Floats, standard_error: Floats | None = None) -> Floats:
    """`standard_error` is needed by those that measure by it; the others do without."""
    if name not in POSTPROCESSES:
        raise ValueError(f"{name!r} is not one of {', '.join(POSTPROCESSES)}")
    chosen = POSTPROCESSES[name]
    if standard_error is None and chosen.measures:
        raise ValueError(f"{name} needs the estimate's standard error")
    return chosen.apply(frequency, frequency if standard_error is None else standard_error)


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


def least_risky(frequency: Floats, standard_error: Floats) -> Floats:
    """Each histogram by the one of `CHOICES` that `least_risk` says."""
    done = [postprocess(choice, frequency) for choice in CHOICES]
    return np.choose(least_risk(frequency, standard_error)[..., None], done)


POSTPROCESSES: dict[str, Postprocess] = {
    one.name: one
    for one in (
        Postprocess(
            "none", "nothing was done to them afterwards, so a share can be negative", lambda frequency, _: frequency
        ),
        Postprocess(
            "clip", "shares below 0 or above 1 were then cut off", lambda frequency, _: np.clip(frequency, 0, 1)
        ),
        Postprocess(
            "norm-sub",
            "they were then moved to the nearest shares that are not negative and sum to 1",
            lambda frequency, _: project_to_simplex(frequency),
        ),
        Postprocess(
            "norm-mul",
            "negative shares were then set to 0 and the others scaled to sum to 1",
            lambda frequency, _: rescale(frequency),
        ),
        Postprocess("base-cut", "shares below two standard errors were then set to 0", base_cut, measures=True),
        Postprocess(
            "auto", "of two ways to make them sum to 1 the less risky one was then taken", least_risky, measures=True
        ),
    )
}
"""By the name that a spec gives them."""
