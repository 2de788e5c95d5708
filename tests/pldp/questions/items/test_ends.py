"""Intervals of items by themselves hold the truth, also of items that hardly anybody has: by exact laws."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from pldp.questions.items.ends import single_ends
from pldp.questions.items.rowchannels import Bits, OneValue
from pldp.questions.items.values import ValueChannel


def _values(size: int, epsilon: str) -> OneValue:
    made = ValueChannel.krr(size, Fraction(epsilon))
    return OneValue(redraw=made.redraw, mass=made.mass)


def _bits(size: int, epsilon: str) -> Bits:
    keep = int(2**64 / (1 + np.exp(-float(Fraction(epsilon)) / 2)))
    return Bits(keep_zero=(keep,) * size, keep_one=(keep,) * size)


@pytest.mark.parametrize("epsilon", ["1", "3", "5", "7", "9", "14"])
@pytest.mark.parametrize(("size", "users"), [(5, 350), (60, 350), (60, 5000)])
@pytest.mark.parametrize("kind", ["values", "bits"])
@pytest.mark.parametrize("held", [0, 1, 3, 10, 100])
def test_rare_items_are_held_as_often_as_intervals_say(
    kind: str, size: int, users: int, epsilon: str, held: int
) -> None:
    """About the estimate, without half a report: 0.85 of three people among 350 (60 values, ε = 8)."""
    channel = _values(size, epsilon) if kind == "values" else _bits(size, epsilon)
    if isinstance(channel, OneValue):
        q, p = channel.kernel.matrix[1, 0], channel.kernel.matrix[0, 0]
    else:
        q = channel.kernel.false_one[0]
        p = q + channel.kernel.gap[0]
    counts = np.arange(users + 1)
    law = np.convolve(binom.pmf(counts, held, p), binom.pmf(counts, users - held, q))[: users + 1]
    support = (counts / users - q) / (p - q)
    others = np.full((counts.size, size), (1 - held / users) / (size - 1))
    covered = 0.0
    for count in np.flatnonzero(law > 1e-9):
        estimates = others[count].copy()
        estimates[0] = support[count]
        low, high = single_ends(estimates, [channel], np.array([users]), np.ones((size, 1)), 0.95, False)
        covered += law[count] * (low[0] <= held / users <= high[0])
    assert covered > 0.94
