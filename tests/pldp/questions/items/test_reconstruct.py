"""Reconstruction: algebra first, then that it is unbiased and its covariance right."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from pldp.channels.exact import SCALE
from pldp.channels.randomness import Keystream
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.index import Index
from pldp.questions.items.levels import Floats
from pldp.questions.items.mining import EstimatedSets, Group, Search, estimate_groups
from pldp.questions.items.pooling import alone
from pldp.questions.items.reconstruct import noise_covariance, patterns
from pldp.questions.items.transactions import Columns, Counts, Itemsets
from pldp.questions.items.values import ValueChannel
from tests.pldp.questions.items.reconstruction import (
    apply_axes,
    covariance,
    item_inverse,
    item_matrix,
    reconstruct,
    variances,
)
from tests.pldp.questions.items.world import EPSILON, THRESHOLDS, Table, skewed
from tests.pldp.world import ALPHA, z_bound

ITEMS = st.lists(st.tuples(THRESHOLDS, THRESHOLDS), min_size=1, max_size=5)
TRIPLE = np.array([[0, 1, 2]], dtype=np.int32)
REPEATS = 150


def _kron(factors: list[Floats]) -> Floats:
    whole = np.ones((1, 1))
    for factor in factors:
        whole = np.kron(whole, factor).astype(np.float64)
    return whole


def estimate(items: Itemsets, counts: Counts, index: Index, channel: ItemChannels, search: Search) -> EstimatedSets:
    """Supports of sets all of whose proper subsets are in the index, of one group."""
    return estimate_groups(items, counts[:, None], [index], [Group(index.n_rows, channel)], search, alone)


def channels_of(keeps: list[tuple[int, int]]) -> ItemChannels:
    return ItemChannels(tuple(a for a, _ in keeps), tuple(b for _, b in keeps))


@settings(max_examples=50)
@given(ITEMS, st.integers(0, 2**32 - 1))
def test_axis_by_axis_is_the_kronecker_inverse(keeps: list[tuple[int, int]], seed: int) -> None:
    channels, rng = channels_of(keeps), np.random.default_rng(seed)
    m = len(keeps)
    counts = rng.integers(0, 1000, (2,) * m) + 1
    whole = _kron([item_matrix(channels, item).T for item in range(m)])
    expected = np.linalg.solve(whole, counts.ravel() / counts.sum())
    found = reconstruct(counts, [item_inverse(channels, item) for item in range(m)])
    np.testing.assert_allclose(found.ravel(), expected, atol=1e-9 * np.abs(np.linalg.inv(whole)).max())
    assert found.sum() == pytest.approx(1)
    # The response of a set to patterns is the last row of the inverse; its lowest bit is the first item.
    last = _kron([item_inverse(channels, item) for item in reversed(range(m))])[-1]
    np.testing.assert_allclose(channels.responses(np.arange(m)[None])[0], last, rtol=1e-9)


@settings(max_examples=50)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=5), st.integers(0, 2**32 - 1))
def test_reconstruction_inverts_the_expectation(levels: list[int], seed: int) -> None:
    one, two = ValueChannel.aprr(levels, 4, Fraction(3)), ValueChannel.krr(3, Fraction(1))
    truth = np.random.default_rng(seed).dirichlet(np.ones(3 * len(levels))).reshape(-1, 3)
    expected = apply_axes(truth, [one.matrix.T, two.matrix.T])
    np.testing.assert_allclose(reconstruct(expected, [one.inverse, two.inverse]), truth, atol=1e-12)


@settings(max_examples=50)
@given(st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_patterns_follow_from_supersets(m: int, seed: int) -> None:
    counts = np.random.default_rng(seed).integers(0, 50, (3, 1 << m))
    subsets = np.arange(1 << m)
    supersets = np.stack([counts[:, subsets & own == own].sum(axis=1) for own in subsets], axis=1)
    assert (patterns(supersets) == counts).all()


@settings(max_examples=30)
@given(st.lists(st.integers(0, 3), min_size=2, max_size=4), st.booleans(), st.integers(0, 2**32 - 1))
def test_covariance_agrees_with_its_definition(levels: list[int], population: bool, seed: int) -> None:
    one, two = ValueChannel.aprr(levels, 4, Fraction(3)), ValueChannel.krr(2, Fraction(1))
    counts = np.random.default_rng(seed).integers(1, 500, (len(levels), 2))
    inverses = [one.inverse, two.inverse]
    whole = np.kron(*inverses)
    share = counts.ravel() / counts.sum()
    estimates = whole @ share
    taken = np.outer(estimates, estimates) if population else np.diag(estimates)
    expected = (whole @ np.diag(share) @ whole.T - taken) / counts.sum()
    found = covariance(counts, inverses, population=population)
    np.testing.assert_allclose(found, expected, atol=1e-9)
    spread = variances(counts, inverses, population=population)
    np.testing.assert_allclose(spread.ravel(), np.maximum(np.diag(found), 0), atol=1e-9)


def _expected_variance(table: Table, channels: ItemChannels, items: tuple[int, ...]) -> float:
    """Of fixed data: users' products are independent, E Z² of a bit is known for either value."""
    q, gap = channels.false_one[list(items)], channels.gap[list(items)]
    p = q + gap
    ones, zeros = (((1 - q) ** 2 * chance + q**2 * (1 - chance)) / gap**2 for chance in (p, q))
    squares = np.where(table[:, items], ones, zeros).prod(axis=1)
    return float((squares - table[:, items].all(axis=1)).sum() / len(table) ** 2)


def _draws(table: Table, channels: ItemChannels, drawn: ItemChannels, seed: int) -> tuple[Floats, Floats]:
    """Estimates and errors of {0}, {0, 1} and {0, 1, 2}, (repeat, set), if `drawn` draws the reports."""
    truth, stream = Columns.of_table(table), Keystream.seeded(seed, "reconstruct")
    search, out = Search(minimum=0.1, length=3), []
    for _ in range(REPEATS):
        reports = drawn.perturb(truth, stream)
        index = Index(len(table), channels.n_items)
        row = []
        for candidates in (np.arange(3)[:, None], np.array([[0, 1], [0, 2], [1, 2]]), TRIPLE):
            sets = candidates.astype(np.int32)
            found = estimate(sets, reports.count(sets), index, channels, search)
            index.add(sets, found.count[:, 0])
            row.append((found.support[0], found.standard_error[0]))
        out.append(row)
    values = np.array(out)
    return values[..., 0], values[..., 1]


def test_supports_are_unbiased_and_their_errors_right(seed: int) -> None:
    table = skewed(4000, 3, 7)
    channels, wrong = (ItemChannels.aprr((1, 2, 3), 5, EPSILON * factor) for factor in (1, Fraction(11, 10)))
    sets = ((0,), (0, 1), (0, 1, 2))
    truth = np.array([table[:, own].all(axis=1).mean() for own in sets])
    variance = np.array([_expected_variance(table, channels, own) for own in sets])

    estimates, errors = _draws(table, channels, channels, seed)
    deviation = np.abs(estimates.mean(axis=0) - truth) / np.sqrt(variance / REPEATS)
    assert deviation.max() < z_bound(3)
    # Sums of thousands of terms are normal, so the scaled spread is chi squared with REPEATS degrees.
    spread = ((estimates - truth) ** 2).sum(axis=0) / variance
    assert (spread < chi2.isf(ALPHA / 6, REPEATS)).all()
    assert (spread > chi2.ppf(ALPHA / 6, REPEATS)).all()
    # A mean of 4000 squares: estimated variances differ by less than one in ten.
    np.testing.assert_allclose((errors**2).mean(axis=0), variance, rtol=0.1)

    shifted, _ = _draws(table, channels, wrong, seed)
    assert (np.abs(shifted.mean(axis=0) - truth) / np.sqrt(variance / REPEATS)).max() > z_bound(3)


def test_value_shares_are_unbiased_with_the_predicted_covariance(seed: int) -> None:
    n, repeats = 5000, 400
    truth = np.array([0.5, 0.25, 0.15, 0.1])
    values = np.repeat(np.arange(4, dtype=np.uint16), (truth * n).astype(int))
    channel, wrong = (ValueChannel.aprr((0, 1, 2, 3), 4, Fraction(3) * factor) for factor in (1, Fraction(11, 10)))
    noise = noise_covariance(channel.inverse, channel.matrix, truth) / n

    def shares(drawn: ValueChannel) -> Floats:
        stream = Keystream.seeded(seed, "shares")
        counts = [drawn.support(drawn.perturb(values, stream)) for _ in range(repeats)]
        return np.array([reconstruct(own, [channel.inverse]) for own in counts])

    found = shares(channel)
    error = np.sqrt(np.diag(noise) / repeats)
    assert (np.abs(found.mean(axis=0) - truth) < z_bound(4) * error).all()
    # The covariance of two nearly normal estimates has variance (V_ii V_jj + V_ij²) / repeats.
    empirical = (found - truth).T @ (found - truth) / repeats
    own = np.diag(noise)
    assert (np.abs(empirical - noise) < z_bound(16) * np.sqrt((np.outer(own, own) + noise**2) / repeats)).all()
    assert (np.abs(shares(wrong).mean(axis=0) - truth) > z_bound(4) * error).any()


def test_bad_tables_are_named() -> None:
    inverse = ValueChannel.krr(3, Fraction(1)).inverse
    with pytest.raises(ValueError, match="one axis for each attribute"):
        reconstruct(np.ones((3, 3)), [inverse])
    with pytest.raises(ValueError, match="no reports"):
        reconstruct(np.zeros(3), [inverse])


def test_open_items_have_no_error() -> None:
    table = skewed(500, 2, 3)
    channels = ItemChannels.symmetric((SCALE, SCALE))
    reports = Columns.of_table(table)
    sets = np.array([[0], [1]], dtype=np.int32)
    found = estimate(sets, reports.count(sets), Index(500, 2), channels, Search(minimum=0.3, length=1))
    np.testing.assert_allclose(found.support, table.mean(axis=0))
    assert (found.standard_error < 1e-9).all()
    assert set(found.probability_frequent) <= {0.0, 1.0}
