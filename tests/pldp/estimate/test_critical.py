from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr
from scipy.stats import norm

from pldp.estimate.critical import accepted_reach, biased_quantile, boundary_ratio, reach, two_sided


@given(st.floats(0, 40), st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_the_biased_quantile_solves_its_equation(t: float, confidence: float) -> None:
    c = float(biased_quantile(t, confidence))
    assert norm.cdf(c - t) - norm.cdf(-c - t) == pytest.approx(confidence, abs=1e-12)


def test_its_ends_are_the_two_sided_and_the_one_sided_z() -> None:
    assert biased_quantile(0.0) == pytest.approx(1.959963985, abs=1e-9)
    assert float(biased_quantile(30.0)) - 30 == pytest.approx(norm.ppf(0.95), abs=1e-9)
    assert np.all(np.diff(biased_quantile(np.linspace(0, 10, 1001))) > 0)


@given(st.floats(0, 20), st.floats(0.01, 100))
def test_a_symmetric_reach_is_the_biased_quantile(bias: float, deviation: float) -> None:
    one = np.ones(1)
    found = reach(bias * deviation * one, deviation * one, one, one)
    assert found == pytest.approx(deviation * biased_quantile(bias), rel=1e-9)


@given(st.floats(0, 5))
def test_both_ends_of_an_acceptance_have_one_likelihood_ratio(x: float) -> None:
    # Feldman and Cousins 1998, Eq. 4.3: R(t) = e^{−(t−x)²/2} for t ≥ 0, e^{tx − x²/2} below the bound.
    ratio = boundary_ratio(np.array([x]))
    above = float(reach(np.zeros(1), np.ones(1), ratio, np.ones(1))[0])
    low, high = x - float(ratio[0]) * above, x + above
    assert norm.cdf(above) - norm.cdf(low - x) == pytest.approx(0.95, abs=1e-9)
    if x > 1e-3:
        log_low = low * x - x * x / 2 if low < 0 else -((low - x) ** 2) / 2
        assert log_low == pytest.approx(-((high - x) ** 2) / 2, rel=1e-6, abs=1e-9)


def test_at_the_bound_the_test_is_one_sided_and_far_from_it_two_sided() -> None:
    far, near = boundary_ratio(np.array([two_sided(), 0.0]))
    assert far == 1
    assert near == 1e6
    one = np.ones(1)
    assert reach(0 * one, one, near * one, one) == pytest.approx(norm.ppf(0.95), abs=1e-6)


def test_an_estimate_on_the_bound_has_the_usual_upper_limit_and_one_beyond_it_has_one_too() -> None:
    # Where the acceptance begins at the bound, x − a = 0, it is symmetric: so an estimate of 0 reaches up to 1.96.
    x = np.linspace(1e-3, 6, 6000)
    below = boundary_ratio(x) * reach(0 * x, np.ones_like(x), boundary_ratio(x), np.ones_like(x))
    assert float(x[x - below <= 0].max()) == pytest.approx(1.96, abs=0.002)
    # A Wald or score interval would be empty below −1.96.
    assert 0.2 < float(x[x - below <= -3].max()) < 1


def test_near_a_bound_the_reach_is_one_sided_and_far_from_both_it_is_the_usual_one() -> None:
    far = np.array([10.0])
    below, above = accepted_reach(np.array([0.0, 1.0, 2.5]), np.repeat(far, 3))
    assert above[0] == pytest.approx(1.6449, abs=1e-3)
    assert below[0] > 1e3
    assert (below[2], above[2]) == pytest.approx((1.95996, 1.95996), abs=1e-4)
    # Every one of them accepts 95 %; Feldman and Cousins order by likelihood, so at x = 1 the lower end is longer.
    assert ndtr(above) - ndtr(-below) == pytest.approx(0.95, abs=1e-4)
    assert below[1] > 1.96 > above[1]
    # The other bound mirrors it; between two near ones nothing is rejected that either accepts.
    mirrored = accepted_reach(np.repeat(far, 3), np.array([0.0, 1.0, 2.5]))
    assert np.array_equal(mirrored, (above, below))
    both = accepted_reach(np.array([1.0]), np.array([1.0]))
    assert np.array_equal(both, (below[1:2], below[1:2]))
