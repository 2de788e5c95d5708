from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, chi2, kstest, norm

from pldp.channels.protocol import Floats, PureProtocol
from pldp.channels.registry import PROTOCOLS
from pldp.channels.tails import chernoff
from pldp.channels.unary import BRR
from pldp.estimate.checks import homogeneity, unbiasedness, woodbury
from pldp.estimate.combine import (
    CLASSIC,
    Combined,
    Levels,
    combine_linear,
    estimate_levels,
    linear_variance,
    noise_variances,
    spread,
)
from pldp.estimate.postprocess import project_to_simplex
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from tests.pldp.world import ALPHA, SHARES, attribute_plan, paper_attributes, simulate, thirds, zipf


def _pooled(levels: Levels) -> Floats:
    return combine_linear("oc+", levels).frequency


def _too_many(fired: int, repeats: int, rate: float) -> bool:
    return float(binom.sf(fired - 1, repeats, rate)) < ALPHA


def _too_few(fired: int, repeats: int, rate: float) -> bool:
    return float(binom.cdf(fired, repeats, rate)) < ALPHA


def _noise_covariance(protocol: PureProtocol, frequency: Floats) -> Floats:
    """Of one report's estimate, the data being fixed: the mean over users of what the exact pairs say, cell by cell."""
    p, q, (own, others) = protocol.exact_p, protocol.exact_q, protocol.exact_pairs
    size = frequency.size
    covariance = np.zeros((size, size))
    for holder in range(size):
        chance = [p if j == holder else q for j in range(size)]
        for i in range(size):
            for j in range(size):
                both = chance[i] if i == j else own if holder in (i, j) else others
                covariance[i, j] += frequency[holder] * float((both - chance[i] * chance[j]) / (p - q) ** 2)
    return covariance


def _dense_homogeneity(levels: Levels, pooled: Floats) -> float:
    """The same test with whole matrices: Σ (f̂_τ − m)ᵀ Ω_τ (f̂_τ − m), m the precision-weighted mean."""
    centre = project_to_simplex(pooled)
    cells = min(protocol.free_cells for protocol in levels.protocols)
    estimates = levels.frequencies[:, :cells]
    precision = []
    for n, protocol in zip(levels.n, levels.protocols, strict=True):
        noise = _noise_covariance(protocol, centre)
        covariance = noise + np.diag(np.maximum(1 / n - np.diag(noise), 0)) + np.diag(centre) - np.outer(centre, centre)
        precision.append(n * np.linalg.inv(covariance[:cells, :cells]))
    together = sum(precision, np.zeros((cells, cells)))
    weighted = [omega @ f for omega, f in zip(precision, estimates, strict=True)]
    mean = np.linalg.solve(together, np.sum(weighted, axis=0))
    distance = [(f - mean) @ omega @ (f - mean) for omega, f in zip(precision, estimates, strict=True)]
    return float(chi2.sf(np.sum(distance), (levels.n.size - 1) * cells))


def _drawn(names: tuple[str, ...], size: int, budget: Fraction, repeats: int, seed: int) -> tuple[Levels, Floats]:
    """Estimates of levels with these protocols, at budgets 1/3, 1/2, 1 of this one, equal groups of skewed truth."""
    protocols = tuple(
        PROTOCOLS[name].for_budget(size, budget * share) for name, share in zip(names, SHARES.values(), strict=True)
    )
    rng = np.random.default_rng(seed)
    counts, sizes = whole_counts(zipf(size), 3000), thirds(3000)
    support = draw_support(draw_levels(counts, sizes, repeats, rng), protocols, rng)
    return estimate_levels(support, sizes, protocols), counts / 3000


MIXES = [*((name,) * 3 for name in PROTOCOLS), ("subset", "olh", "krr"), ("oue", "krr", "brr"), ("olh", "olh", "oue")]


@pytest.mark.parametrize("names", MIXES, ids=",".join)
@pytest.mark.parametrize("budget", [Fraction(1, 2), Fraction(6), Fraction(25), Fraction(60)])
def test_homogeneity_is_the_dense_test(names: tuple[str, ...], budget: Fraction, seed: int) -> None:
    for size in (2, 7):
        many, _ = _drawn(names, size, budget, 5, seed)
        p_values = homogeneity(many, _pooled(many))
        for i in range(5):
            levels = Levels(many.frequencies[i], many.n, many.protocols)
            assert p_values[i] == pytest.approx(_dense_homogeneity(levels, _pooled(levels)), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("names", MIXES[-3:], ids=",".join)
def test_homogeneity_of_mixed_protocols_rejects_at_its_rate(names: tuple[str, ...], seed: int) -> None:
    # 3,000 tests; 10 % of the rate is granted, as below.
    levels, _ = _drawn(names, 9, Fraction(3), 3000, seed)
    p_values = homogeneity(levels, _pooled(levels))
    for rate in (0.05, 0.01):
        fired = int((p_values < rate).sum())
        assert not _too_many(fired, 3000, 1.1 * rate)
        assert not _too_few(fired, 3000, 0.9 * rate)


@pytest.mark.parametrize("total", [1, 6, 20])
def test_homogeneity_rejects_at_its_rate(total: int, seed: int) -> None:
    # The paper's five attributes, 3,000 repetitions of each: 15,000 tests, binomial bounds at α = 1e-6. The statistic
    # is only nearly χ²: 10 % of the rate is granted for that.
    rng = np.random.default_rng(seed)
    p_values = []
    for attribute in paper_attributes(Fraction(total)):
        levels, _ = simulate(attribute, zipf(len(attribute.values)), 10_000, 3000, rng)
        p_values.append(homogeneity(levels, _pooled(levels)))
    everything = np.concatenate(p_values)
    for rate in (0.05, 0.01, 0.001):
        fired = int((everything < rate).sum())
        assert not _too_many(fired, everything.size, 1.1 * rate)
        assert not _too_few(fired, everything.size, 0.9 * rate)


@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("budget", [20, 60, 100])
def test_homogeneity_keeps_its_rate_with_few_users_and_rare_values(power: float, budget: int, seed: int) -> None:
    # n = 1,000 over 25 values, the rarest expected less than once in a level: cells are Poisson, not normal, and a bit
    # flips once in many releases. Counting noise below one report as one keeps the tail at 1e-3 below 3e-3.
    levels, _ = simulate(attribute_plan(25, Fraction(budget)), zipf(25, power), 1000, 4000, np.random.default_rng(seed))
    fired = int((homogeneity(levels, _pooled(levels)) < 0.001).sum())
    assert not _too_many(fired, 4000, 0.003)


@pytest.mark.parametrize("budget", [100, 300, 1000])
def test_homogeneity_is_a_number_at_any_budget(budget: int) -> None:
    # Without noise the covariance is singular to the last digit.
    levels, _ = simulate(attribute_plan(10, Fraction(budget)), np.ones(10), 10_000, 200, np.random.default_rng(0))
    p_values = homogeneity(levels, _pooled(levels))
    assert np.all((p_values >= 0) & (p_values <= 1))
    assert np.mean(p_values < 0.01) < 0.05


def test_covariance_of_noise_alone_rejects_for_certain() -> None:
    # methods.md: 100 % at ε = 20. That is the budget of one attribute; over five of them noise still hides it.
    def rejected(budget: Fraction) -> tuple[float, float]:
        levels, _ = simulate(attribute_plan(16, budget), zipf(16), 10_000, 300, np.random.default_rng(0))
        noise = np.array([protocol.noise_variance(np.zeros(1))[0] for protocol in levels.protocols])
        weight = (levels.n / noise)[:, None]
        mean = (weight * levels.frequencies).sum(axis=-2) / weight.sum()
        statistic = (weight * (levels.frequencies - mean[:, None]) ** 2).sum(axis=(-2, -1))
        ours = homogeneity(levels, _pooled(levels))
        return float((chi2.sf(statistic, 32) < 1e-3).mean()), float((ours < 1e-3).mean())

    alone, ours = rejected(Fraction(20))
    assert alone > 0.98
    assert ours < 0.02
    assert rejected(Fraction(4))[0] < 0.05


def test_homogeneity_fires_where_the_choice_depends_on_the_value(seed: int) -> None:
    attribute = attribute_plan(4, Fraction(6))
    dealt = np.array([[2400, 300, 200, 100], [1500, 500, 500, 500], [300, 900, 900, 900]])
    support = draw_support(np.broadcast_to(dealt, (500, 3, 4)), attribute.protocols, np.random.default_rng(seed))
    levels = estimate_levels(support, dealt.sum(axis=1), attribute.protocols)
    assert (homogeneity(levels, _pooled(levels)) < 1e-3).mean() > 0.99


def test_one_level_agrees_with_itself() -> None:
    levels = estimate_levels(np.array([[3, 4]]), np.array([7]), (BRR.for_budget(2, Fraction(1)),))
    assert float(homogeneity(levels, _pooled(levels))) == 1.0


@pytest.mark.parametrize("name", ["krr", "subset"])
def test_a_value_that_everybody_has_is_no_evidence(name: str) -> None:
    protocols = tuple(PROTOCOLS[name].for_budget(1, Fraction(budget)) for budget in (1, 2))
    levels = estimate_levels(np.array([[3], [4]]), np.array([3, 4]), protocols)
    combined = combine_linear("sum", levels)
    assert combined.frequency == pytest.approx([1.0])
    assert float(homogeneity(levels, combined.frequency)) == 1.0
    assert float(unbiasedness(combined, levels, np.ones(1))) == 1.0


@pytest.mark.parametrize("names", MIXES, ids=",".join)
@pytest.mark.parametrize("method", CLASSIC)
@pytest.mark.parametrize("budget", [Fraction(1), Fraction(20)])
def test_unbiasedness_is_the_dense_test(names: tuple[str, ...], method: str, budget: Fraction, seed: int) -> None:
    levels, truth = _drawn(names, 5, budget, 1, seed)
    combined = combine_linear(method, levels)
    n = levels.n[:, None]
    users = levels.n_reports
    weights = combined.weights[0]
    uneven = (weights - n / users) / np.sqrt(n)
    between = (np.diag(truth) - np.outer(truth, truth)) * users / (users - 1)
    chosen = between * (uneven.T @ uneven)
    drawn = np.zeros((5, 5))
    for weight, size, protocol in zip(weights, levels.n, levels.protocols, strict=True):
        drawn += np.outer(weight, weight) * _noise_covariance(protocol, truth) / size
    error = combined.frequency[0] - truth
    cells = min(protocol.free_cells for protocol in levels.protocols)
    # Noise below one report counts as one.
    floored = drawn + np.diag(np.maximum(1 / users**2 - np.diag(drawn), 0))
    covariance = (floored + chosen)[:cells, :cells]
    expected = chi2.sf(error[:cells] @ np.linalg.solve(covariance, error[:cells]), cells)
    assert unbiasedness(combined, levels, truth)[0] == pytest.approx(expected, rel=1e-6, abs=1e-12)
    stated = np.sqrt(np.diag(drawn) + np.diag(chosen))
    assert _z_scores(combined, levels, truth)[0] == pytest.approx(error / stated, rel=1e-9)


def _z_scores(combined: Combined, levels: Levels, truth: Floats) -> Floats:
    """Errors in units of the standard error that the truth implies."""
    noise = noise_variances(levels.protocols, truth)
    variance = linear_variance(combined.weights, levels.n, noise, spread(truth, levels.n_reports))
    return (combined.frequency - truth) / np.sqrt(variance)


def _unbiasedness_rate(method: str, spent: Fraction, seed: int, repeats: int = 4000) -> float:
    """How often the 1 % test fires if reports are drawn with `spent` and estimated as if with ε = 3."""
    assumed, drawn = attribute_plan(16, Fraction(3)), attribute_plan(16, spent)
    counts, sizes = whole_counts(zipf(16), 100_000), thirds(100_000)
    rng = np.random.default_rng(seed)
    support = draw_support(draw_levels(counts, sizes, repeats, rng), drawn.protocols, rng)
    levels = estimate_levels(support, sizes, assumed.protocols)
    return float((unbiasedness(combine_linear(method, levels), levels, counts / 100_000) < 0.01).mean())


@pytest.mark.parametrize("method", CLASSIC)
def test_unbiasedness_fires_at_one_percent(method: str, seed: int) -> None:
    fired = round(4000 * _unbiasedness_rate(method, Fraction(3), seed))
    assert not _too_many(fired, 4000, 0.01)
    assert not _too_few(fired, 4000, 0.01)


@pytest.mark.parametrize("method", CLASSIC)
@pytest.mark.parametrize("spent", [Fraction("3.3"), Fraction("2.7")])
def test_unbiasedness_fires_if_the_budget_is_ten_percent_off(method: str, spent: Fraction, seed: int) -> None:
    assert _unbiasedness_rate(method, spent, seed, 500) > 0.99


def test_z_scores_are_standard_normal(seed: int) -> None:
    levels, truth = simulate(attribute_plan(8, Fraction(4)), zipf(8), 20_000, 2000, np.random.default_rng(seed))
    for method in CLASSIC:
        z = _z_scores(combine_linear(method, levels), levels, truth)
        # Every cell by itself; α = 1e-6 over 8 cells and 3 methods.
        for cell in range(8):
            assert kstest(z[:, cell], "norm").pvalue > ALPHA / 24


@pytest.mark.parametrize("law", [((7, 0.3),), ((5, 0.9), (20, 0.1)), ((40, 0.62), (160, 0.38)), ((1, 0.5),)])
def test_chernoff_bounds_the_exact_tail(law: tuple[tuple[int, float], ...]) -> None:
    masses = np.ones(1)
    for trials, p in law:
        masses = np.convolve(masses, binom.pmf(np.arange(trials + 1), trials, p))
    mean = sum(trials * p for trials, p in law)
    for observed in range(masses.size):
        tail = masses[observed:].sum() if observed > mean else masses[: observed + 1].sum()
        assert chernoff(observed, law) >= min(1.0, 2 * tail) * (1 - 1e-9)


def test_chernoff_costs_little_in_the_tail() -> None:
    # Docstring: about half a standard error. At five of them the bound is 2 e^{−12.5}, the normal tail of 4.48.
    law = ((100_000, 0.6), (900_000, 0.4))
    deviation = float(np.sqrt(100_000 * 0.24 + 900_000 * 0.24))
    for side in (-1, 1):
        bound = chernoff(round(420_000 + side * 5 * deviation), law)
        assert bound == pytest.approx(2 * np.exp(-12.5), rel=0.1)
        assert norm.isf(bound / 2) > 4.4
    assert chernoff(420_000, law) == 1.0


def test_total_tail_catches_a_wrong_budget(seed: int) -> None:
    # The sum is n (1 + (k − 2) q), whatever the data: it tells a wrong q if k > 2.
    right, wrong = BRR.for_budget(10, Fraction(1)), BRR.for_budget(10, Fraction("1.1"))
    counts = whole_counts(zipf(10), 50_000)
    rng = np.random.default_rng(seed)
    assert right.total_tail(int(right.sample_support(counts, rng).sum()), 50_000) > ALPHA
    assert right.total_tail(int(wrong.sample_support(counts, rng).sum()), 50_000) < ALPHA


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 4))
def test_woodbury_solves(key: int, size: int, rank: int) -> None:
    rng = np.random.default_rng(key)
    diagonal, rows = rng.uniform(1, 3, size), rng.normal(size=(rank, size))
    # A core of rank one below full is singular; kept small, so that the whole matrix is not.
    half = rng.normal(size=(rank, max(rank - 1, 1)))
    core, right = half @ np.diag(rng.uniform(-0.01, 2, half.shape[1])) @ half.T, rng.normal(size=size)
    matrix = np.diag(diagonal) + rows.T @ core @ rows
    assert woodbury(diagonal, rows, core, right) == pytest.approx(np.linalg.solve(matrix, right), rel=1e-7, abs=1e-9)
