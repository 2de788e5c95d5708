from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2, hypergeom

from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from tests.pldp.world import ALPHA, attribute_plan, z_bound


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40).filter(lambda f: sum(f) > 1e-3), st.integers(0, 10**9))
def test_whole_counts_sum_to_n_and_stay_within_one(frequency: list[float], n_users: int) -> None:
    counts = whole_counts(np.asarray(frequency), n_users)
    assert counts.sum() == n_users
    exact = np.asarray(frequency) / sum(frequency) * n_users
    assert np.abs(counts - exact).max() < 1 + 1e-6


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=8),
    st.lists(st.floats(0, 1), min_size=1, max_size=5).filter(lambda f: sum(f) > 0.01),
    st.integers(0, 2**32),
)
def test_everybody_is_dealt_once(counts: list[int], mix: list[float], key: int) -> None:
    true = np.asarray(counts)
    sizes = whole_counts(np.asarray(mix), int(true.sum()))
    dealt = draw_levels(true, sizes, 3, np.random.default_rng(key))
    assert dealt.min() >= 0
    assert np.array_equal(dealt.sum(axis=1), np.broadcast_to(true, (3, true.size)))
    assert np.array_equal(dealt.sum(axis=2), np.broadcast_to(sizes, (3, sizes.size)))


def test_dealing_is_hypergeometric_in_every_cell(seed: int) -> None:
    # Each cell against its exact law, cells expected less than 20 times pooled; α = 1e-6 over 9 cells.
    counts, sizes, repeats = np.array([6, 3, 1]), np.array([5, 3, 2]), 20_000
    dealt = draw_levels(counts, sizes, repeats, np.random.default_rng(seed))
    for level, size in enumerate(sizes):
        for value, count in enumerate(counts):
            law = hypergeom.pmf(np.arange(size + 1), 10, count, size) * repeats
            seen = np.bincount(dealt[:, level, value], minlength=size + 1)
            common = law >= 20
            assert seen[law == 0].sum() == 0
            distance = (np.square(seen - law)[common] / law[common]).sum()
            assert distance < chi2.isf(ALPHA / 9, max(int(common.sum()) - 1, 1) + 1)


def test_dealing_has_the_covariance_the_errors_rest_on(seed: int) -> None:
    # Var of a level's share: S² (1/n_τ − 1/n), S² = f(1−f) n/(n−1), for the first and the last level and value.
    counts, sizes, repeats = np.array([50, 300, 650]), np.array([100, 300, 600]), 20_000
    dealt = draw_levels(counts, sizes, repeats, np.random.default_rng(seed))
    frequency = counts / 1000
    expected = (frequency * (1 - frequency) * 1000 / 999)[None, :] * (1 / sizes - 1 / 1000)[:, None]
    ratio = (dealt / sizes[:, None]).var(axis=0) / expected
    # A variance of R nearly normal draws has relative error √(2/R); α = 1e-6 over 9.
    assert np.abs(ratio - 1).max() < z_bound(9) * np.sqrt(2 / repeats) * 1.1


def test_support_has_its_mean_and_variance_in_every_cell(seed: int) -> None:
    attribute = attribute_plan(4, Fraction(3))
    level_counts = np.array([[50, 20, 10, 0], [5, 70, 5, 20], [0, 0, 0, 90]])
    repeats = 20_000
    rng = np.random.default_rng(seed)
    support = draw_support(np.broadcast_to(level_counts, (repeats, 3, 4)), attribute.protocols, rng)
    sizes = level_counts.sum(axis=1)
    for level, protocol in enumerate(attribute.protocols):
        mean = level_counts[level] * protocol.p + (sizes[level] - level_counts[level]) * protocol.q
        variance = sizes[level] * protocol.p * protocol.q
        z = (support[:, level].mean(axis=0) - mean) / np.sqrt(variance / repeats)
        assert np.abs(z).max() < z_bound(12)
        assert support[:, level].var(axis=0) == pytest.approx(
            np.full(4, variance), rel=z_bound(12) * np.sqrt(2 / repeats) * 1.1
        )
    wrong = attribute_plan(4, Fraction("3.3"))
    off = draw_support(np.broadcast_to(level_counts, (repeats, 3, 4)), wrong.protocols, rng)[:, 2, 0].mean()
    expected = 90 * attribute.protocols[2].q
    assert abs(off - expected) / np.sqrt(90 * attribute.protocols[2].p * attribute.protocols[2].q / repeats) > z_bound(
        12
    )
