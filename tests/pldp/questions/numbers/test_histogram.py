from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from pldp.channels.numeric.domain import Bounds
from pldp.channels.numeric.window import PM, SquareWave, Window
from pldp.channels.randomness import Keystream
from pldp.questions.numbers.histogram import bucket_counts, channel, estimate_histogram, maximise
from pldp.questions.numbers.quantiles import quantiles
from tests.pldp.world import z_bound

BOUNDS = Bounds(0, 100)
PROBABILITIES = (0.1, 0.25, 0.5, 0.75, 0.9)


def _exact_channel(mechanism: Window, bins: int) -> np.ndarray:
    """From the cells' probabilities one by one; values of a bin rounded at random."""
    width = mechanism.steps // bins
    rows = np.array(
        [
            [
                float(mechanism.inside if i <= j < i + mechanism.window else mechanism.outside)
                for j in range(mechanism.cells)
            ]
            for i in range(mechanism.steps + 1)
        ]
    )
    weight = np.r_[0.5, np.ones(width - 1), 0.5] / width
    starts = np.arange(0, mechanism.cells, width)
    mixed = [weight @ rows[b * width : (b + 1) * width + 1] for b in range(bins)]
    return np.add.reduceat(np.array(mixed), starts, axis=1).T


@pytest.mark.parametrize("kind", [SquareWave, PM])
@pytest.mark.parametrize("bins", [2, 8, 32])
def test_the_channel_is_that_of_the_integers(kind: type[Window], bins: int) -> None:
    mechanism = kind.for_budget(Fraction(3, 2), 5)
    table = channel(mechanism, bins)
    assert table == pytest.approx(_exact_channel(mechanism, bins), abs=1e-12)
    assert table.sum(axis=0) == pytest.approx(1)
    assert channel(kind.for_budget(Fraction(1)), 64).min() > 0


def test_counts_follow_the_channel_and_add_up(seed: int) -> None:
    mechanism, wrong = (SquareWave.for_budget(Fraction(e)) for e in ("2", "2.2"))
    n, bins = 200_000, 16
    # All values in the third bin: the expected counts are that column.
    values = np.random.default_rng(seed).uniform(100 * 2 / bins, 100 * 3 / bins, n)
    law = n * channel(mechanism, bins)[:, 2]

    def scores(drawing: SquareWave) -> np.ndarray:
        reports = drawing.perturb(BOUNDS.encode(values), Keystream.seeded(seed))
        counts = bucket_counts(drawing, reports, bins)
        halves = bucket_counts(drawing, reports[:777], bins) + bucket_counts(drawing, reports[777:], bins)
        assert np.array_equal(counts, halves)
        size = min(counts.size, law.size)
        return (counts[:size] - law[:size]) / np.sqrt(law[:size] * (1 - law[:size] / n))

    assert np.abs(scores(mechanism)).max() < z_bound(law.size)
    assert np.abs(scores(wrong)).max() > z_bound(law.size)


def test_em_finds_the_truth_without_noise() -> None:
    # Expected counts in place of drawn ones: the likelihood's maximum is the truth.
    table = np.concatenate([channel(SquareWave.for_budget(Fraction(e)), 8) for e in (2, 4)])
    truth = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02])
    found = maximise(table, 10**9 * np.stack([table @ truth, table @ truth[::-1]]))
    assert found == pytest.approx(np.stack([truth, truth[::-1]]), abs=2e-3)
    with pytest.raises(ValueError, match="power of two"):
        channel(SquareWave.for_budget(Fraction(2)), 100)


@pytest.mark.parametrize("shape", ["one hump", "two humps"])
def test_quantiles_from_em_are_covered(shape: str, seed: int) -> None:
    # Half of the users report, in two classes; truth is the quantile of all n users.
    n, bins, repeats = 8000, 32, 12
    rng = np.random.default_rng(seed)
    x = 100 * (rng.beta(2, 5, n) if shape == "one hump" else np.r_[rng.beta(2, 9, n // 2), rng.beta(20, 5, n - n // 2)])
    codes = BOUNDS.encode(x)
    mechanisms = [SquareWave.for_budget(Fraction(e)) for e in (3, 1)]
    truth = np.quantile(x, PROBABILITIES)
    covered, stream = 0, Keystream.seeded(seed, shape)
    for _ in range(repeats):
        chosen = rng.permutation(n)[: n // 2]
        counts = [
            bucket_counts(m, m.perturb(codes[part], stream), bins)
            for m, part in zip(mechanisms, np.array_split(chosen, 2), strict=True)
        ]
        result = estimate_histogram(mechanisms, counts, n, BOUNDS, bins, rng, repeats=60)
        assert result.frequency.sum() == pytest.approx(1)
        assert result.n_reports == n // 2
        found = quantiles(result.edges, result.frequency, result.covariance, PROBABILITIES)
        assert all(q.ci_low <= q.quantile <= q.ci_high and q.standard_error > 0 for q in found)
        covered += sum(q.ci_low <= t <= q.ci_high for q, t in zip(found, truth, strict=True))
    # The five quantiles of a repetition hang together: as if each counted for half. Measured 92–98 % (docs).
    assert covered / (5 * repeats) >= binom.ppf(1e-6, 5 * repeats // 2, 0.93) / (5 * repeats // 2)


@given(st.lists(st.integers(1, 50), min_size=2, max_size=20), st.floats(0.01, 0.99))
def test_quantiles_of_a_known_histogram_are_exact(counts: list[int], p: float) -> None:
    shares = np.array(counts) / sum(counts)
    edges = np.cumsum([0, *counts]).astype(float)  # widths equal counts: the distribution is uniform
    (found,) = quantiles(edges, shares, np.zeros((len(counts), len(counts))), [p])
    assert found.quantile == pytest.approx(p * edges[-1])
    assert found.standard_error == pytest.approx(0, abs=1e-6 * edges[-1])


def test_quantile_errors_are_the_delta_methods(seed: int) -> None:
    # A dense histogram with small independent errors: se(q) = se(F(q)) / density.
    bins, sigma = 20, 1e-4
    rng = np.random.default_rng(seed)
    edges, shares = np.linspace(0, 1, bins + 1), np.full(bins, 1 / bins)
    covariance = np.diag(np.full(bins, sigma**2))
    (found,) = quantiles(edges, shares, covariance, [0.5])
    assert found.standard_error == pytest.approx(sigma * np.sqrt(10), rel=0.05)
    drawn = [quantiles(edges, shares + rng.normal(0, sigma, bins), covariance, [0.5])[0] for _ in range(400)]
    hits = sum(q.ci_low <= 0.5 <= q.ci_high for q in drawn)
    assert binom.ppf(1e-6, 400, 0.945) <= hits <= binom.isf(1e-6, 400, 0.957)


def test_a_noisy_histogram_with_negative_bins_still_has_quantiles() -> None:
    shares = np.array([-0.05, 0.4, -0.1, 0.5, 0.3])
    covariance = np.diag(np.full(5, 0.01)) - 1e-4
    for q in quantiles(np.arange(6.0), shares, covariance, PROBABILITIES):
        assert 0 <= q.ci_low <= q.quantile <= q.ci_high <= 5
    with pytest.raises(ValueError, match="probability"):
        quantiles(np.arange(6.0), shares, covariance, [1.0])
