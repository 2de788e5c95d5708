from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from pldp.estimate.combine import CLASSIC, combine_linear
from pldp.estimate.inference import Recipe
from pldp.estimate.simulate import whole_counts
from pldp.questions.histograms.predict import (
    level_costs,
    predict_level,
    predict_linear,
    predict_simulated,
    typical,
)
from tests.pldp.world import attribute_plan, paper_attributes, simulate, thirds, z_bound, zipf


def _summed(total: Fraction, n_users: int) -> dict[str, float]:
    """Predicted squared error over the paper's five attributes, Algorithm 4's block-uniform data, equal groups."""
    sizes = thirds(n_users)
    return {
        method: sum(
            float(np.square(predict_linear(a, method, sizes, a.frequencies)).sum()) for a in paper_attributes(total)
        )
        for method in CLASSIC
    }


def test_small_budgets_save_what_the_limit_says() -> None:
    # v ~ 4/ε²: the sum has (9 + 4 + 1)/3 = 4.667, `oc` 3/(1/9 + 1/4 + 1) = 2.204, whatever ε: 52.8 % less.
    levels = np.array([1 / 3, 1 / 2, 1])
    limit = 1 - (3 / np.square(levels).sum()) / np.mean(1 / np.square(levels))
    assert limit == pytest.approx(1 - 2.204 / 4.667, abs=1e-4)
    error = _summed(Fraction(1, 1000), 9999)
    assert 1 - error["oc"] / error["sum"] == pytest.approx(limit, abs=1e-6)


@pytest.mark.parametrize("n_users", [1000, 10_000])
@pytest.mark.parametrize("total", [1, 2, 3, 4, 5, 6])
def test_the_papers_budgets_save_51_to_54_percent(total: int, n_users: int) -> None:
    # The paper says about 60 %.
    error = _summed(Fraction(total), n_users)
    assert 0.51 < 1 - error["oc"] / error["sum"] < 0.54
    assert 0.51 < 1 - error["oc+"] / error["sum"] < 0.54


def test_at_large_budgets_oc_is_worse_than_the_sum() -> None:
    # Against the paper's Eq. 56. At ε = 60: +48.6 % and −43.6 %, methods.md: about +50 %, 43–45 % below.
    error = _summed(Fraction(60), 10_000)
    assert error["oc"] / error["sum"] - 1 == pytest.approx(0.50, abs=0.03)
    assert 0.43 < 1 - error["oc+"] / error["sum"] < 0.45


def test_simulated_errors_agree_at_large_budgets(seed: int) -> None:
    # The same at ε = 60 by simulation. Sums of 75 squared errors over R repetitions have a relative error below
    # √(2/(5 R)) (five independent attributes, cells of one attribute at worst all alike), and ratios twice that.
    repeats = 4000
    rng = np.random.default_rng(seed)
    simulated = dict.fromkeys(CLASSIC, 0.0)
    for attribute in paper_attributes(Fraction(60)):
        levels, truth = simulate(attribute, attribute.frequencies, 10_000, repeats, rng)
        for method in CLASSIC:
            error = combine_linear(method, levels).frequency - truth
            simulated[method] += float(np.mean(error**2, axis=0).sum())
    predicted = _summed(Fraction(60), 10_000)
    for method in CLASSIC:
        assert simulated[method] / predicted[method] == pytest.approx(1, abs=z_bound(3) * np.sqrt(0.4 / repeats))
    assert simulated["oc"] / simulated["sum"] - 1 == pytest.approx(0.50, abs=0.1)
    assert 1 - simulated["oc+"] / simulated["sum"] == pytest.approx(0.44, abs=0.04)


@pytest.mark.parametrize("total", [Fraction(1, 100), Fraction(1), Fraction(6), Fraction(60), Fraction(500)])
def test_oc_plus_is_never_worse(total: Fraction) -> None:
    error = _summed(total, 10_000)
    assert error["oc+"] <= min(error["sum"], error["oc"]) * (1 + 1e-12)


def test_error_in_counts_is_the_published_formula() -> None:
    attribute, sizes, frequency = attribute_plan(6, Fraction(10)), np.array([2000, 3000, 5000]), zipf(6)
    between = frequency * (1 - frequency) * 10_000 / 9_999
    noise = np.array([protocol.noise_variance(frequency) for protocol in attribute.protocols])
    formula = 10_000**2 / (sizes[:, None] / (noise + between)).sum(axis=0) - 10_000 * between
    assert (10_000 * predict_linear(attribute, "oc+", sizes, frequency)) ** 2 == pytest.approx(formula, rel=1e-9)


def test_levels_nobody_chooses_do_not_count() -> None:
    attribute, frequency = attribute_plan(4, Fraction(2)), zipf(4)
    alone = predict_linear(attribute, "oc+", np.array([0, 0, 500]), frequency)
    assert alone == pytest.approx(predict_level(attribute, 2, 500, frequency))


def test_level_costs() -> None:
    attribute, frequency = attribute_plan(4, Fraction(2)), zipf(4)
    high, mid, low = level_costs(attribute, np.array([100, 300, 600]), frequency)
    assert (high.level, mid.level, low.level) == ("high", "mid", "low")
    assert high.information < mid.information < low.information == 1
    assert low.everyone == pytest.approx(typical(predict_level(attribute, 2, 1000, frequency)))
    assert low.standard_error / low.everyone == pytest.approx(np.sqrt(1000 / 600))
    assert high.everyone > mid.everyone > low.everyone


@pytest.mark.parametrize("method", CLASSIC)
def test_simulated_and_linear_predictions_agree(method: str, seed: int) -> None:
    attribute, sizes = attribute_plan(5, Fraction(8)), np.array([1000, 2000, 3000])
    frequency = whole_counts(zipf(5), 6000) / 6000
    drawn = predict_simulated(attribute, method, Recipe(), sizes, frequency, np.random.default_rng(seed))
    ratio = drawn / predict_linear(attribute, method, sizes, frequency)
    # A root mean square of 400 errors has a relative error of √(1/800).
    assert np.abs(ratio - 1).max() < z_bound(5) / np.sqrt(800)


def test_projection_is_predicted_to_help(seed: int) -> None:
    attribute, sizes = attribute_plan(16, Fraction(1)), thirds(10_000)
    rng = np.random.default_rng(seed)
    recipe = Recipe(postprocess="norm-sub")
    projected = typical(predict_simulated(attribute, "oc+", recipe, sizes, zipf(16), rng))
    assert projected < 0.95 * typical(predict_linear(attribute, "oc+", sizes, zipf(16)))
