from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pldp.channels.exact import SCALE, exp_below
from pldp.channels.numeric.domain import CODES
from pldp.channels.numeric.duchi import Duchi
from pldp.channels.numeric.mechanism import report_sum
from pldp.channels.randomness import Keystream
from tests.pldp.world import BUDGETS, z_bound

GRID = (-1.0, -0.4, 0.0, 0.7, 1.0)


@given(BUDGETS, st.integers(0, CODES))
def test_ratio_mean_and_variance_are_exact(epsilon: Fraction, code: int) -> None:
    mechanism = Duchi.for_budget(epsilon)
    (scale,) = mechanism.scales
    keep, plus = Fraction(mechanism.keep, SCALE), Fraction(code, CODES)
    says_plus = plus * keep + (1 - plus) * (1 - keep)
    x = 2 * plus - 1
    assert scale * (2 * says_plus - 1) == x
    assert mechanism.variance(code) == scale**2 - x**2 == mechanism.base + (mechanism.gain - 1) * x**2
    assert mechanism.worst_ratio == keep / (1 - keep) <= exp_below(epsilon)


def test_the_constant_is_the_papers() -> None:
    for epsilon in (0.1, 1.0, 4.0):
        power = np.exp(epsilon)
        assert float(Duchi.for_budget(Fraction(str(epsilon))).largest) == pytest.approx((power + 1) / (power - 1))


def _signs_z(spent: str, assumed: str, seed: int) -> np.ndarray:
    n = 200_000
    drawing, reading = Duchi.for_budget(Fraction(spent)), Duchi.for_budget(Fraction(assumed))
    z = []
    for x in GRID:
        code = round((x + 1) / 2 * CODES)
        reports = drawing.perturb(np.full(n, code, dtype=np.uint32), Keystream.seeded(seed, str(x)))
        assert not drawing.invalid(reports).size
        total = report_sum(reading, drawing.tally(reports))
        z.append((total - n * x) / np.sqrt(n * float(reading.variance(code))))
    return np.array(z)


def test_one_dimension_is_unbiased_at_every_x(seed: int) -> None:
    assert np.abs(_signs_z("2", "2", seed)).max() < z_bound(len(GRID))


def test_a_budget_ten_percent_off_is_caught(seed: int) -> None:
    # tanh(ε/2) grows by 5 %: 27 standard errors at ±1.
    z = _signs_z("2.2", "2", seed)
    assert np.abs(z[[0, -1]]).min() > z_bound(len(GRID))


def test_bad_parameters_are_refused() -> None:
    for keep in (0, SCALE // 2, SCALE):
        with pytest.raises(ValueError, match="keep must lie"):
            Duchi(keep)
    with pytest.raises(ValueError, match="too small"):
        Duchi.for_budget(Fraction(1, 10**20))
