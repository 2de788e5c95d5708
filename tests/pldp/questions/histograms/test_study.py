from __future__ import annotations

import csv
import gzip
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from pldp.channels.protocol import Counts
from pldp.estimate.combine import CLASSIC
from pldp.estimate.dealing import as_stated
from pldp.estimate.inference import Recipe
from pldp.estimate.simulate import draw_levels, whole_counts
from pldp.questions.histograms.plan import AttributePlan
from pldp.questions.histograms.question import Histograms
from pldp.questions.histograms.study import AttributeStudy, MethodStudy, study_attribute
from tests.pldp.specs import histograms
from tests.pldp.world import ALPHA, attribute_plan, thirds, z_bound, zipf
from tests.slow import repeated

ADULT = Path(__file__).parents[5] / "shared" / "data" / "adult.data.gz"
ADULT_COLUMNS = {"workclass": 1, "education": 3, "marital-status": 5, "sex": 9, "native-country": 13}


def _level_counts(counts: Counts, sizes: Counts, seed: int) -> Counts:
    return draw_levels(counts, sizes, 1, np.random.default_rng(seed))[0]


def _study(
    attribute: AttributePlan, counts: Counts, repeats: int, seed: int, recipe: Recipe | None = None
) -> AttributeStudy:
    dealt = _level_counts(counts, thirds(int(counts.sum())), seed)
    return study_attribute(attribute, recipe or Recipe(), dealt, repeats, np.random.default_rng(seed))


def _by_name(study: AttributeStudy) -> dict[str, MethodStudy]:
    return {method.method: method for method in study.methods}


def _check_promises(study: AttributeStudy, size: int, attributes: int = 1) -> None:
    """Error as predicted in every cell, no bias, coverage as stated; α = 1e-6 over cells, methods and attributes.

    A root mean square of R nearly normal errors has a relative error of 1/√(2R). Cells that one user in thousands
    holds are skewed and `oc+` estimates its weights: a percent more.
    """
    bound = z_bound(3 * size * attributes)
    methods = _by_name(study)
    for name in CLASSIC:
        method = methods[name]
        assert method.predicted is not None
        assert method.coverage is not None
        off = np.abs(method.rmse / method.predicted - 1).max()
        assert off < bound / np.sqrt(2 * method.repeats) + 0.01, (name, off)
        z = np.abs(method.bias / method.predicted).max() * np.sqrt(method.repeats)
        assert z < bound, (name, z)
        # Cells share the sampling of users, at worst all of them alike: the repetitions alone bound the coverage.
        tolerance = z_bound(3 * attributes) * np.sqrt(0.05 * 0.95 / method.repeats) + 0.002
        assert method.coverage == pytest.approx(0.95, abs=tolerance)


@pytest.mark.parametrize("budget", [Fraction(1), Fraction(6), Fraction(20)])
def test_the_plan_promises_what_the_study_finds(budget: Fraction, seed: int) -> None:
    counts = whole_counts(zipf(12), 20_000)
    _check_promises(_study(attribute_plan(12, budget), counts, 3000, seed), 12)


def test_a_plan_ten_percent_off_is_caught(seed: int) -> None:
    # The twin: reports drawn with 1.1 times the budget have an error 9 % smaller than the plan says.
    counts = whole_counts(zipf(12), 20_000)
    drawn, assumed = attribute_plan(12, Fraction("1.1")), attribute_plan(12, Fraction(1))
    found = _by_name(_study(drawn, counts, 3000, seed))["oc+"]
    promised = _by_name(_study(assumed, counts, 10, seed))["oc+"].predicted
    assert promised is not None
    # Over all cells, 12 times as many errors.
    ratio = np.sqrt(np.square(found.rmse).sum() / np.square(promised).sum())
    assert abs(ratio - 1) > z_bound() / np.sqrt(2 * 12 * 3000) + 0.01


def _adult() -> tuple[Histograms, list[Counts]]:
    if not ADULT.exists():
        pytest.skip("the Adult data set (shared/data/adult.data.gz) is not beside the repository")
    with gzip.open(ADULT, "rt", newline="") as file:
        rows = [row for row in csv.reader(file, skipinitialspace=True) if row]
    attributes, counts = [], []
    for name, column in ADULT_COLUMNS.items():
        values, numbers = np.unique([row[column] for row in rows], return_counts=True)
        attributes.append({"name": name, "values": values.tolist()})
        counts.append(numbers.astype(np.int64))
    return histograms(attributes=attributes, budget={"total": 6}), counts


def test_the_plan_promises_what_the_study_finds_on_adult(seed: int) -> None:
    plan, counts = _adult()
    assert [int(c.sum()) for c in counts] == [32_561] * 5
    assert [c.size for c in counts] == [9, 16, 7, 2, 42]
    for attribute, true in zip(plan.attributes, counts, strict=True):
        _check_promises(_study(attribute, true, repeated(500, 1500), seed), true.size, attributes=5)


def test_gates_fire_at_their_rates(seed: int) -> None:
    counts = whole_counts(zipf(10), 30_000)
    study = _study(attribute_plan(10, Fraction(3)), counts, 4000, seed, Recipe(alpha=0.01))
    # Binomial, α = 1e-6 a side.
    for rate in (study.unbiasedness_rate, study.disagreement_rate):
        fired = round(4000 * rate)
        assert binom.sf(fired - 1, 4000, 0.01) > ALPHA
        assert binom.cdf(fired, 4000, 0.01) > ALPHA


def test_kept_levels_show_the_bias_that_redealt_ones_hide(seed: int) -> None:
    attribute = attribute_plan(4, Fraction(6))
    dealt = np.array([[2400, 300, 200, 100], [1500, 500, 500, 500], [300, 900, 900, 900]])
    kept = study_attribute(attribute, Recipe(), dealt, 1000, np.random.default_rng(seed), deal=as_stated(dealt))
    redealt = study_attribute(attribute, Recipe(), dealt, 1000, np.random.default_rng(seed))
    assert kept.disagreement_rate > 0.99
    assert kept.unbiasedness_rate > 0.99
    assert redealt.disagreement_rate < 0.02
    methods = _by_name(kept)
    for name, biased in (("sum", False), ("oc", True), ("oc+", True)):
        method = methods[name]
        assert method.predicted is not None
        z = np.abs(method.bias / method.predicted).max() * np.sqrt(1000)
        assert (z > z_bound(12)) == biased, (name, z)


def test_methods_rank_as_they_should(seed: int) -> None:
    # With the truth as reference, as in the paper: the linear program has the smallest maximum, then `op`.
    study = _study(attribute_plan(10, Fraction(3)), whole_counts(zipf(10), 10_000), 1000, seed)
    methods = _by_name(study)
    op, exact = methods["op, true reference"], methods["op-exact, true reference"]
    assert set(methods) == {
        *("sum", "oc", "oc+", "guarded", "guarded, norm-sub", op.method, exact.method),
        *("rcf", "apldp", "uniform, strictest", "uniform, weakest"),
    }
    assert exact.repeats == 200
    assert exact.maximum_error < op.maximum_error < methods["oc"].maximum_error
    assert methods["oc"].maximum_error < methods["sum"].maximum_error
    assert methods["guarded, norm-sub"].nse < methods["guarded"].nse < methods["sum"].nse
    assert op.predicted is None
    assert op.coverage is None


def test_normalised_error_is_in_counts(seed: int) -> None:
    # mpldp: NSE = (Σ squared error of counts) / n = n Σ squared error of shares.
    study = _study(attribute_plan(5, Fraction(2)), whole_counts(zipf(5), 5000), 200, seed)
    for method in study.methods:
        assert method.nse == pytest.approx(5000 * float(np.square(method.rmse).sum()))


def test_a_study_repeats() -> None:
    counts = whole_counts(zipf(5), 5000)
    one, other = (_study(attribute_plan(5, Fraction(2)), counts, 50, 7) for _ in range(2))
    for first, second in zip(one.methods, other.methods, strict=True):
        assert np.array_equal(first.rmse, second.rmse)


def test_ten_thousand_repetitions_take_seconds() -> None:
    counts = whole_counts(zipf(16), 100_000)
    start = time.process_time()
    repeats = repeated(2_000, 10_000)
    study = _study(attribute_plan(16, Fraction(3)), counts, repeats, 0)
    seconds = time.process_time() - start
    print(f"{repeats:,} repetitions of a histogram of 16 values: {seconds:.1f} s")
    assert study.methods[0].repeats == repeats
    assert seconds < 20 * repeats / 10_000
