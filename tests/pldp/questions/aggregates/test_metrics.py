from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from pldp.questions.aggregates.budgets import allocate, equal_scaling, profile_ticks, to_ticks
from pldp.questions.aggregates.metrics import (
    best_scales,
    kl_divergence,
    lower_bounds,
    mean_absolute_error,
    mean_absolute_error_loss,
    mean_squared_error,
    scales,
)
from pldp.questions.aggregates.objectives import MAE, MAEL, MSE, OBJECTIVES, Floats
from pldp.questions.aggregates.release import Mechanism
from tests.pldp.questions.aggregates.world import catalogue, dirichlet, movie_like


def test_by_hand() -> None:
    # Δ = (1, 2), t = (1/2, 1/4): scales 2 and 8; used ones 4 and 8.
    cat = catalogue([[1, 1], [0, 2]])
    best = best_scales(cat, profile_ticks(cat, [[Fraction(1, 2), Fraction(1, 4)]]))
    assert best.tolist() == [[2.0, 8.0]]
    used = np.array([[4.0, 8.0]])
    assert mean_absolute_error(used).tolist() == [6.0]
    assert mean_squared_error(2 * used**2).tolist() == [80.0]
    assert mean_absolute_error_loss(used, best).tolist() == [0.5]
    bounds = lower_bounds(best)
    assert [float(bounds[name][0]) for name in ("mae", "mse", "mael")] == [5.0, 68.0, 0.0]
    # Shares of variance 4 : 64 asked, 16 : 64 used.
    asked, got = np.array([4, 64]) / 68, np.array([16, 64]) / 80
    assert kl_divergence(best, used) == pytest.approx([float((asked * np.log(asked / got)).sum())], rel=1e-12)


def test_equal_scaling_has_no_divergence_and_the_optimum_some() -> None:
    cat, epsilon = movie_like(), to_ticks(Fraction("0.1"))
    budgets = dirichlet(20, 18, 4)
    best = best_scales(cat, budgets)
    assert kl_divergence(best, scales(cat, equal_scaling(cat, budgets, epsilon))) == pytest.approx(0, abs=1e-6)
    assert np.all(kl_divergence(best, scales(cat, allocate(cat, budgets, epsilon, MAEL).ticks)) > 1e-3)


def test_each_objective_is_best_at_its_own_metric() -> None:
    cat, epsilon = movie_like(), to_ticks(Fraction("0.1"))
    budgets = dirichlet(20, 18, 4)
    best = best_scales(cat, budgets)
    used = {name: scales(cat, allocate(cat, budgets, epsilon, one).ticks) for name, one in OBJECTIVES.items()}
    used["baseline"] = scales(cat, equal_scaling(cat, budgets, epsilon))
    metrics: dict[str, Callable[[Floats], Floats]] = {
        MAE.name: mean_absolute_error,
        MSE.name: lambda one: mean_squared_error(2 * one**2),
        MAEL.name: lambda one: mean_absolute_error_loss(one, best),
    }
    for own, metric in metrics.items():
        for other in used.values():
            assert np.all(metric(used[own]) <= metric(other) * (1 + 1e-6))


def test_above_the_turning_point_the_bounds_are_met() -> None:
    cat = movie_like()
    budgets = dirichlet(10, 18, 4)
    best = best_scales(cat, budgets)
    used = scales(cat, allocate(cat, budgets, to_ticks(Fraction(2)), MAE).ticks)
    bounds = lower_bounds(best)
    assert np.array_equal(mean_absolute_error(used), bounds["mae"])
    assert np.array_equal(mean_squared_error(2 * used**2), bounds["mse"])
    assert mean_absolute_error_loss(used, best) == pytest.approx(bounds["mael"], abs=1e-12)
    assert kl_divergence(best, used) == pytest.approx(0, abs=1e-12)


def test_the_implemented_noise_is_close_to_the_laplace_noise_and_below() -> None:
    cat = movie_like()
    budgets = dirichlet(10, 18, 4)
    ticks = allocate(cat, budgets, to_ticks(Fraction("0.4")), MAE).ticks
    mechanism = Mechanism(cat, ticks)
    assert np.all(mechanism.mean_size <= scales(cat, ticks) * (1 + 1e-9))
    assert mechanism.mean_size == pytest.approx(scales(cat, ticks), rel=0.03)
    assert mechanism.variance == pytest.approx(2 * scales(cat, ticks) ** 2, rel=0.03)
