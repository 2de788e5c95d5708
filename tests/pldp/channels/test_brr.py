from __future__ import annotations

import itertools
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import binom, chi2

from pldp.channels.exact import SCALE, exp_below, float_above, log_above, within
from pldp.channels.protocol import Counts, Floats, PureProtocol, Values
from pldp.channels.randomness import Keystream, bernoulli_bits
from pldp.channels.unary import BRR
from pldp.estimate.simulate import whole_counts
from tests.pldp.world import ALPHA, BUDGETS, z_bound

KEEPS = st.integers(SCALE // 2 + 1, SCALE - 1)


def _channel(protocol: BRR, report: tuple[int, ...], value: int) -> Fraction:
    """Pr[report | value], bit by bit: a bit of the one-hot vector stays with probability keep / 2^64."""
    stays, flips = Fraction(protocol.keep, SCALE), Fraction(SCALE - protocol.keep, SCALE)
    probability = Fraction(1)
    for cell, bit in enumerate(report):
        probability *= stays if bit == (cell == value) else flips
    return probability


@settings(max_examples=60)
@given(BUDGETS, st.integers(2, 4))
def test_worst_ratio_is_that_of_the_whole_channel(epsilon: Fraction, size: int) -> None:
    protocol = BRR.for_budget(size, epsilon)
    worst = Fraction(0)
    for report in itertools.product((0, 1), repeat=size):
        chances = [_channel(protocol, report, value) for value in range(size)]
        worst = max(worst, max(chances) / min(chances))
    for value in range(size):
        assert sum(_channel(protocol, z, value) for z in itertools.product((0, 1), repeat=size)) == 1
    assert worst == protocol.worst_ratio
    assert worst <= exp_below(epsilon)


@given(BUDGETS, st.fractions(min_value=Fraction(1, 100), max_value=1, max_denominator=1000))
def test_keep_is_the_largest_within_the_budget(total: Fraction, share: Fraction) -> None:
    epsilon = total * share
    protocol = BRR.for_budget(7, epsilon)
    assert within(protocol.worst_ratio, epsilon)
    if protocol.keep < SCALE - 1:  # one more would be certainty: an infinite ratio
        assert not within(Fraction(protocol.keep + 1, SCALE - protocol.keep - 1) ** 2, epsilon)


@given(BUDGETS)
def test_published_epsilon_never_exceeds_the_nominal_one(epsilon: Fraction) -> None:
    assert log_above(BRR.for_budget(3, epsilon).worst_ratio) <= float_above(epsilon)


@given(KEEPS)
def test_probabilities_are_the_thresholds(keep: int) -> None:
    protocol = BRR(5, keep)
    assert protocol.p == float(Fraction(keep, SCALE))
    assert protocol.q == float(1 - Fraction(keep, SCALE))
    assert protocol.gap == float(2 * Fraction(keep, SCALE) - 1)


@given(
    st.lists(st.integers(0, 50), min_size=1, max_size=9).filter(any),
    st.fractions(min_value=0, max_value=1),
    st.fractions(min_value=0, max_value=1),
)
def test_estimate_inverts_the_expectation(counts: list[int], p: Fraction, q: Fraction) -> None:
    # In rationals, so without a tolerance: for every p ≠ q, n and truth.
    if p == q:
        return
    n = sum(counts)
    expected: Any = np.array([count * p + (n - count) * q for count in counts], dtype=object)
    exact: Any = SimpleNamespace(q=q, gap=p - q)
    assert list(PureProtocol.estimate(exact, expected, n)) == [Fraction(count, n) for count in counts]


@pytest.mark.parametrize("keep", [0, 1, SCALE // 2, SCALE, SCALE + 1])
def test_a_threshold_that_would_tell_all_or_nothing_is_refused(keep: int) -> None:
    # At 0 every bit is flipped for certain: the report is the value, though (p/q)² is 0.
    with pytest.raises(ValueError, match="keep must lie"):
        BRR(3, keep)


def test_a_budget_without_signal_is_refused() -> None:
    with pytest.raises(ValueError, match="too small"):
        BRR.for_budget(3, Fraction(1, 10**20))


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 6.0, 30.0])
def test_noise_variance_is_the_papers(epsilon: float) -> None:
    protocol = BRR.for_budget(4, Fraction(str(epsilon)))
    truth = np.array([0.7, 0.2, 0.1, 0.0])
    assert protocol.noise_variance(truth) == pytest.approx(1 / (4 * np.sinh(epsilon / 4) ** 2), rel=1e-6)
    assert protocol.ties == (0, 0)
    assert protocol.free_cells == protocol.domain_size == 4


def _all_sizes() -> range:
    return range(1, 131)


def _plain_support(reports: NDArray[np.uint8], size: int) -> Counts:
    counted: Counts = np.unpackbits(reports, axis=1, bitorder="little").sum(axis=0, dtype=np.int64)[:size]
    return counted


def test_a_report_is_the_one_hot_vector_with_flips_at_every_size() -> None:
    # Bit order and padding as documented; ties `perturb` to the channel enumerated above.
    for size in _all_sizes():
        protocol = BRR.for_budget(size, Fraction(2))
        values = (np.arange(300) * 7 % size).astype(np.uint16)
        reports = protocol.perturb(values, Keystream.seeded(size))
        flips = bernoulli_bits(SCALE - protocol.keep, 300 * protocol.report_bytes, Keystream.seeded(size))
        table = np.unpackbits(flips.reshape(300, -1), axis=1, bitorder="little")
        table[np.arange(300), values] ^= 1
        table[:, size:] = 0
        assert reports.shape == (300, protocol.report_bytes)
        assert np.array_equal(np.unpackbits(reports, axis=1, bitorder="little"), table), size


def test_without_noise_value_j_is_bit_j_mod_8_of_byte_j_div_8() -> None:
    # ε = 1000 flips a bit once in 2^64.
    protocol = BRR.for_budget(130, Fraction(1000))
    reports = protocol.perturb(np.arange(130, dtype=np.uint16), Keystream.secure())
    for j, report in enumerate(reports):
        expected = np.zeros(17, dtype=np.uint8)
        expected[j // 8] = 1 << (j % 8)
        assert np.array_equal(report, expected)


def test_support_counts_bits_at_every_size() -> None:
    rng = np.random.default_rng(0)
    for size in _all_sizes():
        protocol = BRR.for_budget(size, Fraction(1))
        for n in (0, 1, 7, 254, 255, 256, 1021):
            reports = rng.integers(0, 256, (n, protocol.report_bytes), dtype=np.uint8)
            assert np.array_equal(protocol.support(reports), _plain_support(reports, size)), (size, n)


@pytest.mark.parametrize("size", [1, 8, 9, 24, 64, 100, 130])
def test_support_counts_bits_across_blocks(size: int) -> None:
    protocol = BRR.for_budget(size, Fraction(1))
    rng = np.random.default_rng(size)
    # All ones fill every counter to the brim; n about one and two blocks of any stripe width up to 2^10 bytes.
    for n in (255 * 8, 255 * 128 + 1, 255 * 1024 - 1, 255 * 1024, 255 * 1024 + 1, 2 * 255 * 1024 + 5):
        n //= protocol.report_bytes
        full = np.full((n, protocol.report_bytes), 255, dtype=np.uint8)
        assert np.array_equal(protocol.support(full), np.full(size, n))
        mixed = rng.integers(0, 256, (n, protocol.report_bytes), dtype=np.uint8)
        assert np.array_equal(protocol.support(mixed), _plain_support(mixed, size))
        assert np.array_equal(protocol.support(mixed[::-2]), _plain_support(mixed[::-2], size))


@given(st.integers(1, 130), st.lists(st.integers(0, 400), max_size=5), st.integers(0, 2**32))
def test_support_is_additive_over_any_split(size: int, parts: list[int], key: int) -> None:
    protocol = BRR.for_budget(size, Fraction(1))
    rng = np.random.default_rng(key)
    reports = rng.integers(0, 256, (sum(parts), protocol.report_bytes), dtype=np.uint8)
    edges = np.cumsum([0, *parts])
    pieces = [protocol.support(reports[a:b]) for a, b in itertools.pairwise(edges)]
    total = np.sum(pieces, axis=0) if pieces else np.zeros(size, dtype=np.int64)
    assert np.array_equal(total, protocol.support(reports))


def test_a_value_outside_the_domain_is_refused() -> None:
    with pytest.raises(ValueError, match="outside the declared domain"):
        BRR.for_budget(5, Fraction(1)).perturb(np.array([0, 5], dtype=np.uint16), Keystream.secure())


def test_nobody_gives_no_reports() -> None:
    protocol = BRR.for_budget(9, Fraction(1))
    reports = protocol.perturb(np.zeros(0, dtype=np.uint16), Keystream.secure())
    assert reports.shape == (0, 2)
    assert np.array_equal(protocol.support(reports), np.zeros(9))


TRUTH = np.array([0.45, 0.25, 0.1, 0.08, 0.05, 0.03, 0.02, 0.01, 0.01, 0.0, 0.0, 0.0, 0.0])
N_USERS = 200_000


def _skewed_values() -> Values:
    return np.repeat(np.arange(TRUTH.size, dtype=np.uint16), whole_counts(TRUTH, N_USERS))


def _errors(spent: Fraction, assumed: Fraction, seed: int) -> Floats:
    """z-scores of all cells: reports drawn with one budget, estimated as if with another."""
    drawn, used = BRR.for_budget(TRUTH.size, spent), BRR.for_budget(TRUTH.size, assumed)
    support = drawn.support(drawn.perturb(_skewed_values(), Keystream.seeded(seed, "brr")))
    # Var f̂ = v(ε)/n in every cell, the data being fixed.
    return (used.estimate(support, N_USERS) - TRUTH) / np.sqrt(used.noise_variance(TRUTH) / N_USERS)


def test_estimates_are_unbiased_in_every_cell(seed: int) -> None:
    # α = 1e-6 over 13 cells, first and last included; and jointly χ² with 13 degrees of freedom.
    z = _errors(Fraction(2), Fraction(2), seed)
    assert np.abs(z).max() < z_bound(TRUTH.size)
    assert np.square(z).sum() < chi2.isf(ALPHA, TRUTH.size)


def test_a_budget_ten_percent_off_is_caught(seed: int) -> None:
    # tanh(ε/4) grows by 8 %, which moves rare cells by −0.04: ten standard errors each.
    z = _errors(Fraction("2.2"), Fraction(2), seed)
    assert np.abs(z[3:]).min() > 5
    assert np.square(z).sum() > chi2.isf(ALPHA, TRUTH.size)


def _support_law(protocol: BRR, own: int, others: int) -> Floats:
    """Exact distribution of one cell's support: two binomials, convolved."""
    ones = binom.pmf(np.arange(own + 1), own, protocol.p)
    return np.convolve(ones, binom.pmf(np.arange(others + 1), others, protocol.q))


@pytest.mark.parametrize("cell", [0, 1, 2])
def test_the_sampler_and_the_reports_follow_one_law(cell: int, seed: int) -> None:
    # Four users with values 0, 0, 1 and 2 of 3; support of a cell lies in 0…4. χ² over five outcomes, α = 1e-6 each.
    counts = np.array([2, 1, 1])
    protocol, wrong = BRR.for_budget(3, Fraction(2)), BRR.for_budget(3, Fraction("2.2"))
    repeats = 200_000
    law = _support_law(protocol, counts[cell], 4 - counts[cell]) * repeats
    rng = np.random.default_rng(seed)

    def distance(support: Counts) -> float:
        seen = np.bincount(support[:, cell], minlength=5)
        return float((np.square(seen - law) / law).sum())

    def reported(drawing: BRR) -> Counts:
        values = np.tile(np.array([0, 0, 1, 2], dtype=np.uint16), repeats)
        bits = np.unpackbits(drawing.perturb(values, Keystream.seeded(seed, cell)), axis=1, bitorder="little")
        summed: Counts = bits[:, :3].reshape(repeats, 4, 3).sum(axis=1, dtype=np.int64)
        return summed

    many = np.broadcast_to(counts, (repeats, 3))
    bound = chi2.isf(ALPHA, 4)
    assert distance(protocol.sample_support(many, rng)) < bound
    assert distance(reported(protocol)) < bound
    assert distance(wrong.sample_support(many, rng)) > bound
    assert distance(reported(wrong)) > bound


def test_cells_of_a_report_are_independent(seed: int) -> None:
    # All users hold value 0; 13 · 12 / 2 pairs of bits, α = 1e-6 over them.
    protocol = BRR.for_budget(13, Fraction(1))
    n = 100_000
    reports = protocol.perturb(np.zeros(n, dtype=np.uint16), Keystream.seeded(seed, "pairs"))
    bits = np.unpackbits(reports, axis=1, bitorder="little")[:, :13] - np.r_[protocol.p, np.full(12, protocol.q)]
    correlation = bits.T @ bits / n / (protocol.p * protocol.q)
    assert np.abs(correlation[np.triu_indices(13, 1)]).max() * np.sqrt(n) < z_bound(78)


@pytest.mark.parametrize("counts", [[3, 2, 0], [0, 0, 1], [4, 5, 6]])
def test_total_tail_bounds_the_exact_tail(counts: list[int]) -> None:
    # Of all n · k bits n are own ones: the law of their sum does not depend on the data.
    protocol = BRR.for_budget(3, Fraction(1))
    n = sum(counts)
    masses = np.ones(1)
    for count in counts:
        masses = np.convolve(masses, _support_law(protocol, count, n - count))
    mean = n * (protocol.p + 2 * protocol.q)
    for observed in range(3 * n + 1):
        tail = masses[observed:].sum() if observed > mean else masses[: observed + 1].sum()
        assert protocol.total_tail(observed, n) >= min(1.0, 2 * tail) * (1 - 1e-9)
