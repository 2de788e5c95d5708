"""Linear estimates of an attribute with public levels, by any method, with the interval that goes with them.

The spec declares how far choices may depend on values: Γ ≥ 1, or None for `unknown`, where nothing is excluded. Every
method's interval covers what is declared; `guarded` is the method that makes it short.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pldp.channels.protocol import Floats
from pldp.estimate.combine import Combined, Levels, combine_linear, first_pass, weighted
from pldp.estimate.ends import invert_table
from pldp.estimate.guarded import worst_bias
from pldp.estimate.invert import ANYTHING, Cover, hypothesis_table

GUARDED = "guarded"
INVERTED = "inverted test"
EXTENDED = "inverted test, extended"
"""The same, so far that it holds an estimate by another method."""


@dataclass(frozen=True)
class Answer:
    """Arrays are (…, value). `combined.standard_error` is that of chance alone, `bias` the most that choices as far
    from independent as declared can add."""

    combined: Combined
    bias: Floats
    low: Floats
    high: Floats


def gamma_of(dependence: float | None) -> float:
    """The largest ratio by which choices may depend on values; a dependence that is not known allows any."""
    return ANYTHING if dependence is None else dependence


def combine_levels(method: str, levels: Levels, cover: Cover) -> Combined:
    """By `sum`, `oc`, `oc+` or `guarded`.

    Weights of `guarded` need a share before there is an estimate; a first pass gives it, as for `oc+`, and they are
    those of that share's own test. At Γ = 1 they are those of `oc+`.
    """
    if method != GUARDED:
        return combine_linear(method, levels, cover.cap)
    if cover.gamma == 1:
        return combine_linear("oc+", levels, cover.cap)
    return weighted(levels, hypothesis_table(GUARDED, levels.n, levels.protocols, cover).weights_at(first_pass(levels)))


def answer(method: str, levels: Levels, cover: Cover, estimate: Floats | None = None) -> Answer:
    """Estimate, error, bound on the bias and interval of every value; the interval holds `estimate`, where another
    method gave one, else the combined one."""
    combined = combine_levels(method, levels, cover)
    table = hypothesis_table(method, levels.n, levels.protocols, cover)
    inside = combined.frequency if estimate is None else estimate
    interval = invert_table(table, levels.frequencies, inside)
    edge = 1 / max(levels.n_reports, 2)
    share = np.clip(combined.frequency, edge, 1 - edge)
    bias = worst_bias(combined.weights, levels.n / levels.n_reports, share, cover.gamma)
    return Answer(combined, bias, interval.low, interval.high)
