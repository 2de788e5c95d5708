"""Intervals of means and quantiles where few people, bounds, heaps and choices by value are hard on them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import binom

from pldp.channels.numeric.window import SquareWave
from pldp.channels.randomness import Keystream
from pldp.questions.numbers.distribution import estimate_quantiles
from pldp.questions.numbers.estimate import estimate_means
from pldp.questions.numbers.means import Groups, Pooled, inverse_variance, mean_interval, unseen
from pldp.questions.numbers.plan import DISTRIBUTION
from pldp.questions.numbers.question import Numbers
from pldp.questions.numbers.ramps import Class, Design, estimate_ramps, law, quantile_bins, ramp
from pldp.questions.numbers.reports import count_numbers, report_numbers
from tests.pldp.specs import numbers_of, planned
from tests.pldp.world import z_bound

Z = 1.96


def _groups(n: list[int], means: np.ndarray, squares: np.ndarray, base: np.ndarray) -> Groups:
    sizes = np.array(n, dtype=np.float64)
    return Groups(sizes, means * sizes, squares * sizes, np.zeros(len(n)), base, np.sqrt(base))


@pytest.mark.parametrize("share", [0.02, 0.5, 0.98])
def test_means_cover_what_they_say_near_the_bounds_too(share: float, seed: int) -> None:
    """People at −1 or +1 report ±c, unbiased, with E[y²] = c²: gain 0, base c². Tolerance doubled for steps."""
    repeats, users = 2000, 2000
    rng = np.random.default_rng(seed)
    scale, weights, truth = np.array([4.0, 2.0]), np.array([0.5, 0.5]), 2 * share - 1
    high = int(share * users)
    first = rng.hypergeometric(high, users - high, 1000, size=repeats)
    means = []
    for c, ones in zip(scale, (first, high - first), strict=True):
        up = rng.binomial(ones, 0.5 + 0.5 / c) + rng.binomial(1000 - ones, 0.5 - 0.5 / c)
        means.append(c * (2 * up / 1000 - 1))

    def covered(base: np.ndarray) -> float:
        held = 0
        for both in np.stack(means, axis=-1):
            groups = _groups([1000, 1000], both, base, base)
            pooled = Pooled(float(both @ weights), 0.0, 0.0, 0.0, 1.0, weights)
            low, top = mean_interval(groups, pooled, users, Z)
            assert -1 <= low <= top <= 1
            held += low <= truth <= top
        return held / repeats

    tolerance = 2 * z_bound(3) * np.sqrt(0.95 * 0.05 / repeats)
    assert 0.95 - tolerance < covered(scale**2) < 0.98
    assert covered(scale**2 / 2) < 0.95 - tolerance, "half of the noise is too little"


def test_the_spread_of_people_at_both_bounds_is_exact_and_none_is_larger() -> None:
    for mean in (-1.0, -0.9, 0.0, 0.7):
        for hypothesis in np.linspace(-1, 1, 9):
            found = unseen(1 - mean**2, mean, float(hypothesis))
            assert found == pytest.approx(1 - hypothesis**2) or found < 1 - hypothesis**2
    assert unseen(0.0, -1.0, -0.9) == pytest.approx(1 - 0.81), "all seen at −1, the rest must be at 1"
    assert unseen(0.04, 0.1, 0.1) == pytest.approx(0.04)


@pytest.mark.parametrize(("share", "n"), [(0.005, 200), (0.02, 300)])
def test_few_people_at_a_bound_are_reckoned_with(share: float, n: int, seed: int) -> None:
    """Three classes, the clearest a fifth of all and nearly without noise. Weights made for the spread that was seen
    lean on it and miss; coverage of at least 94 % at a false alarm of 1e-6, and no longer than by equal weights."""
    repeats = 1500
    rng = np.random.default_rng(seed)
    sizes = np.array([n * 5 // 10, n * 3 // 10, n - n * 5 // 10 - n * 3 // 10])
    noise = np.array([0.3, 0.05, 1e-4])
    held, length, plain = 0, 0.0, 0.0
    for _ in range(repeats):
        x = np.where(rng.random(n) < share, 1.0, -1.0)
        rng.shuffle(x)
        parts = np.split(x, np.cumsum(sizes)[:-1])
        y = [part + rng.normal(0, np.sqrt(v), part.size) for part, v in zip(parts, noise, strict=True)]
        groups = Groups(
            n=sizes.astype(float),
            sums=np.array([one.sum() for one in y]),
            squares=np.array([(one**2).sum() for one in y]),
            gain=np.ones(3),
            base=noise,
            largest=np.full(3, 3.0),
        )
        pooled = inverse_variance(groups, n)
        low, high = mean_interval(groups, pooled, n, Z)
        held += low - 1e-9 <= x.mean() <= high + 1e-9
        length += high - low
        plain += 2 * Z * np.sqrt((sizes * noise).sum()) / n
    assert held >= binom.ppf(1e-6, repeats, 0.94), held / repeats
    assert length <= 1.05 * plain


@pytest.mark.parametrize("epsilon", [1, 3, 8])
def test_the_mean_of_a_sum_lies_between_two_steps_but_for_its_excess(epsilon: int) -> None:
    """At places that no edge is near: the law of the realised integers, one by one."""
    resolution = 32
    mechanism = SquareWave.for_budget(Fraction(epsilon))
    pilot = np.full(resolution + 1, 1 / (resolution + 1))
    one = Class(0, mechanism, np.rint(1000 * law(mechanism, resolution) @ pilot).astype(np.int64))
    for independent in (True, False):
        design = Design.of([one], [one.n], resolution, pilot, independent=independent)
        for length in (1, 4):
            _, seen = design.ramps(length, None)
            wanted = ramp(resolution, length)
            sums = one.n * (wanted @ design.solved[0])
            at_edges = sums @ law(mechanism, resolution)
            assert at_edges == pytest.approx(wanted, abs=1e-4)
            anywhere = sums @ law(mechanism, resolution, 16)
            place = np.arange(resolution * 16 + 1) / 16
            ends = np.arange(len(wanted))[:, None]
            off = np.maximum((place <= ends - length) - anywhere, anywhere - (place < ends)).max(axis=1)
            # A bend between the places looked at adds at most what four of them can.
            assert (off <= seen.excess * 1.25 + 0.02).all(), (off - seen.excess).max()


def test_certain_ramps_give_the_bins_around_the_quantile() -> None:
    """A million reports nearly without noise: everybody at 0.3 of the range, of 32 bins in the tenth."""
    resolution, mechanism = 32, SquareWave.for_budget(Fraction(12))
    place = round(0.3 * mechanism.steps)
    ends = np.minimum(np.arange(0, mechanism.cells + 1024, 1024), mechanism.cells).astype(float)
    chances = np.diff(mechanism.below(ends, np.array(float(place))))
    pilot = np.full(resolution + 1, 1e-3)
    pilot[9:11] += 0.4
    one = Class(0, mechanism, np.rint(1e6 * chances).astype(np.int64))
    design = Design.of([one], [one.n], resolution, pilot / pilot.sum(), independent=True)
    low, high = quantile_bins(estimate_ramps(design, one.n), 0.5, resolution, Z)
    assert low / resolution <= 0.3 <= high / resolution
    assert high - low <= 4


def _collected(dependence: float | str, epsilon: int) -> Numbers:
    return numbers_of(
        planned(
            attributes=[{"name": "x", "kind": "number", "bounds": [0, 100], "quantiles": [0.1, 0.5, 0.9]}],
            budget={"total": epsilon},
            levels={"choices": {"high": "1/6", "low": 1}, "column": "level", "dependence": dependence},
        )
    )


def test_a_ramp_has_at_least_the_error_that_is_to_be_expected() -> None:
    """Of 40 reports none lies where few do, and where each counts for much: of what was seen alone the error of the
    first ramp is a third."""
    resolution = 32
    mechanism = SquareWave.for_budget(Fraction(2))
    pilot = np.full(resolution + 1, 1 / (resolution + 1))
    law_of_all = law(mechanism, resolution) @ pilot
    counts = np.where(np.arange(law_of_all.size) >= law_of_all.size // 2, np.rint(80 * law_of_all), 0).astype(np.int64)
    design = Design.of([Class(0, mechanism, counts)], [int(counts.sum())], resolution, pilot, independent=False)
    expected, seen = design.ramps(1, None)
    _, alone = design._moments(ramp(resolution, 1), [ramp(resolution, 1) @ design.solved[0]], [counts], None)
    assert seen.standard_error == pytest.approx(np.maximum(alone, expected.standard_error))
    assert (alone < expected.standard_error / 3).any()
    assert (alone > expected.standard_error).any()


@pytest.mark.parametrize(("dependence", "strict"), [("unknown", 0.5), (1, 0.9)])
def test_a_quantile_at_a_bound_where_few_reports_count_for_much(
    dependence: float | str, strict: float, seed: int
) -> None:
    """12 % of 150 people at the lower bound, all others at the upper one, ε = 4; where they may choose by that, at the
    lower bound all are strict. The 10 % quantile is the lower bound: 0.73 and 0.55 held. At least 94 % at a false alarm
    of 1e-6."""
    plan, n, repeats = _collected(dependence, 4), 150, 120
    asked = next(i for i, question in enumerate(plan.questions) if question.kind == DISTRIBUTION)
    rng, held = np.random.default_rng(seed), 0
    x = np.where(np.arange(n) < 18, 0.0, 100.0)
    codes, chance = plan.questions[asked].bounds.encode(x)[None], np.full(n, 1 - strict)
    if dependence == "unknown":
        chance = np.where(x == 0, 0.0, 0.5 / 0.88)
    for repeat in range(repeats):
        levels, stream = (rng.random(n) < chance).astype(int), Keystream.seeded(seed, repeat)
        counts = [
            count_numbers(plan, level, report_numbers(plan, level, codes[:, levels == level], None, stream))
            for level in range(2)
        ]
        found = estimate_quantiles(plan, counts, asked, plan.recipe, rng, 2)
        held += found.quantiles[0].ci_low <= 1e-6
    assert held >= binom.ppf(1e-6, repeats, 0.94), held / repeats


@pytest.mark.parametrize("dependence", [1, 1.3])
def test_quantiles_of_people_who_round_to_tens(dependence: float, seed: int) -> None:
    """Spread evenly in bins they would lie elsewhere: such intervals held 0 to 12 times in 100. Of 12 repetitions and
    three quantiles at least 9 each hold at a false alarm of 1e-4; with Γ = 1.3 the upper half chooses by its value."""
    plan, n, repeats = _collected(dependence, 6), 4000, 12
    asked = next(i for i, question in enumerate(plan.questions) if question.kind == DISTRIBUTION)
    rng = np.random.default_rng(seed)
    held = np.zeros(3)
    for repeat in range(repeats):
        x = np.round(np.clip(rng.lognormal(2.5, 0.8, n), 0, 99.9) / 10) * 10
        chance = np.where(x > 10, 0.5 * dependence, 0.5) if dependence > 1 else np.full(n, 0.5)
        levels = (rng.random(n) < chance).astype(int)
        codes, stream = plan.questions[asked].bounds.encode(x)[None], Keystream.seeded(seed, repeat)
        counts = [
            count_numbers(plan, level, report_numbers(plan, level, codes[:, levels == level], None, stream))
            for level in range(2)
        ]
        found = estimate_quantiles(plan, counts, asked, plan.recipe, rng, 2)
        assert found.dependence == (1 if dependence == 1 else None)
        assert found.method == ("em" if dependence == 1 else "em by level")
        own = [np.sort(x)[int(np.ceil(p * n)) - 1] for p in (0.1, 0.5, 0.9)]
        held += [one.ci_low - 1e-6 <= at <= one.ci_high + 1e-6 for one, at in zip(found.quantiles, own, strict=True)]
    assert held.min() >= binom.ppf(1e-4, repeats, 0.95), held


def test_with_a_declared_dependence_means_are_those_of_reports() -> None:
    for dependence in (1.3, "unknown"):
        plan = _collected(dependence, 6)
        codes = plan.questions[0].bounds.encode(np.linspace(0, 100, 200))[None]
        counts = [
            count_numbers(plan, level, report_numbers(plan, level, codes, None, Keystream.seeded(1, level)))
            for level in range(2)
        ]
        (found,) = estimate_means(plan, counts, plan.recipe)
        assert found.mean.method == "reports"
        assert found.agreement == 1, "nothing is tested"
