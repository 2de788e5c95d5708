"""pmpm's experiment on the census of counties: the check figures of means, and Theorem 5's bound."""

from __future__ import annotations

import csv
import gzip
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from pldp.numeric.budgets import BudgetClasses, Units, deal_at_random, sampled_attributes
from pldp.numeric.domain import Bounds, Codes, Floats, positions
from pldp.numeric.duchi import DuchiMany
from pldp.numeric.mechanism import noise
from pldp.numeric.predict import ClassMix, error_bound, predicted_mse, scaled_range
from pldp.numeric.simulate import Collection
from pldp.randomness import Keystream

SHARED = Path(__file__).parents[4] / "shared" / "data"
TOTAL = Fraction(10)
# methods.md section 3: rule for k, τ, then MSE of the scaled, the reports' and the inverse-variance mean. The last
# figure of τ = 1.5 stands at 0.00076 there; weights that know the spread between users reach 0.00069.
FIGURES = [
    ("mpm", "1", (0.0028, 0.0016, 0.0016)),
    ("floor", "9/8", (0.0031, 0.00071, 0.00070)),
    ("floor", "3/2", (0.0034, 0.00082, 0.00069)),
]
REPEATS = 25


@cache
def _census(year: int) -> Codes:
    """Numeric columns without gaps, county's identifier included as in the paper, bounds read off the data."""
    file = SHARED / f"acs{year}_county_data.csv.gz"
    if not file.exists():
        pytest.skip(f"the census of counties (shared/data/{file.name}) is not beside the repository")
    with gzip.open(file, "rt", encoding="utf-8") as source:
        header, *rows = csv.reader(source)
    columns = []
    for j in range(len(header)):
        try:
            numbers = np.array([float(row[j]) for row in rows])
        except ValueError:
            continue
        columns.append(Bounds(float(numbers.min()), float(numbers.max())).encode(numbers))
    return np.stack(columns, axis=1)


def _random_mix(collection: Collection) -> ClassMix:
    """Shares of the classes of one report if the units are dealt at random."""
    classes = collection.classes
    units = np.array(list(collection.mechanisms))
    if not classes.personal:
        return ClassMix(tuple(collection.mechanisms.values()), np.ones(1))
    # With one part fixed at u, the others are dealt in C(U − u + k − 2, k − 2) ways; with k = 2 in one.
    assert classes.sampled == 2
    return ClassMix(tuple(collection.mechanisms.values()), np.full(units.size, 1 / units.size))


def _predicted(method: str, collection: Collection, codes: Codes) -> float:
    x = positions(codes)
    n, d = x.shape
    mix = _random_mix(collection)
    return float(
        np.mean(
            [
                predicted_mse(method, mix, d, collection.classes.sampled, n, float((c**2).mean()), float(c.mean()))
                for c in x.T
            ]
        )
    )


@pytest.mark.parametrize(("rule", "tau", "figures"), FIGURES)
def test_check_figures_of_census_2017(rule: str, tau: str, figures: tuple[float, float, float], seed: int) -> None:
    codes = _census(2017)
    assert codes.shape == (3220, 34)
    k = sampled_attributes(rule, float(TOTAL), 34)
    classes = BudgetClasses(TOTAL, Fraction(tau), k, 8 * k)
    collection = Collection.of(classes, "pm", classes.by_weights)
    truth = positions(codes).mean(axis=0)
    stream = Keystream.seeded(seed, rule, tau)

    def deal(sampled: Codes) -> Units:
        return deal_at_random(classes, len(sampled), stream)

    errors: dict[str, list[float]] = {}
    for _ in range(REPEATS):
        for method, (means, _) in collection.simulate(codes, deal, stream).items():
            errors.setdefault(method, []).append(float(np.mean((means - truth) ** 2)))
    for (method, seen), figure in zip(errors.items(), figures, strict=True):
        expected = _predicted(method, collection, codes)
        # methods.md's figures are themselves simulated and rounded: 5 % of the prediction.
        assert expected == pytest.approx(figure, rel=0.05), method
        # Means of 34 attributes are nearly independent, but not equally variable, and scaled ones share who reported:
        # the standard error over repetitions says how far off the mean may be; Student's tail at 24 degrees is 6.5.
        error = np.std(seen, ddof=1) / np.sqrt(REPEATS)
        assert abs(np.mean(seen) - expected) < 6.5 * error, method


def test_personal_budgets_beat_duchi_in_many_dimensions(seed: int) -> None:
    # pmpm Figures 7 and 8.
    codes = _census(2017)
    truth = positions(codes).mean(axis=0)
    duchi = DuchiMany.for_budget(34, TOTAL)
    stream = Keystream.seeded(seed, "duchi")
    mse = np.mean([np.mean((duchi.estimate(duchi.perturb(codes, stream)) - truth) ** 2) for _ in range(5)])
    x = positions(codes)
    expected = np.mean((float(duchi.scale) ** 2 - (x**2).mean(axis=0)) / len(x))
    assert mse == pytest.approx(expected, rel=5.5 * np.sqrt(2 / (5 * 34)))
    assert mse > 3 * 0.0034


def _worst_error(collection: Collection, codes: Codes, truth: Floats, stream: Keystream) -> float:
    def deal(sampled: Codes) -> Units:
        return deal_at_random(collection.classes, len(sampled), stream)

    means, _ = collection.simulate(codes, deal, stream, ("scaled",))["scaled"]
    return float(np.abs(means - truth).max())


def test_theorem_5_holds_at_its_probability(seed: int) -> None:
    codes = _census(2015)
    n, d = codes.shape
    assert (n, d) == (3220, 32)
    classes = BudgetClasses(TOTAL, Fraction(3, 2), 2, 16)
    collection = Collection.of(classes, "pm", classes.by_weights)
    truth = positions(codes).mean(axis=0)
    stream = Keystream.seeded(seed, "theorem 5")
    worst = [_worst_error(collection, codes, truth, stream) for _ in range(60)]
    variance, largest = scaled_range(classes, "pm", d)
    for beta in (0.5, 0.2, 0.05):
        bound = error_bound(beta, variance, largest, d, n)
        assert sum(error > bound for error in worst) <= binom.isf(1e-6, len(worst), beta)
        # With the data's own variance the bound is sharper and holds still.
        m2 = float((positions(codes) ** 2).mean(axis=0).max())
        own = d / 2 * (noise(collection.mechanisms[0], m2) + m2)
        assert error_bound(beta, own, largest, d, n) < bound
        assert sum(e > error_bound(beta, own, largest, d, n) for e in worst) <= binom.isf(1e-6, len(worst), beta)
    # It is a bound worth having: within a factor of four of what happens.
    assert error_bound(0.5, variance, largest, d, n) < 4 * np.median(worst)


def test_the_bound_solves_bernsteins_equation() -> None:
    # pmpm Eq. A.7 with the union bound over d attributes.
    lam = error_bound(0.1, 3.0, 20.0, 10, 500)
    assert 2 * 10 * np.exp(-((500 * lam) ** 2) / (2 * 500 * 3.0 + 2 / 3 * 500 * lam * 21.0)) == pytest.approx(0.1)
