"""The published histogram of hidden levels at the ends: values nobody holds, few users, bounds on the leak."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pldp.channels.krr import KRR
from pldp.channels.protocol import Counts, PureProtocol
from pldp.channels.unary import BRR
from pldp.estimate.hidden import auem, draw_hidden, self_calibrated
from pldp.estimate.inference import Recipe
from pldp.estimate.simulate import draw_levels
from pldp.questions.histograms.hidden import estimate_hidden, moment_test
from pldp.questions.histograms.predict import predict_hidden
from tests.pldp.specs import HIDDEN, histograms
from tests.pldp.world import z_bound

REPORT = KRR.for_budget(3, Fraction(1))
COUNTS = np.array([1200, 900, 600, 300, 0, 0])
SIZES = np.array([1000, 1000, 1000])


def drawn(
    kind: type[PureProtocol], total: Fraction, repeats: int, seed: int
) -> tuple[Counts, Counts, tuple[PureProtocol, ...]]:
    protocols = tuple(kind.for_budget(6, total * share) for share in (Fraction(1, 3), Fraction(1, 2), Fraction(1)))
    rng = np.random.default_rng(seed)
    joint, told = draw_hidden(draw_levels(COUNTS, SIZES, repeats, rng), protocols, REPORT, rng)
    return joint, told, protocols


@pytest.mark.parametrize("total", [3, 12, 24, 60])
def test_the_moment_test_keeps_its_level_where_nobody_holds_a_value(total: int, seed: int) -> None:
    """Values that hardly any report supports show no variance of their own. 1 %, and another for the normal tail."""
    joint, told, protocols = drawn(KRR, Fraction(total), 2000, seed)
    fired = (moment_test(joint, told, protocols, REPORT, COUNTS / 3000) < 0.01).mean()
    assert fired < 0.02 + z_bound() * np.sqrt(0.02 / 2000)


@pytest.mark.parametrize("total", [12, 20, 30])
def test_auem_covers_values_that_nobody_holds(total: int, seed: int) -> None:
    joint, told, protocols = drawn(KRR, Fraction(total), 2000, seed)
    found = auem(joint, told, protocols, REPORT)
    covered = (np.abs(found.frequency - COUNTS / 3000) <= 1.96 * found.standard_error).mean(axis=0)
    assert (covered[4:] > 0.9).all(), covered


def test_the_unbiased_column_is_the_methods_own(seed: int) -> None:
    joint, told, protocols = drawn(BRR, Fraction(6), 1, seed)
    recipe = Recipe(method="self-calibrated", postprocess="norm-sub")
    found = estimate_hidden(joint[0], told[0], protocols, REPORT, recipe, None, np.random.default_rng(0))
    own = self_calibrated(joint[0].sum(axis=0), 3000, protocols)
    assert found.unbiased.frequency == pytest.approx(own.frequency)
    assert (found.ci_low <= np.clip(own.frequency, 0, 1)).all()


@pytest.mark.parametrize("users", [1, 2, 10])
def test_few_users_are_expected_without_rounding_them_away(users: int) -> None:
    plan = histograms(levels=HIDDEN, budget={"total": 1}, expected={"users": users})
    assert plan.hidden is not None
    for attribute in plan.attributes:
        errors = predict_hidden(attribute, plan.hidden, plan.expected_sizes(), attribute.frequencies)
        assert all(np.isfinite(error).all() for error in errors.values())
