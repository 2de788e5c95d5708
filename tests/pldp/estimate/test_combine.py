from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pldp.channels.protocol import Counts, Floats
from pldp.channels.unary import BRR
from pldp.estimate.answer import answer
from pldp.estimate.combine import (
    CLASSIC,
    Combined,
    Levels,
    combine_linear,
    estimate_levels,
    first_pass,
    linear_variance,
    linear_weights,
    noise_variances,
    spread,
)
from pldp.estimate.ends import invert_table
from pldp.estimate.invert import Cover, hypothesis_table
from pldp.estimate.simulate import draw_support, whole_counts
from tests.pldp.estimate.people import five_levels, one_cell
from tests.pldp.world import attribute_plan, simulate, thirds, z_bound, zipf

NOISE = st.lists(st.floats(1e-6, 1e6), min_size=3, max_size=3)
SIZES = st.lists(st.integers(1, 10**6), min_size=3, max_size=3)
SHARE = st.floats(0, 1)


def _weights(method: str, sizes: list[int], noise: list[float], share: float) -> tuple[Floats, Counts, Floats, Floats]:
    n = np.asarray(sizes)
    between = spread(np.array([share]), int(n.sum()))
    per_level = np.asarray(noise)[:, None]
    return linear_weights(method, n, per_level, between), n, per_level, between


@given(SIZES, NOISE, SHARE, st.sampled_from(CLASSIC))
def test_weights_are_a_mean(sizes: list[int], noise: list[float], share: float, method: str) -> None:
    weights, *_ = _weights(method, sizes, noise, share)
    assert weights.min() >= 0
    assert weights.sum(axis=0) == pytest.approx(1, abs=1e-12)


@given(SIZES, NOISE, SHARE)
def test_error_of_oc_plus_is_the_published_formula(sizes: list[int], noise: list[float], share: float) -> None:
    # methods.md, MSE in counts: n² / Σ n_τ/(v_τ + S²) − n S².
    weights, n, per_level, between = _weights("oc+", sizes, noise, share)
    users = n.sum()
    published = users**2 / (n[:, None] / (per_level + between)).sum(axis=0) - users * between
    computed = users**2 * linear_variance(weights, n, per_level, between)
    # The published form cancels: it is exact to rounding of its larger term.
    assert computed == pytest.approx(published, rel=1e-9, abs=1e-9 * float((published + users * between).max()))


@given(SIZES, NOISE, SHARE, st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda w: sum(w) > 0.01))
def test_no_other_weights_beat_oc_plus(sizes: list[int], noise: list[float], share: float, raw: list[float]) -> None:
    weights, n, per_level, between = _weights("oc+", sizes, noise, share)
    other = np.asarray(raw)[:, None] / sum(raw)
    best = linear_variance(weights, n, per_level, between)
    assert best <= linear_variance(other, n, per_level, between) * (1 + 1e-9)


def test_weights_of_the_three_methods() -> None:
    n, noise = np.array([100, 300]), np.array([[4.0], [1.0]])
    between = np.array([0.25])
    assert linear_weights("sum", n, noise, between).ravel() == pytest.approx([0.25, 0.75])
    assert linear_weights("oc", n, noise, between).ravel() == pytest.approx([25 / 325, 300 / 325])
    assert linear_weights("oc+", n, noise, between).ravel() == pytest.approx(
        np.array([100 / 4.25, 300 / 1.25]) / (100 / 4.25 + 300 / 1.25)
    )
    with pytest.raises(ValueError, match="'best' is not one of sum, oc, oc\\+"):
        linear_weights("best", n, noise, between)


def test_oc_plus_is_oc_for_small_and_sum_for_large_budgets(seed: int) -> None:
    rng = np.random.default_rng(seed)
    small, _ = simulate(attribute_plan(6, Fraction(1, 100)), zipf(6), 10_000, 1, rng)
    large, truth = simulate(attribute_plan(6, Fraction(150)), zipf(6), 10_000, 1, rng)
    assert combine_linear("oc+", small).weights == pytest.approx(combine_linear("oc", small).weights, rel=1e-4)
    assert combine_linear("oc+", large).weights == pytest.approx(combine_linear("sum", large).weights, rel=1e-6)
    # At such a budget every bit is kept: the sum is the truth, `oc` looks at the low level only.
    assert combine_linear("sum", large).frequency[0] == pytest.approx(truth, abs=1e-9)
    assert combine_linear("oc", large).weights[0, -1].min() > 0.99


def test_repetitions_do_not_mix(seed: int) -> None:
    many, _ = simulate(attribute_plan(5, Fraction(2)), zipf(5), 3000, 4, np.random.default_rng(seed))
    for method in CLASSIC:
        together = combine_linear(method, many)
        for i in range(4):
            alone = combine_linear(method, Levels(many.frequencies[i], many.n, many.protocols))
            assert np.array_equal(together.frequency[i], alone.frequency)
            assert np.array_equal(together.standard_error[i], alone.standard_error)


def test_levels_nobody_chose_drop_out() -> None:
    protocols = attribute_plan(3, Fraction(3)).protocols
    support = np.array([[5, 4, 3], [0, 0, 0], [9, 2, 1]])
    levels = estimate_levels(support, np.array([10, 0, 12]), protocols)
    assert levels.n.tolist() == [10, 12]
    assert levels.protocols == (protocols[0], protocols[2])
    assert levels.n_reports == 22
    assert levels.frequencies[1] == pytest.approx(protocols[2].estimate(support[2], 12))


def test_one_level_is_its_own_estimate() -> None:
    protocol = BRR.for_budget(3, Fraction(1))
    levels = estimate_levels(np.array([[50, 30, 40]]), np.array([100]), (protocol,))
    for method in CLASSIC:
        combined = combine_linear(method, levels)
        assert np.array_equal(combined.frequency, levels.frequencies[0])
        assert combined.standard_error == pytest.approx(np.sqrt(protocol.noise_variance(np.ones(3)) / 100))


@pytest.mark.parametrize("budget", [Fraction(1), Fraction(6), Fraction(20)])
@pytest.mark.parametrize("method", CLASSIC)
def test_unbiased_with_the_stated_standard_error(method: str, budget: Fraction, seed: int) -> None:
    # Bias: α = 1e-6 over 6 cells against the theoretical standard error of the mean of R repetitions. It also measures
    # what estimated weights cost `oc+`: less than 5/√R = 8 % of a standard error.
    # Variance: mean squared errors of R nearly normal errors have a relative error of √(2/R); binomial skewness and the
    # estimated S² of the stated error (a few parts in a thousand) get another percent.
    repeats, n_users = 4000, 10_000
    levels, truth = simulate(attribute_plan(6, budget), zipf(6), n_users, repeats, np.random.default_rng(seed))
    combined: Combined = combine_linear(method, levels)
    error = combined.frequency - truth
    stated = np.mean(combined.standard_error**2, axis=0)
    assert np.abs(error.mean(axis=0) / np.sqrt(stated / repeats)).max() < z_bound(6)
    ratio = np.mean(error**2, axis=0) / stated
    assert np.abs(ratio - 1).max() < z_bound(6) * np.sqrt(2 / repeats) + 0.01


def test_a_standard_error_of_noise_alone_is_caught(seed: int) -> None:
    # The twin: at ε = 20 `oc` pays more for looking at other people than for noise; leaving that out must show.
    levels, truth = simulate(attribute_plan(6, Fraction(20)), zipf(6), 10_000, 1000, np.random.default_rng(seed))
    combined = combine_linear("oc", levels)
    noise = np.stack([protocol.noise_variance(truth) for protocol in levels.protocols])
    alone = linear_variance(combined.weights, levels.n, noise, np.zeros(6))
    ratio = np.mean((combined.frequency - truth) ** 2, axis=0) / alone.mean(axis=0)
    assert ratio.min() > 2


def test_where_the_choice_depends_on_the_value_only_sum_is_unbiased(seed: int) -> None:
    # Users of value 0 prefer the high level; 3,000 a level.
    attribute = attribute_plan(4, Fraction(6))
    dealt = np.array([[2400, 300, 200, 100], [1500, 500, 500, 500], [300, 900, 900, 900]])
    truth = dealt.sum(axis=0) / dealt.sum()
    repeats = 4000
    rng = np.random.default_rng(seed)
    support = draw_support(np.broadcast_to(dealt, (repeats, 3, 4)), attribute.protocols, rng)
    levels = estimate_levels(support, dealt.sum(axis=1), attribute.protocols)

    def z(method: str) -> Floats:
        frequency = combine_linear(method, levels).frequency
        return (frequency.mean(axis=0) - truth) / (frequency.std(axis=0) / np.sqrt(repeats))

    # α = 1e-6 over 4 cells; the biased ones are off by more than a hundred standard errors in cell 0.
    assert np.abs(z("sum")).max() < z_bound(4)
    assert z("oc")[0] < -100
    assert z("oc+")[0] < -100


def test_spread_is_clipped_and_finite() -> None:
    assert spread(np.array([-0.5, 0.0, 0.5, 1.0, 2.0]), 5).tolist() == [0, 0, 0.25 * 5 / 4, 0, 0]
    assert spread(np.array([0.5]), 1).tolist() == [0.25]
    assert thirds(10).tolist() == whole_counts(np.ones(3), 10).tolist()


@pytest.mark.parametrize(("n_users", "total"), [(300, 60), (100, 20), (1000, 60)])
def test_oc_plus_is_not_worse_than_sum_with_few_users_and_large_budgets(n_users: int, total: int, seed: int) -> None:
    # A rare value that the first pass misses would get no spread between users and the weights of `oc`: 22 times the
    # error of `sum` at 300 users. 4,000 repetitions leave the ratio of two correlated errors within a few per cent.
    many, truth = simulate(attribute_plan(10, Fraction(total)), zipf(10), n_users, 4000, np.random.default_rng(seed))
    error = {m: np.mean((combine_linear(m, many).frequency - truth) ** 2) for m in ("sum", "oc", "oc+")}
    assert error["oc+"] < 1.05 * error["sum"]
    assert error["oc"] > 1.5 * error["sum"]


def test_the_first_pass_counts_everybody_where_there_is_no_noise() -> None:
    # Levels that disagree: at a large budget the pilot is that of all people, not of the clearest level's few.
    sizes, protocols = five_levels(3, 150, 200)
    frequencies = np.linspace(0.1, 0.5, 5)[:, None] * np.ones(3)
    pilot = first_pass(Levels(frequencies, sizes, protocols))
    assert pilot == pytest.approx(sizes @ frequencies / 200, rel=1e-6)
    # With hardly any budget noise decides, as for `oc`.
    small = five_levels(3, Fraction(1, 100), 200)[1]
    noise = noise_variances(small, np.full(3, 1 / 3))
    blind = (linear_weights("oc", sizes, noise, np.zeros(3)) * frequencies).sum(axis=0)
    assert first_pass(Levels(frequencies, sizes, small)) == pytest.approx(blind, rel=1e-3)


@pytest.mark.parametrize(("size", "n", "gamma"), [(3, 200, 1.0), (3, 200, 1.3), (7, 1000, 1.3)])
def test_estimates_at_large_budgets_lie_in_their_own_intervals(size: int, n: int, gamma: float, seed: int) -> None:
    # An `oc` pilot rests on the 1 % of the last level here: twice the error of `sum`, and outside in 17–32 % of runs.
    sizes, protocols = five_levels(size, 20, n)
    holders = int(whole_counts(zipf(size), n)[size // 2])
    levels, truth = one_cell(holders, sizes, protocols, 2000, np.random.default_rng(seed))
    found = answer("guarded", levels, Cover(gamma))
    alone = invert_table(hypothesis_table("guarded", sizes, protocols, Cover(gamma)), levels.frequencies)
    assert np.mean((found.low < alone.low) | (found.high > alone.high)) < 0.01
    errors = [
        np.mean((one - truth) ** 2) for one in (found.combined.frequency, combine_linear("sum", levels).frequency)
    ]
    # Correlated errors: their ratio scatters by a few per cent.
    assert errors[0] < 1.05 * errors[1]
