"""The light distributions give the numbers of SciPy's own, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pldp.estimate.distributions import chi2, norm, t

POINTS = np.linspace(-40, 40, 2001)
SHARES = np.r_[1e-300, 1e-12, np.linspace(0, 1, 501)[1:-1], 1 - 1e-12]


@pytest.mark.parametrize("name", ["cdf", "sf"])
def test_normal_tails(name: str) -> None:
    np.testing.assert_array_equal(getattr(norm, name)(POINTS), getattr(stats.norm, name)(POINTS))


@pytest.mark.parametrize("name", ["ppf", "isf"])
def test_normal_quantiles(name: str) -> None:
    np.testing.assert_array_equal(getattr(norm, name)(SHARES), getattr(stats.norm, name)(SHARES))


@pytest.mark.parametrize("freedom", [0, 1, 2, 5, 100, 10**6])
def test_chi2_tails(freedom: int) -> None:
    """A statistic that rounding made negative included; without a degree of freedom there is no answer."""
    np.testing.assert_array_equal(chi2.sf(5 * POINTS, freedom), stats.chi2.sf(5 * POINTS, freedom))
    assert float(chi2.sf(np.nan, max(freedom, 1))) != float(chi2.sf(0.0, max(freedom, 1)))


@pytest.mark.parametrize("freedom", [1, 2, 5, 100, 10**6])
def test_students_quantiles(freedom: int) -> None:
    np.testing.assert_array_equal(t.ppf(SHARES, freedom), stats.t.ppf(SHARES, freedom))


def test_these_tests_can_fail() -> None:
    """Another degree of freedom is another distribution."""
    assert not np.array_equal(chi2.sf(POINTS, 2), stats.chi2.sf(POINTS, 3))
    assert not np.array_equal(t.ppf(SHARES, 2), stats.t.ppf(SHARES, 3))
