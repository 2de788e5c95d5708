from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.signal import fftconvolve

from pldp.channels.randomness import Keystream
from pldp.papers.multiupp.dense import dense_catalogue
from pldp.questions.aggregates.budgets import TICK_BITS, allocate, to_ticks
from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.objectives import MAE, Floats
from pldp.questions.aggregates.release import Mechanism
from pldp.questions.aggregates.totals import Sums, Totals, estimate_totals
from tests.pldp.questions.aggregates.world import catalogue, dirichlet, movie_like
from tests.pldp.world import z_bound


def _world(n_users: int) -> tuple[Mechanism, Units, Units]:
    """Ten profiles over eighteen attributes; users' aggregates are skewed."""
    cat = movie_like()
    budgets = np.maximum(dirichlet(10, 18, 0), 1 << 33)
    mechanism = Mechanism(cat, allocate(cat, budgets, to_ticks(Fraction("0.4")), MAE).ticks)
    rng = np.random.default_rng(1)
    truth = rng.poisson(40 / np.arange(1, 19), (n_users, 18)).astype(np.int64)
    return mechanism, truth, rng.integers(0, 10, n_users)


def _scores(drawing: Mechanism, assuming: Mechanism, truth: Units, profiles: Units, seed: int) -> Floats:
    reports = drawing.perturb(truth, profiles, Keystream.seeded(seed, "totals"))
    totals = estimate_totals(Sums.of(reports, profiles, 10), assuming)
    return (totals.total - truth.sum(axis=0)) / totals.standard_error


def test_totals_are_unbiased_in_every_attribute(seed: int) -> None:
    mechanism, truth, profiles = _world(20_000)
    assert np.abs(_scores(mechanism, mechanism, truth, profiles, seed)).max() < z_bound(18)


def test_standard_errors_are_right_and_ten_percent_off_is_caught(seed: int) -> None:
    # Mean of the squared z-scores of 18 attributes in 700 groups of 100 users. A squared score has variance 2 if normal
    # and at most 5 if one user's Laplace noise rules the group: a standard error of 0.020. 1.1× the budget moves it by
    # 1/1.21 − 1 = −0.17.
    mechanism, truth, profiles = _world(70_000)
    wrong = Mechanism(mechanism.catalogue, mechanism.ticks * 11 // 10)
    users = np.stack([np.bincount(part, minlength=10) for part in profiles.reshape(700, 100)])

    def distance(drawing: Mechanism) -> float:
        noise = drawing.perturb(truth, profiles, Keystream.seeded(seed, "errors")) - truth
        squares = np.square(noise.reshape(700, 100, 18).sum(axis=1)) / (users @ mechanism.variance)
        return float((squares.mean() - 1) / np.sqrt(5 / squares.size))

    assert abs(distance(mechanism)) < z_bound()
    assert distance(wrong) < -z_bound()


@settings(max_examples=50)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(0, 2**32))
def test_sums_add_up_over_any_partition(parts: list[int], key: int) -> None:
    rng = np.random.default_rng(key)
    n = sum(parts)
    reports, profiles = rng.integers(-(2**50), 2**50, (n, 3)), rng.integers(0, 4, n)
    edges = np.cumsum([0, *parts])
    pieces = [Sums.of(reports[a:b], profiles[a:b], 4) for a, b in itertools.pairwise(edges)]
    whole = pieces[0]
    for piece in pieces[1:]:
        whole = whole + piece
    assert np.array_equal(whole.reports, reports.sum(axis=0))
    assert np.array_equal(whole.users, np.bincount(profiles, minlength=4))


def test_totals_are_in_the_catalogues_own_units() -> None:
    cat = dense_catalogue(["a"], np.array([[0.5], [1.0]]), Fraction(1, 2))
    mechanism = Mechanism(cat, np.array([[1 << 39]]))
    totals = estimate_totals(Sums(np.array([30]), np.array([100])), mechanism)
    assert totals.total.tolist() == [15.0]
    assert totals.standard_error == pytest.approx(np.sqrt(100 * mechanism.variance[0]) / 2)
    assert totals.n_users == 100


def test_intervals_cover_as_stated(seed: int) -> None:
    # 18 attributes × 300 groups of 50 users. 95 % nominal; Laplace tails may cost 1.3 points where one profile rules,
    # and three standard errors of a share of 5,400 independent intervals are 0.9 points.
    mechanism, truth, profiles = _world(300 * 50)
    reports = mechanism.perturb(truth, profiles, Keystream.seeded(seed, "cover"))
    covered = []
    for part in np.array_split(np.arange(len(truth)), 300):
        totals = estimate_totals(Sums.of(reports[part], profiles[part], 10), mechanism)
        true = truth[part].sum(axis=0)
        covered.append((totals.ci_low <= true) & (true <= totals.ci_high))
    assert 0.928 < np.mean(covered) < 0.965


def test_shares_have_the_error_of_a_quotient(seed: int) -> None:
    total, error = np.array([800.0, 150.0, 50.0]), np.array([9.0, 4.0, 12.0])
    share, stated = Totals(total, error, total, total, 10).shares()
    assert share.tolist() == [0.8, 0.15, 0.05]
    # By simulation, 200,000 times: 0.3 % of a standard deviation by chance, and the second order adds 0.02 %.
    drawn = total + error * np.random.default_rng(seed).standard_normal((200_000, 3))
    assert (drawn / drawn.sum(axis=1, keepdims=True)).std(axis=0) == pytest.approx(stated, rel=0.01)


def test_shares_of_what_may_be_nothing_are_not_numbers() -> None:
    total, error = np.array([5.0, 1.0]), np.array([3.0, 3.0])
    share, stated = Totals(total, error, total, total, 10).shares()
    assert np.isnan(share).all()
    assert np.isnan(stated).all()


def test_counts_are_bounded_item_by_item() -> None:
    """With the cap in the catalogue, an item with all its occurrences is what moves the aggregates."""
    cat = catalogue([[1, 1], [0, 1]])
    everything, nothing = np.minimum(np.array([9, 0]), 3), np.zeros(2, dtype=np.int64)
    rows = np.array([[1, 1], [0, 1]])
    assert np.all((everything - nothing) @ rows <= cat.capped(3).rows.max(axis=0))
    with pytest.raises(ValueError, match="must lie in 1 …"):
        cat.capped(0)


def test_bad_confidence_is_refused() -> None:
    mechanism = Mechanism(catalogue([[1]]), np.array([[1 << 39]]))
    for confidence in (0, 1, 95):
        with pytest.raises(ValueError, match="strictly between 0 and 1"):
            estimate_totals(Sums(np.array([30]), np.array([100])), mechanism, confidence)


@pytest.mark.parametrize("x", [0.05, 0.4, 1.0, 2.3, 5.0, 7.0, 12.0])
@pytest.mark.parametrize("users", [1, 2, 20, 140, 5000])
def test_intervals_hold_where_noise_is_a_few_units_and_where_one_report_rules(x: float, users: int) -> None:
    """By the law of the sum, convolved by repeated squaring: no other code. Nearly no noise needs no reach at all."""
    mechanism = Mechanism(catalogue([[1]]), np.array([[round(x * 2**TICK_BITS)]]))
    totals = estimate_totals(Sums(np.array([0]), np.array([users])), mechanism)
    if totals.standard_error[0] > 100:
        return  # as many units as people: the normal law
    half = 1 << 12
    z = np.abs(np.arange(-half, half + 1))
    one = np.tanh(x / 2) * np.exp(-x * z)
    law, power = np.eye(1, z.size, half)[0], one
    for bit in range(users.bit_length()):
        law = fftconvolve(law, power, mode="same") if users >> bit & 1 else law
        power = fftconvolve(power, power, mode="same")
    held = float(law[z <= totals.ci_high[0] + 1e-9].sum())
    assert held > 0.9499
    if totals.standard_error[0] > 5:
        assert held < 0.97
