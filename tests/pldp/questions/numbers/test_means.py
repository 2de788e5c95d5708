from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom, chi2

from pldp.channels.numeric.domain import CODES, Bounds, Codes, positions
from pldp.channels.numeric.duchi import Duchi
from pldp.channels.numeric.laplace import Laplace
from pldp.channels.numeric.mechanism import NumericMechanism, Tally
from pldp.channels.numeric.window import PM
from pldp.channels.randomness import Keystream
from pldp.estimate.distributions import t
from pldp.papers.pmpm.simulate import Collection
from pldp.questions.numbers.budgets import BudgetClasses, Units, deal_by_importance, sampled_attributes
from pldp.questions.numbers.choice import MECHANISMS, class_mix, predicted_mse
from pldp.questions.numbers.means import ESTIMATORS, Groups, Mean, agreement, estimate_groups
from tests.pldp.world import ALPHA, z_bound

SQUARE = Bounds(-1, 1)


def _skewed(n: int, d: int, seed: int) -> Codes:
    """Columns between far left and far right, none symmetric."""
    rng = np.random.default_rng(seed)
    return SQUARE.encode(2 * rng.beta(np.linspace(0.5, 3, d), np.linspace(4, 1, d), (n, d)) - 1)


def _coverage(
    mechanism: str, n: int, d: int, epsilon: str, tau: str, k: int, repeats: int, seed: int
) -> dict[str, tuple[float, float, float]]:
    """By estimator: share of intervals that hold the truth, z of the mean error, mean squared z-score."""
    codes = _skewed(n, d, seed)
    truth = positions(codes).mean(axis=0)
    classes = BudgetClasses.for_importance(Fraction(epsilon), Fraction(tau), k)
    collection = Collection.of(classes, mechanism, classes.by_importance)
    rng = np.random.default_rng(seed)
    stream = Keystream.seeded(seed, mechanism, n)
    scores: dict[str, list[np.ndarray]] = {method: [] for method in ESTIMATORS}

    def deal(sampled: Codes) -> np.ndarray:
        # Blind choices: what matters to a user says nothing about the value.
        return deal_by_importance(classes, rng.random(sampled.shape) < 0.4)

    for _ in range(repeats):
        for method, (means, errors) in collection.simulate(codes, deal, stream).items():
            scores[method].append((means - truth) / errors)
    result = {}
    for method, rows in scores.items():
        z = np.array(rows)
        result[method] = (float((np.abs(z) < 1.96).mean()), float(z.mean() * np.sqrt(z.size)), float((z**2).mean()))
    return result


@pytest.mark.parametrize("mechanism", ["pm", "hm", "duchi"])
@pytest.mark.parametrize(
    ("n", "repeats"), [(1000, 120), (10_000, 40), pytest.param(1_000_000, 40, marks=pytest.mark.slow)]
)
def test_intervals_cover_and_estimates_are_unbiased(mechanism: str, n: int, repeats: int, seed: int) -> None:
    # 5 attributes a repetition. k = 2, ε = 6, τ = 1.5: budgets 2, 3 and 4. Attributes share users, but their noise and
    # sampling are independent but for who is left out, so counts of covering intervals are nearly binomial.
    results = _coverage(mechanism, n, 5, "6", "1.5", 2, repeats, seed)
    size = 5 * repeats
    # Student's quantile at 400 reports is 1.966: 95.0 % against 1.96. Duchi's errors are upper bounds: S² is unknown.
    low = binom.ppf(1e-6 / 9, size, 0.947) / size
    high = 1.0 if mechanism == "duchi" else binom.isf(1e-6 / 9, size, 0.953) / size
    for method, (covered, bias, square) in results.items():
        assert low <= covered <= high, (method, covered)
        assert abs(bias) < z_bound(9) * 1.05, (method, bias)
        # Mean of `size` squares: sd √(2/size), a little more for heavier tails.
        assert square < 1 + 5.5 * np.sqrt(2.2 / size), (method, square)
        assert mechanism == "duchi" or square > 1 - 5.5 * np.sqrt(2.2 / size), (method, square)


def test_everybody_reporting_leaves_only_noise(seed: int) -> None:
    # k = d = 1 and a large budget: no sampling of users, so errors are far below the spread between users.
    results = _coverage("pm", 1000, 1, "12", "1", 1, 300, seed)
    for method, (covered, bias, square) in results.items():
        assert binom.ppf(1e-6, 300, 0.945) / 300 <= covered <= binom.isf(1e-6, 300, 0.955) / 300, method
        assert abs(bias) < z_bound(3) * 1.05
        assert abs(square - 1) < 5.5 * np.sqrt(2 / 300)


def _estimate_mean(
    method: str,
    mechanisms: Sequence[NumericMechanism],
    tallies: Sequence[Tally],
    n_users: int,
    sampling: float,
    bounds: Bounds,
    confidence: float = 0.95,
    population: bool = False,
) -> Mean:
    """The mean over the n users, `sampling` = k/d; with `population` the error is that for people behind the users."""
    groups = Groups.of(mechanisms, tallies)
    m = groups.reports
    if m == 0:
        return Mean(method, math.nan, math.inf, bounds.lower, bounds.upper, 0)
    mean, variance, between = estimate_groups(method, groups, n_users, sampling)
    if population:
        variance += between / n_users
    error = math.sqrt(variance) * bounds.half_width
    # Student's, because with few reports the variance is itself a guess.
    half = float(t.ppf(0.5 + confidence / 2, max(m - 1, 1))) * error
    centre = bounds.decode(mean)
    low, high = (float(np.clip(end, bounds.lower, bounds.upper)) for end in (centre - half, centre + half))
    return Mean(method, centre, error, low, high, m)


def _reports(mechanism: NumericMechanism, codes: Codes, seed: int) -> Tally:
    return mechanism.tally(mechanism.perturb(codes, Keystream.seeded(seed, float(mechanism.base).hex())))


def test_users_with_budgets_half_and_four(seed: int) -> None:
    # methods.md: inverse variance 16 times smaller. Uniform values, everybody reports, half of them at each budget.
    n, repeats = 2000, 150
    low, high = PM.for_budget(Fraction(1, 2)), PM.for_budget(Fraction(4))
    rng = np.random.default_rng(seed)
    codes = rng.permutation(np.linspace(0, CODES, n).astype(np.uint32))
    truth = positions(codes).mean()
    errors: dict[str, list[float]] = {"reports": [], "inverse-variance": []}
    for repeat in range(repeats):
        codes = rng.permutation(codes)
        key = 1000 * seed + repeat
        tallies = [_reports(low, codes[: n // 2], key), _reports(high, codes[n // 2 :], key)]
        for method, seen in errors.items():
            seen.append(_estimate_mean(method, [low, high], tallies, n, 1.0, SQUARE).mean - truth)
    mse = {method: float(np.square(seen).mean()) for method, seen in errors.items()}
    # Ratio of two mean squares of 150 each: log sd √(2 · 2/150) = 0.16; five of them.
    assert np.log(mse["reports"] / mse["inverse-variance"] / 16) == pytest.approx(0, abs=0.82)
    noise = [float(m.base) + (float(m.gain) - 1) / 3 for m in (low, high)]
    predicted = {
        "reports": sum(noise) / 2,
        "inverse-variance": 2 / sum(1 / (v + 1 / 3) for v in noise) - 1 / 3,
    }
    assert predicted["reports"] / predicted["inverse-variance"] == pytest.approx(16, abs=0.5)
    for method, expected in predicted.items():
        # A mean of squared normals is χ²/150.
        square = mse[method] * n / expected * repeats
        assert chi2.ppf(ALPHA / 4, repeats) < square < chi2.isf(ALPHA / 4, repeats)


def test_a_wrong_budget_is_caught(seed: int) -> None:
    # Reports of ε = 2.2 read as ε = 2: far outside the interval at x = 0.9, whatever the estimator.
    n = 40_000
    codes = SQUARE.encode(np.full(n, 0.9))
    tally = _reports(PM.for_budget(Fraction("2.2")), codes, seed)
    right = _reports(PM.for_budget(Fraction(2)), codes, seed)
    for method in ESTIMATORS:
        for seen, honest in ((right, True), (tally, False)):
            mean = _estimate_mean(method, [PM.for_budget(Fraction(2))], [seen], n, 1.0, SQUARE)
            assert (abs(mean.mean - 0.9) / mean.standard_error < z_bound(6)) == honest


def test_units_of_the_attribute_and_the_population(seed: int) -> None:
    bounds, n = Bounds(10, 50), 5000
    mechanism = PM.for_budget(Fraction(6))
    tally = _reports(mechanism, bounds.encode(np.linspace(10, 50, n)), seed)
    inside = _estimate_mean("reports", [mechanism], [tally], n, 1.0, SQUARE)
    mean = _estimate_mean("reports", [mechanism], [tally], n, 1.0, bounds)
    assert mean.mean == pytest.approx(30 + 20 * inside.mean)
    assert mean.standard_error == pytest.approx(20 * inside.standard_error)
    assert mean.ci_low < mean.mean < mean.ci_high
    beyond = _estimate_mean("reports", [mechanism], [tally], n, 1.0, bounds, population=True)
    # Between people behind the users: S²/n on top, S² = 400/3.
    assert beyond.standard_error**2 - mean.standard_error**2 == pytest.approx(400 / 3 / n, rel=0.15)
    assert mean.n_reports == n


def test_few_reports_still_have_an_error() -> None:
    for mechanism in (PM.for_budget(Fraction(1)), Duchi.for_budget(Fraction(1)), Laplace.for_budget(Fraction(1))):
        tallies = [_reports(mechanism, SQUARE.encode([0.5] * n), 1) for n in (0, 1, 2)]
        for method in ESTIMATORS:
            nothing, one, _ = (_estimate_mean(method, [mechanism], [t], 10, 0.2, SQUARE) for t in tallies)
            assert np.isnan(nothing.mean)
            assert np.isinf(nothing.standard_error)
            assert (nothing.ci_low, nothing.ci_high) == (-1, 1)
            assert one.standard_error > 0
    with pytest.raises(ValueError, match="is not one of"):
        _estimate_mean("median", [mechanism], [tallies[2]], 10, 0.2, SQUARE)


def test_a_constant_column_at_a_huge_budget() -> None:
    mechanism = PM.for_budget(Fraction(40))
    tally = _reports(mechanism, SQUARE.encode(np.full(100, 0.25)), 3)
    for method in ESTIMATORS:
        mean = _estimate_mean(method, [mechanism], [tally], 100, 1.0, SQUARE)
        assert mean.mean == pytest.approx(0.25, abs=1e-3)
        assert mean.standard_error < 1e-2


def test_agreement_tells_blind_choices_from_those_that_follow_the_value(seed: int) -> None:
    mechanisms = [PM.for_budget(Fraction(budget)) for budget in (1, 2, 4)]
    rng = np.random.default_rng(seed)
    x = np.sort(2 * rng.beta(1, 3, 30_000) - 1)

    def p_value(values: np.ndarray, label: int) -> float:
        parts = np.array_split(SQUARE.encode(values), 3)
        tallies = [_reports(m, part, 10 * seed + label) for m, part in zip(mechanisms, parts, strict=True)]
        return agreement(mechanisms, tallies, values.size)

    assert p_value(x, 0) < 1e-12
    blind = [p_value(rng.permutation(x), label) for label in range(1, 31)]
    assert min(blind) > 1e-6 / 30
    # Mean of 30 uniforms: sd 1/√360.
    assert abs(np.mean(blind) - 0.5) < z_bound() / np.sqrt(360)
    assert agreement(mechanisms[:1], [_reports(mechanisms[0], SQUARE.encode(x), 1)], x.size) == 1.0


def _alike(classes: BudgetClasses, sampled: Codes) -> Units:
    return deal_by_importance(classes, np.zeros(sampled.shape, dtype=np.bool_))


def test_the_optimal_number_of_attributes_measures_no_worse(seed: int) -> None:
    # ε = 7, d = 8: floor samples 1, rounding and the optimum 2; predicted loss of the floor 40 %.
    n, d, epsilon = 2000, 8, 7
    codes = SQUARE.encode(np.random.default_rng(seed).uniform(-1, 1, (n, d)))
    truth = positions(codes).mean(axis=0)
    measured, predicted = {}, {}
    for rule in ("optimal", "round", "floor"):
        k = sampled_attributes(rule, epsilon, d)
        classes = BudgetClasses.for_importance(Fraction(epsilon), Fraction(1), k)
        collection = Collection.of(classes, "pm", classes.by_importance)
        stream = Keystream.seeded(seed, rule)
        squares = []
        for _ in range(150):
            means, _ = collection.simulate(codes, partial(_alike, classes), stream, ("scaled",))["scaled"]
            squares.append(np.mean((means - truth) ** 2))
        measured[rule] = float(np.mean(squares))
        predicted[rule] = predicted_mse("scaled", class_mix(classes, "pm", 0.5), d, k, n, 1 / 3)
        # 1200 nearly independent squares: relative sd √(2/1200) = 0.041.
        assert measured[rule] / predicted[rule] == pytest.approx(1, abs=5.5 * np.sqrt(2 / 1200))
    assert predicted["optimal"] <= min(predicted.values())
    assert predicted["floor"] / predicted["optimal"] == pytest.approx(1.397, abs=0.005)
    assert measured["floor"] > measured["optimal"]
    assert measured["round"] >= measured["optimal"] * (1 - 5.5 * np.sqrt(4 / 1200))


def test_names_are_the_plans() -> None:
    for name, kind in MECHANISMS.items():
        assert kind.name == name
        mechanism = kind.for_budget(Fraction(2))
        parameters = asdict(mechanism)  # type: ignore[call-overload]
        assert all(type(value) is int for value in parameters.values())
        assert kind(**parameters) == mechanism
