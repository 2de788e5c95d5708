"""Reports as columns of whole numbers: the way there and back at every width, and bits that stand beside a report."""

from __future__ import annotations

import numpy as np
import pytest

from pldp.channels.words import from_words, stray_bits, to_words, word_names, word_types

WIDTHS = [*range(1, 26), 63, 64, 65, 120, 127, 128, 129, 136, 188]
"""Bytes of a report: a single number up to 8, columns up to 128, a list beyond."""


def reports(width: int, n: int = 50) -> np.ndarray:
    return np.random.default_rng(width).integers(0, 256, (n, width), dtype=np.uint8)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("n", [0, 1, 50])
def test_there_and_back(n: int, width: int) -> None:
    rows = reports(width, n)
    columns = to_words(rows)
    assert np.array_equal(from_words(columns, width), rows)
    assert tuple(columns) == word_names(width)
    assert stray_bits(columns, width).size == 0
    named = to_words(rows, "level")
    assert tuple(named) == word_names(width, "level")
    assert np.array_equal(from_words(named, width, "level"), rows)


@pytest.mark.parametrize("width", WIDTHS)
def test_columns_have_the_types_that_clients_are_told(width: int) -> None:
    columns = to_words(reports(width))
    for name, kind in word_types(width).items():
        plain, _, length = kind.partition(" × ")
        assert columns[name].dtype == np.dtype(plain)
        assert columns[name].shape == ((50, int(length)) if length else (50,))


@pytest.mark.parametrize(
    ("width", "types"),
    [
        (1, {"report": "u1"}),
        (2, {"report": "u2"}),
        (3, {"report": "u4"}),
        (5, {"report": "u8"}),
        (8, {"report": "u8"}),
        (9, {"report_0": "u8", "report_1": "u8"}),
        (128, {f"report_{i}": "u8" for i in range(16)}),
        (129, {"report": "u8 × 17"}),
    ],
)
def test_one_number_up_to_64_bits_columns_up_to_1024_and_lists_beyond(width: int, types: dict[str, str]) -> None:
    assert word_types(width) == types


@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_value_is_the_lowest_bit(width: int) -> None:
    """Value j stands in bit j mod 64 of word j // 64, whatever this machine's order of bytes is."""
    for j in (0, 1, 7, 8 * width - 1):
        rows = np.zeros((1, width), dtype=np.uint8)
        rows[0, j // 8] = 1 << (j % 8)
        words = [int(word) for column in to_words(rows).values() for word in np.ravel(column)]
        assert words == [1 << (j % 64) if i == j // 64 else 0 for i in range(len(words))]


@pytest.mark.parametrize("width", [width for width in WIDTHS if (width > 8 and width % 8) or width in (3, 5, 6, 7)])
def test_bits_beyond_a_report_are_seen(width: int) -> None:
    """Every one of them, and no bit of the report itself."""
    rows = reports(width, 9)
    for strange in ("first", "last"):
        columns = {name: column.copy() for name, column in to_words(rows).items()}
        last = columns[word_names(width)[-1]]
        bits = 8 * last.dtype.itemsize
        used = 8 * width % 64 or 64
        place = used if strange == "first" else bits - 1
        (last if last.ndim == 1 else last[:, -1])[4] |= last.dtype.type(1 << place)
        assert stray_bits(columns, width).tolist() == [4]
        inside = {name: column.copy() for name, column in to_words(rows).items()}
        last = inside[word_names(width)[-1]]
        (last if last.ndim == 1 else last[:, -1])[4] |= last.dtype.type(1 << (used - 1))
        assert stray_bits(inside, width).size == 0


@pytest.mark.parametrize("width", [1, 8, 9, 17, 129])
def test_columns_of_another_width_are_refused(width: int) -> None:
    columns = {f"other_{i}": column for i, column in enumerate(to_words(reports(width)).values())}
    with pytest.raises(ValueError, match=f"reports of {width} bytes stand in the columns report"):
        from_words(columns, width)
