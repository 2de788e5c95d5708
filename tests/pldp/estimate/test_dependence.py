from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts
from pldp.estimate.combine import Levels, estimate_levels
from pldp.estimate.dependence import contradiction
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from tests.pldp.estimate.people import five_levels
from tests.pldp.world import zipf

REPEATS = 1000


def _moved(dealt: Counts, people: int) -> Counts:
    """So many holders of value 0 trade places, at the first level, with holders of value 1 at the last."""
    moved = dealt.copy()
    swapped = np.minimum(people, np.minimum(dealt[:, 0, 0], dealt[:, -1, 1]))
    for level, value, sign in ((0, 0, -1), (-1, 0, 1), (-1, 1, -1), (0, 1, 1)):
        moved[:, level, value] += sign * swapped
    return moved


def _levels(size: int, n: int, epsilon: int, people: int, rng: np.random.Generator) -> Levels:
    sizes, protocols = five_levels(size, epsilon, n)
    dealt = draw_levels(whole_counts(zipf(size), n), sizes, REPEATS, rng)
    return estimate_levels(draw_support(_moved(dealt, people), protocols, rng), sizes, protocols)


@pytest.mark.parametrize("size", [3, 33])
@pytest.mark.parametrize("n", [200, 2000, 20_000])
@pytest.mark.parametrize("epsilon", [2, 6, 20])
def test_false_alarms_stay_below_what_is_stated(size: int, n: int, epsilon: int, seed: int) -> None:
    # 5 % of 1,000: a bound of 5 % + 4.75 standard errors of 0.69 % has α = 1e-6.
    levels = _levels(size, n, epsilon, 0, np.random.default_rng(seed))
    for gamma in (1.0, 1.3):
        assert np.mean(contradiction(levels, gamma) < 0.05) < 0.05 + 4.75 * np.sqrt(0.05 * 0.95 / REPEATS)


def test_what_contradicts_gamma_is_seen(seed: int) -> None:
    # 20 of the last level's 200 people are exchanged: value 0 is 1.4 times as frequent there. Γ = 2 allows it.
    levels = _levels(33, 20_000, 20, 20, np.random.default_rng(seed))
    found = contradiction(levels, 1.0)
    assert np.mean(found < 0.05) > 0.3
    assert np.mean(contradiction(levels, 2.0) < 0.05) < 0.05
    many = contradiction(_levels(33, 20_000, 20, 60, np.random.default_rng(seed)), 1.0)
    assert np.mean(many < 0.05) > 0.99


def test_one_level_contradicts_nothing() -> None:
    protocol = KRR.for_budget(3, Fraction(1))
    levels = estimate_levels(np.array([[50, 30, 40]]), np.array([100]), (protocol,))
    assert contradiction(levels, 1.0) == 1
