"""Padding and sampling: exact ε by enumeration of all sets, unbiased supports, both phases on made-up baskets."""

from __future__ import annotations

from fractions import Fraction
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from pldp.channels.exact import SCALE, within
from pldp.channels.krr import KRR
from pldp.channels.randomness import Keystream
from pldp.questions.items.mining import Search
from pldp.questions.items.sampling import (
    SetSampling,
    amplified_krr,
    held_sets,
    judge_sampled,
    likely_items,
    likely_sets,
)
from tests.pldp.questions.items.world import Table, columns, skewed, true_support
from tests.pldp.world import z_bound

Integers = NDArray[np.int64]


def sets_of(table: Table) -> tuple[Integers, Integers]:
    return np.concatenate([[0], np.cumsum(table.sum(axis=1))]), np.nonzero(table)[1]


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 4), st.fractions(Fraction(1, 10), 4, max_denominator=20))
def test_the_exact_ratio_is_that_of_all_sets(n_items: int, length: int, epsilon: Fraction) -> None:
    sampling = SetSampling.for_budget(n_items, length, epsilon, allowed=["krr"])
    protocol = sampling.protocol
    subsets = chain.from_iterable(combinations(range(n_items), size) for size in range(n_items + 1))
    rows = []
    for own in subsets:
        places = max(len(own), length)
        members = [*own, *(n_items + place for place in range(len(own), places))]
        drawn = [Fraction(members.count(y), places) for y in range(n_items + length)]
        rows.append([share * protocol.exact_p + (1 - share) * protocol.exact_q for share in drawn])
        assert sum(rows[-1]) == 1
    worst = max(max(column) / min(column) for column in zip(*rows, strict=True))
    assert worst == sampling.worst_ratio
    assert within(sampling.worst_ratio, epsilon)
    if epsilon * length < 20:  # and little is left over
        assert not within(sampling.worst_ratio, epsilon - Fraction(1, 10**9))


def test_only_krr_gains_from_sampling() -> None:
    for name in ("olh", "oue", "subset"):
        sampling = SetSampling.for_budget(50, 4, Fraction(1), allowed=[name])
        assert sampling.worst_ratio == sampling.protocol.worst_ratio
        assert within(sampling.worst_ratio, Fraction(1))
    amplified = amplified_krr(54, 4, Fraction(1))
    assert amplified.worst_ratio > KRR.for_budget(54, Fraction(1)).worst_ratio


def test_small_universes_take_krr_and_large_ones_do_not() -> None:
    assert isinstance(SetSampling.for_budget(20, 5, Fraction(2)).protocol, KRR)
    assert not isinstance(SetSampling.for_budget(10_000, 5, Fraction(1)).protocol, KRR)


@pytest.mark.parametrize("name", ["krr", "oue", "olh"])
def test_supports_are_unbiased(name: str, seed: int) -> None:
    n, table = 40_000, skewed(40_000, 6, 3)
    length = int(table.sum(axis=1).max())
    truth = table.mean(axis=0)
    sampling, wrong = (
        SetSampling.for_budget(6, length, Fraction(2) * factor, allowed=[name]) for factor in (1, Fraction(11, 10))
    )
    error = np.sqrt(sampling.noise_variance(truth) / n)
    offsets, items = sets_of(table)

    def deviations(drawn: SetSampling, repeats: int) -> NDArray[np.float64]:
        stream = Keystream.seeded(seed, "sampling", name)
        runs = [drawn.protocol.support(drawn.perturb(offsets, items, stream)) for _ in range(repeats)]
        mean = np.mean([sampling.estimate(own, n)[0] for own in runs], axis=0)
        return np.abs(mean - truth) / error * repeats**0.5

    assert deviations(sampling, 10).max() < z_bound(6)
    assert deviations(wrong, 10).max() > z_bound(6)


def test_members_are_drawn_evenly_and_places_beyond_are_dummies(seed: int) -> None:
    sampling = SetSampling.for_budget(5, 3, Fraction(1), allowed=["krr"])
    n = 30_000
    rows = [[], [4], [0, 2], [0, 1, 2, 3, 4]]
    expected = {0: {5: 3, 6: 3, 7: 3}, 1: {4: 3, 6: 3, 7: 3}, 2: {0: 3, 2: 3, 7: 3}, 3: dict.fromkeys(range(5), 5)}
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows * n])])
    items = np.array(list(chain.from_iterable(rows * n)))
    drawn = sampling.draw(offsets, items, Keystream.seeded(seed, "draw")).reshape(n, 4)
    for row, law in expected.items():
        counts = np.bincount(drawn[:, row], minlength=8)
        for value in range(8):
            chance = 1 / law[value] if value in law else 0.0
            assert abs(counts[value] - n * chance) <= z_bound(32) * np.sqrt(n * chance * (1 - chance))


def test_longer_sets_are_understated() -> None:
    table = np.ones((20_000, 4), dtype=bool)
    sampling = SetSampling.for_budget(4, 2, Fraction(3), allowed=["krr"])
    counts = sampling.protocol.support(sampling.perturb(*sets_of(table), Keystream.seeded(1)))
    support, error = sampling.estimate(counts, 20_000)
    assert (np.abs(support - 0.5) < 6 * error).all()  # each is drawn with 1/4 where 1/2 was assumed


def test_two_phases_find_the_frequent_sets(seed: int) -> None:
    """Half of the users name items, the other half sets of the likely ones."""
    n, d = 120_000, 300
    rng = np.random.default_rng(5)
    table = rng.random((n, d)) < 0.002
    table[:, 17] |= rng.random(n) < 0.5
    table[:, 40] |= table[:, 17] & (rng.random(n) < 0.7)
    table[:, 250] |= rng.random(n) < 0.3
    stream, search = Keystream.seeded(seed, "phases"), Search(0.1, 2)
    first, second = table[: n // 2], table[n // 2 :]

    one = SetSampling.for_budget(d, 3, Fraction(3))
    counts = one.protocol.support(one.perturb(*sets_of(first), stream))
    support, error = one.estimate(counts, len(first))
    items = likely_items(support, error, 8, search)
    assert {17, 40, 250} <= set(items.tolist())

    candidates = likely_sets(items, support, 16, 2)
    offsets, held = held_sets(columns(second), candidates)
    two = SetSampling.for_budget(sum(map(len, candidates)), 2, Fraction(3))
    found = judge_sampled(
        two, candidates, two.protocol.support(two.perturb(offsets, held, stream)), len(second), search
    )
    rows = {tuple(row): k for k, row in enumerate(found[0].items.tolist())}
    best = rows[17, 40]
    assert found[0].probability_frequent[best] > 0.99
    # Some users hold three candidate sets or more: their sets are understated by at most a third of their share.
    many = float((np.diff(offsets) > 2).mean())
    assert abs(found[0].support[best] - true_support(second, (17, 40))) < 6 * found[0].standard_error[best] + many


@given(st.integers(1, 200), st.integers(2, 6), st.integers(0, 2**32 - 1))
def test_held_sets_are_those_held(n: int, d: int, seed: int) -> None:
    table = np.random.default_rng(seed).random((n, d)) < 0.6
    candidates = [np.array(list(combinations(range(d), m)), dtype=np.int32) for m in (2, 3) if m <= d]
    offsets, held = held_sets(columns(table), candidates)
    numbered = [own for level in candidates for own in level.tolist()]
    for row in range(n):
        mine = held[offsets[row] : offsets[row + 1]].tolist()
        assert mine == [k for k, own in enumerate(numbered) if table[row, own].all()]


def test_likely_sets_are_those_of_largest_products() -> None:
    support = np.array([0.5, 0.4, 0.3, 0.01])
    found = likely_sets(np.arange(4, dtype=np.int32), support, 4, 3)
    assert [level.tolist() for level in found] == [[[0, 1], [0, 2], [1, 2]], [[0, 1, 2]]]
    assert likely_sets(np.empty(0, dtype=np.int32), support, 4, 3) == []


def test_bad_input_is_named() -> None:
    sampling = SetSampling.for_budget(5, 2, Fraction(1))
    with pytest.raises(ValueError, match="not declared"):
        sampling.draw(np.array([0, 1]), np.array([5]), Keystream.secure())
    with pytest.raises(ValueError, match="row 1 holds an item twice"):
        sampling.draw(np.array([0, 1, 3]), np.array([4, 2, 2]), Keystream.secure())
    with pytest.raises(ValueError, match="no reports"):
        sampling.estimate(np.zeros(7, dtype=np.int64), 0)
    with pytest.raises(ValueError, match="length"):
        SetSampling.for_budget(5, 0, Fraction(1))
    with pytest.raises(ValueError, match="at least one declared item"):
        SetSampling(0, 2, sampling.protocol)
    with pytest.raises(ValueError, match="as many dummies"):
        SetSampling(6, 2, sampling.protocol)
    with pytest.raises(ValueError, match="no protocol serves"):
        SetSampling.for_budget(5, 2, Fraction(1, SCALE**2))
