from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2, norm

from pldp.channels import randomness
from pldp.channels.exact import BITS, SCALE
from pldp.channels.randomness import Keystream, Words, bernoulli_bits
from tests.pldp.world import ALPHA, z_bound

_ALL = SCALE - 1
_GROUP = 8  # digits decided at a time
_THRESHOLDS = [
    0,
    1,
    2,
    3,
    SCALE // 2 - 1,
    SCALE // 2,
    SCALE // 2 + 1,
    SCALE - 2,
    SCALE - 1,
    0x0123_4567_89AB_CDEF,
    255 << 56,
]


class _Scripted(Keystream):
    """Words from a list of arrays, remembered in the order they were given out."""

    def __init__(self, ones: float, rng: np.random.Generator) -> None:
        super().__init__(bytes(16))
        self._ones, self._rng = ones, rng
        self.given: list[list[int]] = []

    def words(self, count: int) -> Words:
        bits = self._rng.random((count, 64)) < self._ones
        drawn: Words = np.packbits(bits, axis=1).view(np.uint64).reshape(-1)
        self.given.append([int(word) for word in drawn])
        return drawn


def _slow_bits(threshold: int, n_words: int, chunk: int, tied_chunks: int, given: list[list[int]]) -> tuple[bytes, int]:
    """The same comparisons with Python's integers, one 64-bit uniform a bit; also the most digits a bit needed.

    Where a random digit is 1, the uniform's digit equals the threshold's. A lane that is decided keeps its digits so
    far; the rest of its uniform cannot matter.
    """
    calls = iter([call for call in given if call])
    deepest = 0
    uniforms = [[0] * 64 for _ in range(n_words)]
    open_lanes = [set(range(64)) for _ in range(n_words)]
    # Two groups of digits a chunk; then what is tied in so many chunks goes on together.
    chunks = [range(start, min(start + chunk, n_words)) for start in range(0, n_words, chunk)]
    rounds: list[tuple[range, Sequence[int]]] = []
    for start in range(0, len(chunks), tied_chunks):
        some = chunks[start : start + tied_chunks]
        rounds += [(part, (0, _GROUP)) for part in some]
        rounds.append((range(some[0][0], some[-1][-1] + 1), range(2 * _GROUP, BITS, _GROUP)))
    for part, groups in rounds:
        words = [word for word in part if open_lanes[word]]
        for first in groups:
            if not words:
                break
            drawn = next(calls)
            for digit in range(first, first + _GROUP):
                place = BITS - 1 - digit
                own = (threshold >> place) & 1
                for column, word in enumerate(words):
                    random_word = drawn[(digit - first) * len(words) + column]
                    for lane in sorted(open_lanes[word]):
                        equal = (random_word >> lane) & 1
                        uniforms[word][lane] |= (own if equal else 1 - own) << place
                        if not equal:
                            open_lanes[word].discard(lane)
                            deepest = max(deepest, digit + 1)
            words = [word for word in words if open_lanes[word]]
    if any(open_lanes):
        deepest = BITS
    out = [sum((u < threshold) << lane for lane, u in enumerate(uniform)) for uniform in uniforms]
    assert next(calls, None) is None, "words were drawn that no comparison needed"
    return b"".join(word.to_bytes(8, "little") for word in out), deepest


@pytest.mark.parametrize("threshold", _THRESHOLDS)
@pytest.mark.parametrize("ones", [0.5, 0.9, 0.97])
def test_bits_are_integer_comparisons(threshold: int, ones: float, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Words with many ones keep ties alive past 8, 16, … digits; chunks of 3 words make 7 words cross two boundaries.
    monkeypatch.setattr(randomness, "_CHUNK_WORDS", 3)
    monkeypatch.setattr(randomness, "_TIED_CHUNKS", 2)
    stream = _Scripted(ones, np.random.default_rng(seed))
    n_bytes = 53
    drawn = bernoulli_bits(threshold, n_bytes, stream).tobytes()
    slow, deepest = _slow_bits(threshold, 7, 3, 2, stream.given)
    assert drawn == slow[:n_bytes]
    # 448 bits: the chance that none ties past the first group is below 1e-80 where ones are 0.9 of all digits.
    assert deepest > {0.5: 0, 0.9: _GROUP, 0.97: 4 * _GROUP}[ones]


@pytest.mark.parametrize("threshold", _THRESHOLDS)
def test_a_tie_to_the_last_digit_is_not_less(threshold: int, seed: int) -> None:
    stream = _Scripted(1.0, np.random.default_rng(seed))
    assert not bernoulli_bits(threshold, 16, stream).any()


class _Enumerated(Keystream):
    """256 lanes that hold every pattern of eight digits once, after `before` groups in which every lane ties."""

    def __init__(self, before: int) -> None:
        super().__init__(bytes(16))
        self._before = before

    def words(self, count: int) -> Words:
        if self._before:
            self._before -= 1
            return np.full(count, _ALL, dtype=np.uint64)
        # The one lane that ties in the enumerated group meets zeros, so it is decided in the next digit.
        if count != 4 * _GROUP:
            return np.zeros(count, dtype=np.uint64)
        patterns = np.arange(256)
        planes = (patterns[None, :] >> np.arange(_GROUP)[:, None]) & 1
        words: Words = np.packbits(planes.astype(np.uint8), axis=1, bitorder="little").reshape(-1).view(np.uint64)
        return words


@pytest.mark.parametrize("group", range(BITS // _GROUP))
def test_every_group_of_digits_has_its_exact_share(group: int) -> None:
    # Whatever a random digit stands for: of all 256 equally likely patterns exactly m are below m, and the one that
    # ties is decided by the digits behind it, here by zeros: never less.
    below = BITS - _GROUP * (group + 1)
    for m in range(256):
        bits = np.unpackbits(bernoulli_bits(m << below, 32, _Enumerated(group)))
        assert int(bits.sum()) == m


def _bits(threshold: int, n_bytes: int, seed: int) -> NDArray[np.uint8]:
    return np.unpackbits(bernoulli_bits(threshold, n_bytes, Keystream.seeded(seed, "bits")), bitorder="little")


@pytest.mark.parametrize("epsilon_share", [0.5, 0.7310585786300049, 0.02, 1 / 256 + 1e-5])
def test_every_bit_position_has_its_frequency(epsilon_share: float, seed: int) -> None:
    # α = 1e-6 over 64 positions (χ², 64 degrees of freedom): a position left unrandomised would show at once.
    threshold = int(epsilon_share * SCALE)
    p = threshold / SCALE
    table = _bits(threshold, 1 << 20, seed).reshape(-1, 64)
    z = (table.sum(axis=0) - len(table) * p) / np.sqrt(len(table) * p * (1 - p))
    assert np.square(z).sum() < chi2.isf(ALPHA, 64)
    assert np.abs(z).max() < z_bound(64)


def test_a_threshold_ten_percent_off_is_caught(seed: int) -> None:
    p = 0.25
    table = _bits(int(1.1 * p * SCALE), 1 << 20, seed).reshape(-1, 64)
    z = (table.sum(axis=0) - len(table) * p) / np.sqrt(len(table) * p * (1 - p))
    assert np.abs(z).min() > z_bound(64)


def test_first_and_last_bits_and_chunk_edges_have_their_frequency(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Many short draws over chunks of 2 words: the first and last bit of every chunk, and of the whole, in 21 bytes.
    monkeypatch.setattr(randomness, "_CHUNK_WORDS", 2)
    stream = Keystream.seeded(seed, "edges")
    repeats, p = 4000, 0.3
    table = np.stack(
        [np.unpackbits(bernoulli_bits(int(p * SCALE), 21, stream), bitorder="little") for _ in range(repeats)]
    )
    z = (table.sum(axis=0) - repeats * p) / np.sqrt(repeats * p * (1 - p))
    # α = 1e-6 over 168 positions.
    assert np.abs(z).max() < z_bound(168)


def test_neighbouring_bits_are_uncorrelated(seed: int) -> None:
    # Lags: neighbours, bytes, words, and one chunk apart; under independence each correlation is N(0, 1/m).
    p = 0.3
    chunk = 64 * randomness._CHUNK_WORDS
    bits = _bits(int(p * SCALE), 2 * chunk // 8 + 8, seed) - p
    lags = [1, 2, 3, 7, 8, 9, 63, 64, 65, 128, 512, chunk - 1, chunk, chunk + 1]
    z = [float((bits[:-lag] * bits[lag:]).sum() / (p * (1 - p)) / np.sqrt(bits.size - lag)) for lag in lags]
    assert np.abs(z).max() < z_bound(len(lags))


def test_the_last_chunk_is_as_random_as_the_first(seed: int) -> None:
    # One byte more than a chunk: the rest must not stay zero, nor repeat the chunk's beginning.
    chunk_bytes = 8 * randomness._CHUNK_WORDS
    drawn = bernoulli_bits(SCALE // 2, chunk_bytes + 4096, Keystream.seeded(seed))
    tail, head = drawn[chunk_bytes:], drawn[:4096]
    ones = int(np.unpackbits(tail).sum())
    same = int((np.unpackbits(tail) == np.unpackbits(head)).sum())
    for count in (ones, same):
        assert abs(count - 16384) < norm.isf(ALPHA / 4) * np.sqrt(32768 / 4)


@pytest.mark.parametrize("n_bytes", [0, 1, 7, 8, 9, 1000])
def test_length_is_what_was_asked_for(n_bytes: int) -> None:
    drawn = bernoulli_bits(SCALE // 3, n_bytes, Keystream.secure())
    assert drawn.shape == (n_bytes,)
    assert drawn.dtype == np.uint8


def test_a_seed_repeats_and_labels_part_streams() -> None:
    def draw(*key: int | str) -> bytes:
        seed, *labels = key
        return bernoulli_bits(SCALE // 3, 4096, Keystream.seeded(int(seed), *labels)).tobytes()

    assert draw(1, "a", 2) == draw(1, "a", 2)
    different = [draw(1), draw(2), draw(1, "a"), draw(1, "b"), draw(1, "a", 1), draw(1, "a", 2), draw(1, "a1")]
    assert len(set(different)) == len(different)


def test_secure_streams_differ_and_move_on() -> None:
    one, other = Keystream.secure(), Keystream.secure()
    drawn = [one.words(8).tobytes(), other.words(8).tobytes(), one.words(8).tobytes()]
    assert len(set(drawn)) == 3


def test_words_live_in_one_buffer() -> None:
    # Documented: valid until the next call.
    stream = Keystream.seeded(1)
    first = stream.words(4)
    kept = first.copy()
    stream.words(4)
    assert not np.array_equal(first, kept)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_forked_stream_refuses() -> None:
    stream = Keystream.secure()
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            stream.words(1)
            os.write(write, b"drew")
        except RuntimeError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    said = os.read(read, 200).decode()
    os.close(read)
    os.close(write)
    assert "inherited through fork" in said
    assert stream.words(1).size == 1


def test_a_copy_is_the_stream_itself_beyond_one_buffer() -> None:
    one, other = Keystream.seeded(7), Keystream.seeded(7)
    buffer = randomness._BUFFER_BYTES // 8
    copied = one.copy(buffer + 3)
    assert np.array_equal(copied[:buffer], other.words(buffer))
    assert np.array_equal(copied[buffer:], other.words(3))
