from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pldp.numeric.budgets import BudgetClasses, average_variance, deal_by_importance, sampled_attributes
from pldp.numeric.domain import Bounds, Codes, positions
from pldp.numeric.means import ESTIMATORS
from pldp.numeric.predict import MECHANISMS, best_mechanism, best_sampled, class_mix, predicted_mse
from pldp.numeric.simulate import Collection
from pldp.randomness import Keystream


@given(st.integers(1, 6), st.floats(0, 1))
def test_shares_of_classes_sum_to_one_and_spend_the_budget(k: int, important: float) -> None:
    classes = BudgetClasses.for_importance(Fraction(9), Fraction(3, 2), k)
    mix = class_mix(classes, "duchi", important)
    assert mix.shares.sum() == pytest.approx(1)
    # All k reports of a user together spend ε, so one spends ε/k on average.
    budgets = np.array([float(classes.budget(u)) for u in classes.by_importance])
    assert (mix.shares * budgets).sum() == pytest.approx(9 / k)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_without_personal_budgets_it_is_equation_16(k: int) -> None:
    classes = BudgetClasses.for_importance(Fraction(7), Fraction(1), k)
    mse = predicted_mse("scaled", class_mix(classes, "pm", 0.3), 20, k, 1000, 1 / 3)
    assert mse == pytest.approx(float(average_variance(7, 20, k)) / 1000, rel=1e-3)


@settings(max_examples=30)
@given(st.integers(1, 5), st.floats(0, 1), st.floats(0.05, 1), st.floats(-0.2, 0.2))
def test_inverse_variance_is_never_predicted_worse(k: int, important: float, moment: float, mean: float) -> None:
    classes = BudgetClasses.for_importance(Fraction(8), Fraction(2), k)
    mse = {
        method: predicted_mse(method, class_mix(classes, "pm", important), 10, k, 1000, moment, mean)
        for method in ESTIMATORS
    }
    assert 0 < mse["inverse-variance"] <= mse["reports"] * (1 + 1e-9)
    assert mse["reports"] <= mse["scaled"] * (1 + 1e-9)


@pytest.mark.parametrize("mechanism", ["pm", "hm"])
def test_predictions_are_what_is_measured(mechanism: str, seed: int) -> None:
    n, d, k, repeats = 3000, 6, 3, 120
    rng = np.random.default_rng(seed)
    codes = Bounds(0, 1).encode(rng.beta(2, 4, (n, d)))
    x = positions(codes)
    classes = BudgetClasses.for_importance(Fraction(9), Fraction(3, 2), k)
    collection = Collection.of(classes, mechanism, classes.by_importance)
    mix = class_mix(classes, mechanism, 0.3)
    stream = Keystream.seeded(seed, mechanism)

    def deal(sampled: Codes) -> np.ndarray:
        return deal_by_importance(classes, rng.random(sampled.shape) < 0.3)

    squares: dict[str, list[float]] = {}
    for _ in range(repeats):
        for method, (means, _) in collection.simulate(codes, deal, stream).items():
            squares.setdefault(method, []).extend((means - x.mean(axis=0)) ** 2)
    for method, seen in squares.items():
        expected = np.mean([predicted_mse(method, mix, d, k, n, float((c**2).mean()), float(c.mean())) for c in x.T])
        # 720 squares of nearly normal, nearly independent errors.
        assert np.mean(seen) / expected == pytest.approx(1, abs=5.5 * np.sqrt(2 / 720)), method


@given(st.floats(0.2, 30), st.integers(1, 40))
@settings(max_examples=25)
def test_with_equal_budgets_the_best_number_is_the_optimal_rule(epsilon: float, d: int) -> None:
    total = Fraction(str(round(epsilon, 3)))
    best = best_sampled("scaled", "pm", total, Fraction(1), d, 0.5)
    rule = sampled_attributes("optimal", float(total), d)
    # Realised windows differ from the formula by less than a cell: where two numbers tie, either may win.
    costs = average_variance(float(total), d, np.array([best, rule]))
    assert costs[0] == pytest.approx(costs[1], rel=2e-3)


def test_personal_budgets_cost_accuracy_that_the_mean_budget_hides() -> None:
    # pmpm Eq. 13 puts E[ε] into a convex function. The error grows with τ although E[ε] stays ε/k.
    mse = [
        predicted_mse(
            "reports",
            class_mix(BudgetClasses.for_importance(Fraction(10), Fraction(tau), 3), "pm", 0.5),
            20,
            3,
            1000,
            1 / 3,
        )
        for tau in ("1", "9/8", "3/2", "2", "4")
    ]
    assert all(a < b for a, b in pairwise(mse))


def test_the_best_mechanism_by_budget() -> None:
    # Duchi for small budgets, PM for large ones, HM in between where the worst x counts.
    assert best_mechanism(Fraction(1, 10)) in ("duchi", "hm")
    assert best_mechanism(Fraction(1, 10**6)) in ("duchi", "hm")
    assert best_mechanism(Fraction(4)) == "pm"
    classes = BudgetClasses.for_importance(Fraction(1), Fraction(2), 2)
    assert set(MECHANISMS) == {"pm", "duchi", "hm", "laplace", "sw"}
    with pytest.raises(ValueError, match="share of users"):
        class_mix(classes, "pm", 1.5)
    with pytest.raises(ValueError, match="is not one of"):
        predicted_mse("median", class_mix(classes, "pm", 0.5), 3, 2, 9, 0.3)
