from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pldp.channels.numeric.domain import Bounds, Codes, positions
from pldp.channels.numeric.mechanism import report_squares, report_sum
from pldp.channels.randomness import Keystream
from pldp.papers.pmpm.dealing import deal_at_random, random_mix
from pldp.papers.pmpm.simulate import Collection, report_values
from pldp.questions.numbers.budgets import BudgetClasses, average_variance, deal_by_importance, sampled_attributes
from pldp.questions.numbers.choice import MECHANISMS, best_mechanism, best_sampled, class_mix, predicted_mse
from pldp.questions.numbers.means import ESTIMATORS
from tests.pldp.world import z_bound


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


@pytest.mark.parametrize("name", ["pm", "duchi", "hm", "laplace"])
def test_values_of_reports_are_what_the_tallies_add_up(name: str, seed: int) -> None:
    """Simulations sum doubles, releases whole numbers."""
    mechanism = MECHANISMS[name].for_budget(Fraction(2))
    codes = Bounds(-1, 1).encode(np.random.default_rng(seed).uniform(-1, 1, 2000))
    reports = mechanism.perturb(codes, Keystream.seeded(seed, name))
    values, tally = report_values(mechanism, reports), mechanism.tally(reports)
    assert values.sum() == pytest.approx(report_sum(mechanism, tally), abs=1e-6)
    assert (values**2).sum() == pytest.approx(report_squares(mechanism, tally), rel=1e-9)


def test_dealt_at_random_every_class_is_as_frequent_as_said(seed: int) -> None:
    classes = BudgetClasses(Fraction(12), Fraction(3, 2), 3, 6)
    users = 20_000
    units = deal_at_random(classes, users, Keystream.seeded(seed))
    expected = random_mix(classes, "duchi").shares
    # A user's first unit alone, so that draws are independent; 7 classes.
    seen = np.bincount(units[:, 0], minlength=7) / users
    assert (np.abs(seen - expected) < z_bound(7) * np.sqrt(expected * (1 - expected) / users)).all()
    assert expected @ np.arange(7) == pytest.approx(2)
    assert random_mix(BudgetClasses(Fraction(12), Fraction(1), 3, 6), "duchi").shares.tolist() == [1]
