"""Uniform sets: tables that hold every set once, indices and splits that are exact, and all of it together."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import chi2

from pldp.channels import sets, weighted
from pldp.channels.randomness import Keystream, Words
from pldp.channels.sets import LEAF, block_rows, leaves, ranked, uniform_sets
from pldp.channels.subset import insert_bit
from pldp.channels.weighted import Split, blur, cumulated, rounded
from tests.pldp.world import ALPHA, z_bound


class _Scripted(Keystream):
    """Gives out these words, then always the last one."""

    def __init__(self, words: Sequence[int] | Words, last: int = 0) -> None:
        super().__init__(bytes(16))
        self._words, self._last = np.array(words, dtype=np.uint64), last

    def words(self, count: int) -> Words:
        first, self._words = self._words[:count], self._words[count:]
        return np.concatenate([first, np.full(count - first.size, self._last, dtype=np.uint64)])


def _members(masks: sets.Masks, positions: int) -> np.ndarray:
    """(user, position), zero or one."""
    bits = np.unpackbits(np.ascontiguousarray(masks.T).view(np.uint8), axis=1, bitorder="little")
    assert not bits[:, positions:].any()
    return bits[:, :positions]


@pytest.mark.parametrize("positions", range(LEAF + 1))
def test_the_tables_hold_every_set_of_every_size_once(positions: int) -> None:
    masks, numbers = ranked(positions)
    assert numbers.tolist() == [comb(positions, size) for size in range(positions + 1)]
    for size, (row, number) in enumerate(zip(masks, numbers.tolist(), strict=True)):
        listed = row[:number]
        assert np.unique(listed).size == number
        assert (np.bitwise_count(listed) == size).all()
        assert int(listed.max()) < 1 << positions


@pytest.mark.parametrize(("positions", "size"), [(1, 0), (1, 1), (5, 2), (9, 4), (16, 3), (16, 8), (15, 7), (16, 16)])
def test_ranks_are_lemires_and_the_surplus_is_drawn_again(positions: int, size: int) -> None:
    # Words at the edges of every rank, against Python's integers; what is rejected meets the last word, accepted.
    number = comb(positions, size)
    edges = [(rank << 32) // number for rank in range(number)] + [-(-(rank << 32) // number) for rank in range(number)]
    halves = np.array([min(edge, (1 << 32) - 1) for edge in edges], dtype=np.uint32)
    spare = (1 << 32) - 1  # its product leaves 2^32 − number: never in the surplus
    stream = _Scripted(halves.view(np.uint64), spare << 32 | spare)
    drawn = uniform_sets(positions, np.full(halves.size, size, dtype=np.uint16), stream)[0]
    surplus = (1 << 32) % number
    expected = [
        int(half) * number >> 32 if int(half) * number % (1 << 32) >= surplus else number - 1 for half in halves
    ]
    assert np.array_equal(drawn, ranked(positions)[0][size, expected])


@pytest.mark.parametrize("number", [comb(16, 7), comb(16, 8), comb(15, 7), comb(7, 3), 1])
def test_all_accepted_words_give_every_rank_equally_often(number: int) -> None:
    # Rank i has the words ⌈i 2^32/C⌉ … ⌈(i+1) 2^32/C⌉ − 1; those with a remainder below 2^32 mod C are the surplus.
    surplus, often = (1 << 32) % number, (1 << 32) // number
    ranks = np.arange(number, dtype=np.uint64)
    first = (ranks << np.uint64(32)) // np.uint64(number) + ((ranks << np.uint64(32)) % np.uint64(number) > 0)
    count = np.diff(np.append(first, np.uint64(1 << 32)))
    # Within a rank remainders rise by C from the first word's, which is below C: only that one can be in the surplus.
    rejected = first * np.uint64(number) % np.uint64(1 << 32) < surplus
    assert (count - rejected == often).all()


@given(st.integers(1, 40), st.integers(1, 40), st.data())
def test_weights_of_a_split_are_products_of_binomials(left: int, right: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(0, left + right))
    terms = [comb(left, j) * comb(right, size - j) for j in range(max(size - right, 0), min(size, left) + 1)]
    assert cumulated(left, right, size) == [0, *accumulate(terms)]
    assert cumulated(left, right, size)[-1] == comb(left + right, size)


@given(st.data())
def test_thresholds_are_no_further_from_the_truth_than_they_say(data: st.DataObject) -> None:
    widest = data.draw(st.sampled_from([1, 8, 300, 5000]))
    left, right = data.draw(st.integers(1, widest)), data.draw(st.integers(1, widest))
    size = data.draw(st.one_of(st.integers(0, left + right), st.sampled_from([0, 1, left, right, left + right])))
    sums = cumulated(left, right, size)
    exact = [0] * max(size - right, 0) + [(below << 64) // sums[-1] for below in sums[1:-1]]
    doubles = rounded(left, right, size)
    assert doubles.size == len(exact)
    assert (doubles[1:] >= doubles[:-1]).all()
    assert all(abs(int(one) - other) <= blur(min(left, right)) for one, other in zip(doubles, exact, strict=True))


def _sums(left: int, right: int, size: int) -> list[int]:
    """S_{j+1} for every j that is possible, by definition."""
    possible = range(max(size - right, 0), min(size, left) + 1)
    return [*accumulate(comb(left, j) * comb(right, size - j) for j in possible)]


@pytest.mark.parametrize(
    ("left", "right", "size"),
    [(1, 1, 1), (16, 3, 5), (16, 16, 13), (16, 16, 32), (3, 16, 17), (64, 35, 27), (512, 487, 269)],
)
def test_a_split_is_the_definition_at_and_beside_every_threshold(left: int, right: int, size: int) -> None:
    # U is unrolled as 16, 48 and then 64 digits at a time: numbers at, one step below and above every threshold of 64
    # and of 128 digits, which need up to three words; and just within and beyond what tables of doubles leave open.
    near = blur(min(left, right))
    sums = _sums(left, right, size)
    edges, tested = [below << 128 for below in sums], Split(left, right)
    for below in sums[:-1]:
        exact = (below << 128) // sums[-1]
        steps = {side * (near + more) << 64 for side in (-1, 1) for more in (-2, 0, 2)}
        beside = {exact - 1, exact + 1, exact >> 64 << 64, (exact >> 64) + 1 << 64, exact | (1 << 64) - 1}
        for digits in beside | {exact + step for step in {0, *steps}}:
            if not 0 <= digits < 1 << 128:
                continue
            high, low = divmod(digits, 1 << 64)
            # The first word gives 16 digits, the next word's upper 48 follow; then whole words.
            stream = _Scripted([high >> 48, (high & (1 << 48) - 1) << 16, low], last=0)
            drawn = tested.draw(np.array([size], dtype=np.uint16), stream)
            # The j with S_j / T ≤ U < S_{j+1} / T.
            assert drawn.tolist() == [max(size - right, 0) + bisect_right(edges, digits * sums[-1])]


@pytest.mark.parametrize(("left", "right", "size"), [(16, 16, 9), (32, 7, 11), (64, 35, 26)])
def test_the_guide_decides_as_the_thresholds_do(left: int, right: int, size: int) -> None:
    # Every first word of 16 digits, followed by zeros and by ones.
    words = np.arange(1 << 16, dtype=np.uint16)
    tested, many = Split(left, right), np.full(1 << 16, size, dtype=np.uint16)
    total = comb(left + right, size)
    edges = np.array([-(-(below << 16) // total) for below in cumulated(left, right, size)[1:-1]])
    least = max(size - right, 0)
    # Smallest U of the cell: thresholds not above it; largest: those below the next cell.
    lowest = least + np.searchsorted(edges, np.arange(1 << 16), side="right")
    assert np.array_equal(tested.draw(many, _Scripted(words.view(np.uint64), 0)), lowest)
    floors = np.array([(below << 16) // total for below in cumulated(left, right, size)[1:-1]])
    highest = least + np.searchsorted(floors, np.arange(1 << 16), side="right")
    assert np.array_equal(tested.draw(many, _Scripted(words.view(np.uint64), (1 << 64) - 1)), highest)


def test_tables_grow_with_the_sizes_that_occur() -> None:
    tested = Split(16, 16)
    for sizes in ([9, 9, 10], [3], [32, 0], [9, 10, 3]):
        drawn = tested.draw(np.array(sizes, dtype=np.uint16), _Scripted([0], 0))
        assert drawn.tolist() == [max(size - 16, 0) for size in sizes]
    assert tested.draw(np.zeros(0, dtype=np.uint16), Keystream.secure()).size == 0


def test_sizes_far_apart_have_tables_of_their_own() -> None:
    # Levels of few and of many members share a split: 4,000 rows between theirs take a second and 150 MB.
    tested = Split(4096, 904)
    for sizes in ([2690, 2689], [1, 0], [2700, 2671], [30]):
        drawn = tested.draw(np.array(sizes, dtype=np.uint16), _Scripted([0], 0))
        assert drawn.tolist() == [max(size - 904, 0) for size in sizes]
    assert sorted((first, last) for first, last, *_ in tested._tables) == [(0, 30), (2671, 2700)]


@pytest.mark.parametrize(("left", "right", "size"), [(16, 3, 5), (16, 16, 13), (64, 35, 27)])
def test_splits_follow_the_hypergeometric_law(left: int, right: int, size: int, seed: int) -> None:
    # χ² over the outcomes that expect ten draws or more and the rest together, α = 1e-6; one member more is caught.
    n, total = 200_000, comb(left + right, size)
    chances = np.array([comb(left, j) * comb(right, size - j) / total for j in range(size + 1)])
    likely = n * chances >= 10

    def distance(drawn_size: int) -> float:
        sizes = np.full(n, drawn_size, dtype=np.uint16)
        drawn = Split(left, right).draw(sizes, Keystream.seeded(seed, left, drawn_size))
        seen = np.bincount(drawn, minlength=size + 2)
        seen = np.append(seen[: size + 1][likely], n - seen[: size + 1][likely].sum())
        expected = np.append(n * chances[likely], n * max(chances[~likely].sum(), 1e-9))
        return float((np.square(seen - expected) / expected).sum())

    bound = chi2.isf(ALPHA, int(likely.sum()))
    assert distance(size) < bound
    assert distance(size + 1) > bound


@pytest.mark.parametrize("positions", [1, 2, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 99, 129, 255, 1000, 4097])
def test_sets_have_the_sizes_asked_for_at_every_width(positions: int) -> None:
    n = min(block_rows(positions), 2000 if positions < 500 else 300)
    all_of_them = (np.arange(n) * 7 % (positions + 1)).astype(np.uint16)
    all_of_them[:2] = 0, positions
    drawn = uniform_sets(positions, all_of_them, Keystream.seeded(positions))
    assert drawn.shape == (leaves(positions), all_of_them.size)
    assert np.array_equal(_members(drawn, positions).sum(axis=1), all_of_them)


@pytest.mark.parametrize(("positions", "size"), [(17, 1), (18, 2), (33, 1), (35, 2), (50, 49), (99, 1), (130, 1)])
def test_every_set_is_equally_likely_across_leaves(positions: int, size: int, seed: int) -> None:
    # All sets, told apart by their positions; χ² with α = 1e-6. First and last positions of every leaf are among them.
    n, block = 200_000, block_rows(positions)
    stream = Keystream.seeded(seed, positions, size)
    seen = np.zeros((positions, positions))
    for start in range(0, n, block):
        rows = min(block, n - start)
        members = _members(uniform_sets(positions, np.full(rows, size, dtype=np.uint16), stream), positions)
        if size > positions // 2:
            members = 1 - members
        few = np.nonzero(members)[1].reshape(rows, -1)
        np.add.at(seen, (few[:, 0], few[:, -1]), 1)
    counts = np.diagonal(seen) if min(size, positions - size) == 1 else seen[np.triu_indices(positions, 1)]
    assert counts.sum() == n
    expected = n / comb(positions, size)
    assert (np.square(counts - expected) / expected).sum() < chi2.isf(ALPHA, counts.size - 1)


@pytest.mark.parametrize(("positions", "size"), [(63, 17), (99, 27), (300, 80)])
def test_every_pair_of_positions_is_equally_likely(positions: int, size: int, seed: int) -> None:
    # E[1_i 1_j] = w (w − 1) / (n (n − 1)) in every cell, w / n on the diagonal; α = 1e-6 over the cells.
    n = block_rows(positions)
    drawn = uniform_sets(positions, np.full(n, size, dtype=np.uint16), Keystream.seeded(seed, positions))
    members = _members(drawn, positions).astype(np.float32)
    seen = np.asarray(members.T @ members, dtype=np.float64)
    chance = np.full((positions, positions), size * (size - 1) / (positions * (positions - 1)))
    np.fill_diagonal(chance, size / positions)
    z = np.abs(seen - n * chance) / np.sqrt(n * chance * (1 - chance))
    assert z.max() < z_bound(positions * (positions + 1) // 2)


@pytest.mark.parametrize("number", [np.uint16, np.uint32, np.uint64])
def test_inserting_a_bit_moves_what_stood_there_and_above(number: type[Any]) -> None:
    # Every place of the number, first and last included, against lists of bits.
    width = 8 * np.dtype(number).itemsize
    rng = np.random.default_rng(0)
    for place in range(width):
        for bit in (0, 1):
            others = rng.integers(0, 2, (50, width - 1))
            numbers = np.array([sum(int(one) << j for j, one in enumerate(row)) for row in others], dtype=number)
            drawn = insert_bit(numbers, np.full(50, place, dtype=number), np.full(50, bit, dtype=np.uint8))
            expected = [sum(int(one) << j for j, one in enumerate([*row[:place], bit, *row[place:]])) for row in others]
            assert drawn.tolist() == expected
            assert drawn.dtype == number


def test_the_last_outcome_of_a_word_is_no_table_entry() -> None:
    # A size that could be drawn must not look like the mark of what is undecided.
    assert int(weighted._UNDECIDED) > (1 << 16) // 2
