from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from pldp.channels.numeric.domain import CODES, Bounds, position, positions, round_codes, rounded_square
from pldp.channels.numeric.draws import bernoulli_exp, fair_bits, sample_without_replacement, uniform_long
from pldp.channels.randomness import Keystream, Words
from tests.pldp.world import ALPHA, z_bound


@pytest.mark.parametrize(
    ("lower", "upper"), [(0, 0), (1, 0), (math.nan, 1), (0, math.inf), (-math.inf, 0), (-1.7e308, 1.7e308)]
)
def test_bounds_that_are_reversed_equal_or_infinite_are_refused(lower: float, upper: float) -> None:
    with pytest.raises(ValueError, match="bound"):
        Bounds(lower, upper)


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.lists(st.floats(allow_nan=False), min_size=1))
def test_codes_are_the_clipped_values(lower: float, width: float, values: list[float]) -> None:
    bounds = Bounds(lower, lower + width)
    codes = bounds.encode(values)
    for value, code in zip(values, codes, strict=True):
        inside = min(max(value, bounds.lower), bounds.upper)
        exact = Fraction(inside - bounds.lower) / Fraction(bounds.upper - bounds.lower) * CODES
        assert abs(int(code) - exact) <= Fraction(1, 2) + Fraction(1, 10**4)
        assert 0 <= code <= CODES
    assert bounds.encode([-math.inf, math.inf]).tolist() == [0, CODES]
    assert bounds.decode(-1) == bounds.lower
    assert bounds.decode(1) == pytest.approx(bounds.upper)


def test_a_missing_value_needs_a_declared_one() -> None:
    bounds = Bounds(0, 10)
    assert bounds.encode([math.nan, 10.0], missing=5.0).tolist() == [CODES // 2, CODES]
    for missing in (None, math.nan):
        with pytest.raises(ValueError, match="missing"):
            bounds.encode([1.0, math.nan], missing)


def test_codes_keep_the_shape_of_a_table() -> None:
    assert Bounds(0, 1).encode(np.zeros((5, 3))).shape == (5, 3)
    assert np.array_equal(positions(np.array([0, CODES // 2, CODES], dtype=np.uint32)), [-1, 0, 1])


class _Counting(Keystream):
    """Halves of words that hold every 16-bit number once."""

    def __init__(self) -> None:
        super().__init__(bytes(16))

    def words(self, count: int) -> Words:
        return np.arange(4 * count, dtype=np.uint16).view(np.uint64)


@pytest.mark.parametrize("code", [0, 1, 65535, 65536, 123_456_789, CODES - 1, CODES])
def test_random_rounding_is_exactly_unbiased(code: int) -> None:
    # Over all 2^16 dithers the index sums to the code itself.
    rounded = round_codes(np.full(1 << 16, code, dtype=np.uint32), 15, _Counting())
    assert int(rounded.astype(np.int64).sum()) == code
    indices, times = np.unique(rounded, return_counts=True)
    squares = sum((Fraction(2 * int(i), 1 << 15) - 1) ** 2 * int(t) for i, t in zip(indices, times, strict=True))
    assert squares / (1 << 16) == rounded_square(code, 15)
    assert 0 <= rounded_square(code, 15) - position(code) ** 2 <= Fraction(1, 1 << 30)


def test_coarse_rounding_has_its_mean(seed: int) -> None:
    n, code = 16_384, 1_000_000_007
    share = code * 8 / CODES % 1
    rounded = round_codes(np.full(n, code, dtype=np.uint32), 3, Keystream.seeded(seed))
    z = (rounded.sum() - n * code * 8 / CODES) / np.sqrt(n * share * (1 - share))
    assert abs(z) < z_bound()


@pytest.mark.parametrize("bound", [1, 2, 10, 48])
@pytest.mark.parametrize("long", [False, True])
def test_uniform_integers_are_uniform(bound: int, long: bool, seed: int) -> None:
    # Long ones by their top: 2^40 multiples of the bound are uniform below bound · 2^40.
    n = 60_000
    whole = bound << 40 if long else bound
    seen = np.bincount(
        (uniform_long(whole, n, Keystream.seeded(seed, whole)) // np.uint64(whole // bound)).astype(np.int64),
        minlength=bound,
    )
    assert seen.size == bound
    if bound > 1:
        assert ((seen - n / bound) ** 2 / (n / bound)).sum() < chi2.isf(ALPHA / 8, bound - 1)


class _Scripted(Keystream):
    def __init__(self, *words: list[int]) -> None:
        super().__init__(bytes(16))
        self._script = list(words)

    def words(self, count: int) -> Words:
        drawn = np.array(self._script.pop(0), dtype=np.uint64)
        assert drawn.size == count
        return drawn


def test_what_lies_beyond_the_last_multiple_is_drawn_again() -> None:
    bound = 10**12
    whole = (1 << 64) // bound * bound
    assert uniform_long(bound, 2, _Scripted([whole, whole - 1], [7])).tolist() == [bound - 1, 7]
    assert uniform_long(1 << 40, 1, _Scripted([(1 << 64) - 1])).tolist() == [(1 << 40) - 1]
    for bad in (0, (1 << 63) + 1):
        with pytest.raises(ValueError, match="bound"):
            uniform_long(bad, 1, Keystream.secure())


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 1.0])
def test_bernoulli_of_an_exponential(share: float, seed: int) -> None:
    n, p = 100_000, math.exp(-share)
    hits = bernoulli_exp(np.full(n, int(1000 * share), dtype=np.uint64), 1000, Keystream.seeded(seed, str(share)))
    assert abs(hits.sum() - n * p) <= z_bound(4) * np.sqrt(n * p * (1 - p))


def test_fair_bits_are_fair(seed: int) -> None:
    bits = fair_bits(100_003, Keystream.seeded(seed))
    assert bits.size == 100_003
    assert abs(int(bits.sum()) - 50_001.5) < z_bound() * np.sqrt(100_003) / 2


def test_every_subset_is_equally_likely(seed: int) -> None:
    n = 60_000
    subsets = list(itertools.combinations(range(5), 3))
    rows = sample_without_replacement(n, 5, 3, Keystream.seeded(seed))
    seen = np.array([np.all(rows == subset, axis=1).sum() for subset in subsets])
    assert seen.sum() == n
    assert ((seen - n / 10) ** 2 / (n / 10)).sum() < chi2.isf(ALPHA, 9)
    assert sample_without_replacement(2, 4, 4, Keystream.seeded(seed)).tolist() == [[0, 1, 2, 3]] * 2
    with pytest.raises(ValueError, match="cannot choose"):
        sample_without_replacement(1, 3, 4, Keystream.seeded(seed))
