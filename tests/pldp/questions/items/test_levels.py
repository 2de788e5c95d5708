"""Scores, levels and budgets."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pldp.papers.aprr.levels import levels_from_frequency
from pldp.questions.items.levels import Scale, declared_levels, level_budgets, level_weights, levels_from_scores
from tests.pldp.questions.items.world import SIZES, basket
from tests.pldp.world import BUDGETS


@given(st.integers(2, 40), BUDGETS)
def test_budgets_sum_to_the_total_and_fall_with_the_level(n_levels: int, epsilon: Fraction) -> None:
    open_, *rest = level_budgets(n_levels, epsilon)
    budgets = [budget for budget in rest if budget is not None]
    assert open_ is None
    assert len(budgets) == n_levels - 1
    assert sum(budgets) == epsilon
    assert budgets == sorted(budgets, reverse=True)
    assert sum(level_weights(n_levels)) == 1


def test_scores_give_levels_and_lose_their_outliers() -> None:
    scores = np.array([[1.0, 9, 5], [2, 10, 5], [1, 9, 5], [2, 8, 5], [10, 0, 0]])
    found = levels_from_scores(scores, Scale.equal(0, 10, 5))
    assert found.levels == (0, 4, 2)
    assert found.removed.tolist() == [1, 1, 1]
    np.testing.assert_allclose(found.sensitivity, [1.5, 9, 5])


def test_a_cut_belongs_to_the_higher_level() -> None:
    scale = Scale(0, 10, (2.0, 5.0))
    assert levels_from_scores(np.array([[1.9, 2.0, 5.0, 10.0]]), scale).levels == (0, 1, 2, 2)
    assert scale.n_levels == 3


def test_users_need_not_score_everything() -> None:
    scores = np.array([[1.0, np.nan], [np.nan, 9.0], [1.0, 9.0]])
    assert levels_from_scores(scores, Scale.equal(0, 10, 2)).levels == (0, 1)


@given(st.integers(1, 6), st.integers(3, 30), st.integers(0, 2**32 - 1))
def test_users_and_their_order_do_not_matter(values: int, users: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, scale = rng.integers(0, 11, (users, values)).astype(float), Scale.equal(0, 10, 4)
    found = levels_from_scores(scores, scale)
    again = levels_from_scores(rng.permutation(scores), scale)
    assert found.levels == again.levels
    assert all(0 <= level < 4 for level in found.levels)


def test_basket_levels_come_from_frequency() -> None:
    table = basket()
    levels = levels_from_frequency(table.sum(axis=0), SIZES)
    assert np.bincount(levels).tolist() == list(SIZES)
    assert levels[2] == 4  # dairy, 177 of 940
    assert all(levels[item] == 0 for item in (0, 3, 5, 6))  # fruitveg, cannedveg, frozenmeal, beer


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: levels_from_scores(np.array([[1.0, np.nan]]), Scale.equal(0, 9, 3)), "column 1: no score"),
        (
            lambda: levels_from_scores(np.array([[1.0], [77.0]]), Scale.equal(0, 9, 3)),
            "row 1, column 0: a score must lie in",
        ),
        (lambda: levels_from_scores(np.zeros((0, 2)), Scale.equal(0, 9, 3)), "not empty"),
        (lambda: Scale(3, 3, (3.0,)), "scores.range"),
        (lambda: Scale(0, 9, (5.0, 4.0)), "scores.cuts"),
        (lambda: Scale.equal(0, 9, 1), "at least 2"),
        (lambda: levels_from_frequency([1, 2, 3], (1, 1)), "sum to the 3 items"),
        (lambda: declared_levels([0, 5], 5), "in 0 … 4"),
        (lambda: level_budgets(5, Fraction(0)), "budget must be > 0"),
    ],
)
def test_bad_input_is_named(call: object, words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        call()  # type: ignore[operator]
    assert "77" not in str(caught.value)
