"""Eight bits at a time: every byte has exactly its chance, whichever way it is drawn."""

from __future__ import annotations

from bisect import bisect_right
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2

from pldp.channels import octets
from pldp.channels.exact import SCALE
from pldp.channels.octets import Octets, bernoulli_octets
from pldp.channels.randomness import Keystream, Words
from tests.pldp.world import ALPHA, z_bound

_THRESHOLDS = [0, 1, 3, 1 << 40, SCALE // 256, 0x44D7_2F3A_91C0_55E7, SCALE // 3, SCALE // 2, SCALE - 1, SCALE]
_TAIL = 496 - 56
_OUE = 0x44D7_2F3A_91C0_55E7
"""About q = 1 / (e + 1), as of ε = 1."""


class _Scripted(Keystream):
    """Words from a list, then from a seed."""

    def __init__(self, *scripted: int, seed: int = 0) -> None:
        super().__init__(bytes(16))
        self._scripted, self._rest = list(scripted), Keystream.seeded(seed, "scripted")

    def words(self, count: int) -> Words:
        if not self._scripted:
            return self._rest.words(count)
        first, self._scripted = self._scripted[:count], self._scripted[count:]
        assert len(first) == count
        return np.array(first, dtype=np.uint64)


@pytest.mark.parametrize("threshold", _THRESHOLDS)
def test_every_byte_has_exactly_its_chance(threshold: int) -> None:
    """Whole cells, and what is left of a byte's chance over the last cells: together q^s (1 − q)^(8 − s)."""
    table, q = Octets(threshold), Fraction(threshold, SCALE)
    cells = np.bincount(table.values, minlength=256).tolist()
    parts = np.diff(np.array([0, *table.ends], dtype=object))
    for value in range(256):
        share = Fraction(cells[value], 1 << 16) + Fraction(int(parts[value]), 1 << 512)
        assert share == q ** value.bit_count() * (1 - q) ** (8 - value.bit_count())
    # What is left fills the cells that are left, no more and no less, so that every digit drawn there counts.
    assert table.ends[-1] == ((1 << 16) - table.values.size) << 496
    assert (1 << 16) - table.values.size < 256


@pytest.mark.parametrize("threshold", [1, 1 << 40, _OUE, SCALE // 3, SCALE - 1])
def test_places_in_what_is_left_are_compared_by_all_their_digits(threshold: int) -> None:
    """56 digits beside the number of the cell decide, unless an end begins with them: then all 496 do."""
    table = Octets(threshold)
    left = (1 << 16) - table.values.size
    edges = {cell << 56 for cell in range(left)}
    edges |= {int(first) + step for first in table.firsts for step in (-1, 0, 1)}
    for begun in sorted(edge for edge in edges if 0 <= edge < left << 56):
        end = next((end for end in table.ends if end >> _TAIL == begun), 0) & ((1 << _TAIL) - 1)
        for rest in {0, max(end - 1, 0), end, (1 << _TAIL) - 1}:
            words = [int(word) for word in np.frombuffer(rest.to_bytes(56, "little"), dtype=np.uint64)]
            tied = begun in table.firsts.tolist()
            stream = _Scripted((begun << 8) % SCALE, *(words if tied else ()))
            drawn = table._settle(np.array([begun >> 56]), stream)
            assert int(drawn[0]) == bisect_right(table.ends, begun << _TAIL | rest)
            assert not stream._scripted, "digits were drawn that no comparison needs, or too few"


def test_a_place_beyond_the_table_is_drawn_anew() -> None:
    """The first word of 16 bits names a cell of the table, the last one the last cell of what is left."""
    table = Octets(_OUE)
    out = np.empty(4, dtype=np.uint8)
    words = [0, 1, table.values.size - 1, (1 << 16) - 1]
    digits = SCALE - 1
    table.draw(out, _Scripted(sum(word << 16 * i for i, word in enumerate(words)), digits))
    assert out.tolist() == [0, 0, int(table.values[-1]), bisect_right(table.ends, table.ends[-1] - 1)]
    table.draw(out, _Scripted(0, 0))
    assert out.tolist() == [0, 0, 0, 0]


def _bits(threshold: int, n_bytes: int, seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    return np.unpackbits(bernoulli_octets(threshold, n_bytes, Keystream.seeded(seed, "octets")), bitorder="little")


@pytest.mark.parametrize("share", [0.2689414213699951, 0.02, 1 / 256 + 1e-5, 1e-5])
def test_bytes_and_bits_have_their_frequencies(share: float, seed: int) -> None:
    # α = 1e-6: bytes by χ² of numbers of ones, bits by their positions in eight bytes.
    threshold, n = int(share * SCALE), 1 << 19
    drawn = bernoulli_octets(threshold, n, Keystream.seeded(seed, "frequencies"))
    ones = np.bincount(np.bitwise_count(drawn), minlength=9)
    law = np.array([float(comb) * share**s * (1 - share) ** (8 - s) for s, comb in enumerate((1, 8, 28, 56, 70))])
    expected = np.append(law, 1 - law.sum()) * n
    seen = np.append(ones[:5], ones[5:].sum())
    kept = expected > 20
    assert np.square(seen - expected)[kept] @ (1 / expected[kept]) < chi2.isf(ALPHA, kept.sum())
    bits = np.unpackbits(drawn, bitorder="little").reshape(-1, 64).astype(np.int64)
    z = (bits.sum(axis=0) - len(bits) * share) / np.sqrt(len(bits) * share * (1 - share))
    assert np.abs(z).max() < z_bound(64)


def test_a_threshold_ten_percent_off_is_caught(seed: int) -> None:
    p = 0.2689414213699951
    table = _bits(int(1.1 * p * SCALE), 1 << 19, seed).reshape(-1, 64)
    z = (table.sum(axis=0) - len(table) * p) / np.sqrt(len(table) * p * (1 - p))
    assert np.abs(z).min() > z_bound(64)


def test_neighbouring_bits_are_uncorrelated(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Within a byte, which one place draws, between bytes, and a chunk apart.
    monkeypatch.setattr(octets, "_CHUNK", 1 << 12)
    p, chunk = 0.3, 8 << 12
    bits = _bits(int(p * SCALE), 1 << 18, seed) - p
    lags = [*range(1, 10), 63, 64, 65, chunk - 1, chunk, chunk + 1]
    z = [float((bits[:-lag] * bits[lag:]).sum() / (p * (1 - p)) / np.sqrt(bits.size - lag)) for lag in lags]
    assert np.abs(z).max() < z_bound(len(lags))


def test_chunks_and_their_ends_are_filled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(octets, "_CHUNK", 8)
    for size in (0, 1, 3, 4, 5, 8, 9, 16, 23):
        assert bernoulli_octets(SCALE, size, Keystream.secure()).tolist() == [255] * size
        assert bernoulli_octets(0, size, Keystream.secure()).tolist() == [0] * size


def test_a_threshold_is_a_probability() -> None:
    for threshold in (-1, SCALE + 1):
        with pytest.raises(ValueError, match="2\\^64"):
            Octets(threshold)
