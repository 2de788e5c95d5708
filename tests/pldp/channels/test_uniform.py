"""Uniform integers: exact by enumeration of all words, and redrawn where they must be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from pldp.channels import randomness
from pldp.channels.randomness import Keystream, Words, uniform_below
from tests.pldp.world import ALPHA


class _Scripted(Keystream):
    """Gives out these words, then always the last one."""

    def __init__(self, words: Words, last: int = 0) -> None:
        super().__init__(bytes(16))
        self._words, self._last = words, last

    def words(self, count: int) -> Words:
        given, self._words = self._words[:count], self._words[count:]
        return np.concatenate([given, np.full(count - given.size, self._last, dtype=np.uint64)])


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 16, 100, 4000, 32749, 61000, 65535, 65536])
def test_all_words_of_16_bits_give_every_integer_equally_often(bound: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(randomness, "_FEW", 1 << 16)
    monkeypatch.setattr(randomness, "_CHUNK_INTEGERS", 1 << 16)
    every = np.arange(1 << 16, dtype=np.uint16).view(np.uint64)
    # What is drawn again meets the word 1, whose product `bound` is in no surplus: it gives 0 (0 itself is accepted
    # only where there is no surplus; 65536 · 1 would give 1, and has none).
    drawn = uniform_below(bound, 1 << 16, _Scripted(every, 0x0001_0001_0001_0001))
    often, surplus = divmod(1 << 16, bound)
    expected = np.full(bound, often)
    expected[0] += surplus
    assert np.array_equal(np.bincount(drawn, minlength=bound), expected)


@pytest.mark.parametrize("bound", [3, 6, 40_000, 65_537, 3 << 30, (1 << 32) - 1, 1 << 32])
def test_words_of_32_bits_are_lemires(bound: int, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Against Python's integers, one word after another; chunks of 8, the redrawn words of a chunk come behind it.
    monkeypatch.setattr(randomness, "_FEW", 0)
    monkeypatch.setattr(randomness, "_CHUNK_INTEGERS", 8)
    words = np.random.default_rng(seed).integers(0, 1 << 64, 4096, dtype=np.uint64)
    drawn = uniform_below(bound, 100, _Scripted(words))
    halves = words.view(np.uint32).tolist()
    surplus, expected, place = (1 << 32) % bound, [], 0
    for start in range(0, 100, 8):
        size = min(8, 100 - start)
        chunk: list[int | None] = [None] * size
        while None in chunk:
            open_places = [i for i, integer in enumerate(chunk) if integer is None]
            for i, word in zip(open_places, halves[place : place + len(open_places)], strict=True):
                chunk[i] = word * bound >> 32 if word * bound % (1 << 32) >= surplus else None
            place += 2 * -(-len(open_places) // 2)  # words of 64 bits
        expected += chunk
    assert drawn.tolist() == expected


@pytest.mark.parametrize("bound", [2, 3, 10, 100, 32749, 40_000, 3 << 30])
def test_integers_are_uniform_and_neighbours_independent(bound: int, seed: int) -> None:
    # 3 × 10^5 draws over two chunk edges; classes of the integers, and pairs of neighbours; α = 1e-6 each.
    n, classes = 300_000, min(bound, 50)
    drawn = uniform_below(bound, n, Keystream.seeded(seed, bound)).astype(np.int64)
    assert int(drawn.max()) < bound
    edges = -(-np.arange(classes + 1, dtype=np.int64) * bound // classes)
    shares = np.diff(edges) / bound
    coarse = np.searchsorted(edges, drawn, side="right") - 1
    seen = np.bincount(coarse, minlength=classes)
    assert (np.square(seen - n * shares) / (n * shares)).sum() < chi2.isf(ALPHA, classes - 1)
    pairs = np.bincount(coarse[0::2] * classes + coarse[1::2], minlength=classes**2)
    expected = np.outer(shares, shares).ravel() * n / 2
    assert (np.square(pairs - expected) / expected).sum() < chi2.isf(ALPHA, classes**2 - 1)


@pytest.mark.parametrize("count", [0, 1, 7, 1 << 15, (1 << 15) + 1])
def test_length_is_what_was_asked_for(count: int) -> None:
    drawn = uniform_below(5, count, Keystream.secure())
    assert drawn.shape == (count,)
    assert drawn.dtype == np.uint32


@pytest.mark.parametrize("bound", [0, -1, (1 << 32) + 1])
def test_a_bound_that_words_cannot_reach_is_refused(bound: int) -> None:
    with pytest.raises(ValueError, match="between 1 and 2"):
        uniform_below(bound, 1, Keystream.secure())
