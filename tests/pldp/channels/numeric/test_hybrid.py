from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pldp.channels.exact import SCALE, within
from pldp.channels.numeric.domain import CODES
from pldp.channels.numeric.duchi import Duchi
from pldp.channels.numeric.hybrid import HM
from pldp.channels.numeric.mechanism import report_squares, report_sum
from pldp.channels.numeric.window import PM
from pldp.channels.randomness import Keystream
from tests.pldp.world import z_bound

BUDGETS = st.floats(-3, 2).map(lambda x: Fraction(str(10**x)))
GRID = (-1.0, -0.4, 0.0, 0.7, 1.0)


@given(BUDGETS, st.integers(0, CODES))
def test_ratio_and_variance_are_those_of_the_branches(epsilon: Fraction, code: int) -> None:
    mechanism = HM.for_budget(epsilon)
    pm, duchi = PM.for_budget(epsilon), Duchi.for_budget(epsilon)
    share = Fraction(mechanism.mix, SCALE)
    # Branches show in the report, so a report's ratio is that of its branch: the mixing weight cancels.
    ratios = [duchi.worst_ratio] if not mechanism.mix else [pm.worst_ratio, duchi.worst_ratio]
    assert mechanism.worst_ratio == max(ratios)
    assert within(mechanism.worst_ratio, epsilon)
    assert mechanism.variance(code) == share * pm.variance(code) + (1 - share) * duchi.variance(code)
    assert (mechanism.mix == 0) == (epsilon <= Fraction("0.61"))


@pytest.mark.parametrize("epsilon", ["0.2", "0.61", "0.7", "1", "2", "4", "8"])
def test_the_worst_variance_is_no_larger_than_either_branchs(epsilon: str) -> None:
    worst = {
        kind.name: max(float(kind.for_budget(Fraction(epsilon)).variance(code)) for code in (0, CODES // 2, CODES))
        for kind in (HM, PM, Duchi)
    }
    assert worst["hm"] <= min(worst["pm"], worst["duchi"]) * (1 + 1e-3)


def _z(spent: str, assumed: str, seed: int) -> np.ndarray:
    n = 100_000
    drawing, reading = HM.for_budget(Fraction(spent)), HM.for_budget(Fraction(assumed))
    z = []
    for x in GRID:
        code = round((x + 1) / 2 * CODES)
        reports = drawing.perturb(np.full(n, code, dtype=np.uint32), Keystream.seeded(seed, str(x)))
        assert not drawing.invalid(reports).size
        tally = drawing.tally(reports)
        variance = float(reading.variance(code))
        second = variance + x**2
        spread = second * (float(reading.largest) ** 2 - second)
        z.append((report_sum(reading, tally) - n * x) / np.sqrt(n * variance))
        z.append((report_squares(reading, tally) - n * second) / np.sqrt(n * max(spread, 1e-9)))
    return np.array(z)


@pytest.mark.parametrize("epsilon", ["0.5", "2"])
def test_reports_are_unbiased_with_their_variance_at_every_x(epsilon: str, seed: int) -> None:
    assert np.abs(_z(epsilon, epsilon, seed)).max() < z_bound(4 * len(GRID))


def test_a_budget_ten_percent_off_is_caught(seed: int) -> None:
    z = _z("2.2", "2", seed)
    assert np.abs(z[[0, -2]]).min() > z_bound(4 * len(GRID))


def test_reports_beyond_both_branches_are_found() -> None:
    mechanism, small = HM.for_budget(Fraction(2)), HM.for_budget(Fraction(1, 2))
    top = mechanism.pm.cells + 2
    assert mechanism.invalid(np.array([0, 1, 2, top - 1, top], dtype=np.uint32)).tolist() == [4]
    assert small.invalid(np.array([0, 1, 2], dtype=np.uint32)).tolist() == [2]
    with pytest.raises(ValueError, match="mix"):
        HM(mechanism.bits, mechanism.window, mechanism.weight, mechanism.keep, SCALE)
