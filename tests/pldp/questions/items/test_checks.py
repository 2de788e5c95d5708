"""Bounds that gates use: never below the true tail, and small where something is wrong."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from pldp.estimate.combine import spread
from pldp.questions.items.checks import agreement, bernstein


@given(st.integers(5, 400), st.floats(0.02, 0.98), st.floats(0.01, 0.5))
def test_bernstein_is_above_the_exact_tail_of_a_binomial(n: int, p: float, distance: float) -> None:
    mean = n * p
    exact = binom.sf(np.ceil(mean + n * distance) - 1, n, p) + binom.cdf(np.floor(mean - n * distance), n, p)
    bound = bernstein(np.array([distance]), np.array([p * (1 - p) / n]), np.array([max(p, 1 - p) / n]))
    assert exact <= bound[0] + 1e-12


def test_levels_that_differ_are_told_apart(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = np.array([4000, 6000])
    q, gap = 0.3, 0.4
    noise, largest = np.full((3, 2), 0.25 / gap**2), np.full((3, 2), 1 / gap)

    def seen(shares: list[list[float]]) -> np.ndarray:
        chance = q + gap * np.array(shares)
        return (rng.binomial(n, chance) / n - q) / gap

    assert agreement(seen([[0.3, 0.3], [0.1, 0.1], [0.5, 0.5]]), noise, largest, n) > 1e-5
    assert agreement(seen([[0.3, 0.6], [0.1, 0.1], [0.5, 0.5]]), noise, largest, n) < 1e-9
    assert agreement(np.array([[0.2]]), noise[:1, :1], largest[:1, :1], n[:1]) == 1.0, "one level agrees with itself"


def test_the_spread_between_users_is_a_half_at_most() -> None:
    assert spread(np.array([-0.2, 0.5, 1.3]), 100).tolist() == [0.0, 0.25 * 100 / 99, 0.0]
