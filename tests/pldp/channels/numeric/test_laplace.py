from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from pldp.channels.exact import exp_below, within
from pldp.channels.numeric.domain import CODES
from pldp.channels.numeric.laplace import Laplace
from pldp.channels.numeric.mechanism import report_sum
from pldp.channels.randomness import Keystream
from tests.pldp.world import ALPHA, z_bound

BUDGETS = st.floats(-2.9, 2).map(lambda x: Fraction(str(10**x)))


@given(BUDGETS)
def test_the_exact_budget_is_a_rational_just_below(epsilon: Fraction) -> None:
    mechanism = Laplace.for_budget(epsilon)
    assert epsilon * (1 - epsilon / 2**24) <= mechanism.exact_epsilon < epsilon
    assert within(mechanism.worst_ratio, epsilon)
    assert mechanism.worst_ratio > exp_below(mechanism.exact_epsilon)


@pytest.mark.parametrize("bits", [1, 2, 3])
def test_worst_ratio_on_coarse_grids(bits: int) -> None:
    # Pr[j|i] ∝ α^|j−i|: over all cells, the ends that take the tails included, two inputs differ by at most α^−G.
    mechanism = Laplace.for_budget(Fraction(3, 2), bits)
    steps = 1 << bits
    alpha = float(np.exp(-float(mechanism.exact_epsilon) / steps))
    cells = np.arange(-40, steps + 41)
    law = np.array([(1 - alpha) / (1 + alpha) * alpha ** np.abs(cells - i) for i in range(steps + 1)])
    low = np.array([alpha ** (i + 40) / (1 + alpha) for i in range(steps + 1)])
    law[:, 0], law[:, -1] = low, low[::-1]
    assert np.allclose(law.sum(axis=1), 1)
    assert (law.max(axis=0) / law.min(axis=0)).max() == pytest.approx(float(mechanism.worst_ratio))


@pytest.mark.parametrize("epsilon", ["0.1", "1", "5"])
def test_variance_is_that_of_continuous_laplace_to_the_grid(epsilon: str) -> None:
    assert float(Laplace.for_budget(Fraction(epsilon)).variance(CODES)) == pytest.approx(8 / float(epsilon) ** 2, 1e-5)


def _noise_distance(spent: str, seed: int) -> float:
    """χ² of the noise on a grid of 4 steps against two-sided geometric at ε = 2."""
    n, steps = 100_000, 4
    mechanism = Laplace.for_budget(Fraction(spent), 2)
    reports = mechanism.perturb(np.full(n, CODES // 2, dtype=np.uint32), Keystream.seeded(seed, "laplace"))
    noise = reports.astype(np.int64) - (1 << 31) - steps // 2
    alpha = np.exp(-2 / steps)
    law = (1 - alpha) / (1 + alpha) * alpha ** np.abs(np.arange(-10, 11))
    law[[0, -1]] = alpha**10 / (1 + alpha)
    seen = np.bincount(np.clip(noise, -10, 10) + 10, minlength=21)
    return float(((seen - n * law) ** 2 / (n * law)).sum())


def test_noise_is_two_sided_geometric(seed: int) -> None:
    assert _noise_distance("2", seed) < chi2.isf(ALPHA, 20)


def test_a_budget_ten_percent_off_is_caught(seed: int) -> None:
    assert _noise_distance("2.2", seed) > chi2.isf(ALPHA, 20)


def test_reports_are_unbiased(seed: int) -> None:
    mechanism, n = Laplace.for_budget(Fraction(1)), 50_000
    z = []
    for x in (-1.0, -0.3, 0.0, 0.5, 1.0):
        code = round((x + 1) / 2 * CODES)
        tally = mechanism.tally(mechanism.perturb(np.full(n, code, dtype=np.uint32), Keystream.seeded(seed, str(x))))
        z.append((report_sum(mechanism, tally) - n * x) / np.sqrt(n * float(mechanism.variance(code))))
    assert np.abs(z).max() < z_bound(5)


def test_the_tally_of_wide_reports_is_exact() -> None:
    mechanism = Laplace.for_budget(Fraction(1))
    reports = np.random.default_rng(0).integers(0, 1 << 32, 9000, dtype=np.uint32)
    reports[:2] = 0, (1 << 32) - 1
    centred = [2 * int(j) - (1 << 32) - (1 << 15) for j in reports]
    tally = mechanism.tally(reports)
    assert tally.total == (sum(centred),)
    assert tally.squares == (sum(c * c for c in centred),)


def test_budgets_that_would_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match=r"below 0\.001"):
        Laplace.for_budget(Fraction(1, 2000))
    with pytest.raises(ValueError, match="length"):
        Laplace(15, 0)
