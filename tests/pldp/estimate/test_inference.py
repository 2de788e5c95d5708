from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from pldp.channels.protocol import Floats
from pldp.estimate.combine import LINEAR_METHODS, Levels, combine_linear, estimate_levels
from pldp.estimate.inference import Recipe, apply, bootstrap_error, estimate_histogram
from pldp.estimate.postprocess import project_to_simplex
from pldp.estimate.simulate import draw_support
from tests.pldp.world import ALPHA, attribute_plan, simulate, thirds, zipf


def _stated(method: str, recipe: Recipe, levels: Levels, rng: np.random.Generator) -> Floats:
    return bootstrap_error(method, recipe, levels, combine_linear("oc+", levels).frequency, None, rng)


def _one(levels: Levels, repeat: int = 0) -> Levels:
    return Levels(levels.frequencies[repeat], levels.n, levels.protocols)


def _levels(seed: int, budget: Fraction = Fraction(3)) -> tuple[Levels, Floats]:
    many, truth = simulate(attribute_plan(8, budget), zipf(8), 10_000, 1, np.random.default_rng(seed))
    return _one(many), truth


@pytest.mark.parametrize("method", ["sum", "oc", "oc+"])
@pytest.mark.parametrize("budget", [Fraction(1), Fraction(12)])
def test_intervals_cover_the_users_as_often_as_they_say(method: str, budget: Fraction, seed: int) -> None:
    # 400 repetitions × 8 cells with independent noise; binomial bounds at α = 1e-6. Half a point is granted for the
    # weights and S² being estimated and counts being discrete. `alpha` is tiny, so that no pre-test interferes.
    repeats = 400
    rng = np.random.default_rng(seed)
    many, truth = simulate(attribute_plan(8, budget), zipf(8), 10_000, repeats, rng)
    recipe = Recipe(method=method, alpha=1e-12)
    covered = 0
    for i in range(repeats):
        histogram = estimate_histogram(_one(many, i), recipe, None, rng)
        covered += int(((histogram.ci_low <= truth) & (truth <= histogram.ci_high)).sum())
    assert binom.cdf(covered, 8 * repeats, 0.945) > ALPHA
    assert binom.sf(covered, 8 * repeats, 0.955) > ALPHA


def test_intervals_for_the_population_cover_it(seed: int) -> None:
    # The users are drawn from a population; at ε = 12 that is most of the error, and an interval for the users misses.
    repeats, n_users = 300, 10_000
    rng = np.random.default_rng(seed)
    attribute, population, sizes = attribute_plan(8, Fraction(12)), zipf(8), thirds(n_users)
    dealt = np.stack([rng.multinomial(size, population, repeats) for size in sizes], axis=1)
    many = estimate_levels(draw_support(dealt, attribute.protocols, rng), sizes, attribute.protocols)

    def covered(recipe: Recipe) -> int:
        histograms = [estimate_histogram(_one(many, i), recipe, None, rng) for i in range(repeats)]
        return sum(int(((h.ci_low <= population) & (population <= h.ci_high)).sum()) for h in histograms)

    # Cells share their users and so are not independent; counting only half of them makes the bounds safe.
    wide = covered(Recipe(alpha=1e-12, population=True)) // 2
    assert binom.cdf(wide, 4 * repeats, 0.945) > ALPHA
    assert binom.sf(wide, 4 * repeats, 0.955) > ALPHA
    assert covered(Recipe(alpha=1e-12)) < 0.9 * 8 * repeats


def test_population_widens_both_error_and_interval() -> None:
    levels, _ = _levels(0)
    rng = np.random.default_rng(0)
    users = estimate_histogram(levels, Recipe(), None, rng)
    beyond = estimate_histogram(levels, Recipe(population=True), None, rng)
    inside = np.clip(users.frequency, 0, 1)
    assert beyond.standard_error**2 - users.standard_error**2 == pytest.approx(inside * (1 - inside) / 9999, rel=1e-6)
    assert np.all(beyond.ci_high >= users.ci_high)
    assert np.array_equal(beyond.frequency, users.frequency)


def test_an_unbiased_result_is_its_own_estimate() -> None:
    levels, _ = _levels(1)
    histogram = estimate_histogram(levels, Recipe(method="oc"), None, np.random.default_rng(0))
    combined = combine_linear("oc", levels)
    assert histogram.method == "oc"
    assert np.array_equal(histogram.frequency, combined.frequency)
    assert np.array_equal(histogram.standard_error, combined.standard_error)
    inside = (combined.frequency > 0.1) & (combined.frequency < 0.9)
    half = (histogram.ci_high - histogram.ci_low)[inside] / 2
    assert half == pytest.approx(1.959964 * combined.standard_error[inside], rel=1e-3)
    assert histogram.ci_low.min() >= 0
    assert histogram.ci_high.max() <= 1


def test_post_processing_keeps_the_estimate_before_it() -> None:
    levels, _ = _levels(2)
    histogram = estimate_histogram(levels, Recipe(postprocess="norm-sub"), None, np.random.default_rng(0))
    combined = combine_linear("oc+", levels)
    assert np.array_equal(histogram.unbiased.frequency, combined.frequency)
    assert np.array_equal(histogram.frequency, project_to_simplex(combined.frequency))
    assert np.all(histogram.standard_error > 0)


@pytest.mark.parametrize("method", ["op", "op-exact"])
def test_op_has_an_unbiased_column_beside_it(method: str) -> None:
    levels, truth = _levels(3)
    recipe = Recipe(method=method)
    histogram = estimate_histogram(levels, recipe, truth, np.random.default_rng(0))
    assert histogram.method == method
    assert np.array_equal(histogram.unbiased.frequency, combine_linear("oc+", levels).frequency)
    with pytest.raises(ValueError, match="needs a reference"):
        estimate_histogram(levels, recipe, None, np.random.default_rng(0))


def test_levels_that_disagree_fall_back_to_the_sum() -> None:
    attribute = attribute_plan(4, Fraction(6))
    dealt = np.array([[2400, 300, 200, 100], [1500, 500, 500, 500], [300, 900, 900, 900]])
    rng = np.random.default_rng(0)
    levels = estimate_levels(draw_support(dealt, attribute.protocols, rng), dealt.sum(axis=1), attribute.protocols)
    for method in (*LINEAR_METHODS, "op", "op-exact"):
        histogram = estimate_histogram(levels, Recipe(method=method), zipf(4), rng)
        assert not histogram.agreed
        assert histogram.agreement < 1e-3
        assert histogram.method == "sum"
        assert np.array_equal(histogram.frequency, combine_linear("sum", levels).frequency)


def test_batches_are_combined_as_one_by_one() -> None:
    many, truth = simulate(attribute_plan(6, Fraction(2)), zipf(6), 5000, 3, np.random.default_rng(0))
    for method in (*LINEAR_METHODS, "op", "op-exact"):
        recipe = Recipe(method=method, postprocess="norm-sub")
        together = apply(method, recipe, many, truth)
        for i in range(3):
            assert apply(method, recipe, _one(many, i), truth) == pytest.approx(together[i], abs=1e-9)


@pytest.mark.parametrize(
    ("method", "postprocess"), [("oc+", "norm-sub"), ("oc+", "clip"), ("oc+", "none"), ("sum", "norm-sub")]
)
@pytest.mark.parametrize("n_users", [10_000, 100_000])
def test_the_bootstrap_is_near_the_true_error(method: str, postprocess: str, n_users: int, seed: int) -> None:
    # Root mean square over cells, bootstrap against 2,000 true repetitions, averaged over 20 releases. The bootstrap
    # starts from an estimate with zeros, a sharper truth than the real one: a fifth off either way is what it promises.
    rng = np.random.default_rng(seed)
    attribute = attribute_plan(16, Fraction(1))
    many, truth = simulate(attribute, zipf(16), n_users, 2000, rng)
    recipe = Recipe(method=method, postprocess=postprocess)
    true = np.sqrt(np.mean((apply(method, recipe, many, None) - truth) ** 2))
    stated = [np.mean(_stated(method, recipe, _one(many, i), rng) ** 2) for i in range(20)]
    assert 0.8 < np.sqrt(np.mean(stated)) / true < 1.2


def test_the_bootstrap_sees_a_wrong_budget(seed: int) -> None:
    # The twin: protocols that claim 1.5 times the budget must look better than they are.
    rng = np.random.default_rng(seed)
    many, truth = simulate(attribute_plan(16, Fraction(1)), zipf(16), 10_000, 500, rng)
    recipe = Recipe(method="oc+", postprocess="none")
    true = np.sqrt(np.mean((apply("oc+", recipe, many, None) - truth) ** 2))
    wrong = replace(_one(many), protocols=attribute_plan(16, Fraction("1.5")).protocols)
    assert np.sqrt(np.mean(_stated("oc+", recipe, wrong, rng) ** 2)) / true < 0.8


def test_a_cell_that_is_always_zero_still_has_an_error() -> None:
    levels, _ = simulate(attribute_plan(4, Fraction(80)), np.array([1.0, 0, 0, 0]), 10_000, 1, np.random.default_rng(0))
    histogram = estimate_histogram(_one(levels), Recipe(postprocess="norm-sub"), None, np.random.default_rng(0))
    assert histogram.standard_error.min() > 0


@pytest.mark.parametrize("name", ["auto", "norm-sub", "norm-mul", "clip"])
def test_a_post_processed_value_carries_the_interval_of_the_unbiased_one(name: str, seed: int) -> None:
    levels, _ = simulate(attribute_plan(6, Fraction(2)), zipf(6), 2000, 1, np.random.default_rng(seed))
    before, after = (
        estimate_histogram(_one(levels), Recipe(postprocess=one), None, np.random.default_rng(0))
        for one in ("none", name)
    )
    assert np.array_equal((after.ci_low, after.ci_high), (before.ci_low, before.ci_high))
    assert np.array_equal(after.unbiased.frequency, before.unbiased.frequency)
