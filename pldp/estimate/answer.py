"""The answer of an attribute with public levels: the guarded estimate, its error and its interval.

`dependence` is what the spec declares: Γ ≥ 1, or None for `unknown`, where nothing is assumed and the answer is `sum`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pldp.channels.protocol import Floats
from pldp.estimate.combine import Levels, linear_weights, noise_variances
from pldp.estimate.critical import CONFIDENCE
from pldp.estimate.guarded import Noise, guarded_weights, tilted_moments, worst_bias
from pldp.estimate.invert import Table, hypothesis_table, invert_table

ANYTHING = 1e12
"""The Γ of `unknown`: no tilt of the levels is excluded."""


@dataclass(frozen=True)
class Answer:
    """Arrays are (…, value); `standard_error` is that of chance alone, `bias` the most that dependence can add."""

    frequency: Floats
    standard_error: Floats
    bias: Floats
    low: Floats
    high: Floats
    weights: Floats


def guarded_table(levels: Levels, dependence: float | None, confidence: float = CONFIDENCE) -> Table:
    """The tests that `guarded_answer` inverts; one table serves every cell and repetition of these level sizes."""
    method, gamma = ("sum", ANYTHING) if dependence is None else ("guarded", dependence)
    return hypothesis_table(method, levels.n, levels.protocols, gamma=gamma, confidence=confidence)


def guarded_answer(
    levels: Levels, dependence: float | None, confidence: float = CONFIDENCE, table: Table | None = None
) -> Answer:
    """Estimate, error, bound on the bias and interval of every value, from the levels' estimates.

    Weights need a share before there is an estimate; a first pass with `oc` at uniform shares gives it, as for `oc+`
    (docs/methods.md section 7). The interval needs no first pass: its weights are those of each hypothesis.
    """
    n = levels.n_reports
    edge = 1 / max(n, 2)
    noise, shares = Noise.of(levels.protocols), levels.n / n
    size = levels.frequencies.shape[-1]
    if dependence is None:
        weights = np.broadcast_to(shares[:, None], levels.frequencies.shape)
    else:
        uniform = np.full(size, 1 / size)
        first = linear_weights("oc", levels.n, noise_variances(levels.protocols, uniform), uniform)
        pilot = np.clip((first * levels.frequencies).sum(axis=-2), edge, 1 - edge)
        weights = guarded_weights(levels.n, noise, pilot, dependence, confidence)
    frequency = (weights * levels.frequencies).sum(axis=-2)
    inside = np.clip(frequency, edge, 1 - edge)
    _, variance = tilted_moments(weights, levels.n, noise, inside)
    tests = guarded_table(levels, dependence, confidence) if table is None else table
    interval = invert_table(tests, levels.frequencies, frequency)
    return Answer(
        frequency=frequency,
        standard_error=np.sqrt(variance),
        bias=worst_bias(weights, shares, inside, ANYTHING if dependence is None else dependence),
        low=interval.low,
        high=interval.high,
        weights=weights,
    )
