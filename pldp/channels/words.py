"""Reports as columns of whole numbers, which Polars, DuckDB and any client read: support can be recounted in SQL.

A report of the protocols is a row of bytes, the first value's bit the lowest of the first byte. Up to 64 bits that is
one unsigned number; up to 1,024 bits one number per 64, `report_0`, `report_1`, …; beyond, one list of numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pldp.channels.protocol import Reports

REPORT = "report"
_WORD = 8
_MOST_COLUMNS = 16
_SIZES = (1, 2, 4, 8)


def to_words(reports: Reports, name: str = REPORT) -> dict[str, NDArray[Any]]:
    """(person, byte) to columns of unsigned numbers; the last one is filled up with zeros."""
    n, width = reports.shape
    padded = _padded(width)
    if padded != width:
        wide = np.zeros((n, padded), dtype=np.uint8)
        wide[:, :width] = reports
        reports = wide
    if padded <= _WORD:
        return {name: np.ascontiguousarray(reports).view(f"<u{padded}")[:, 0]}
    words = np.ascontiguousarray(reports).view("<u8")
    if words.shape[1] > _MOST_COLUMNS:
        return {name: words}
    return {f"{name}_{i}": words[:, i] for i in range(words.shape[1])}


def from_words(columns: Mapping[str, NDArray[Any]], width: int, name: str = REPORT) -> Reports:
    """The rows of bytes behind columns; ValueError where they are not those of reports this wide."""
    padded = _padded(width)
    names = word_names(width, name)
    if any(column not in columns for column in names):
        raise ValueError(f"reports of {width} bytes stand in the columns {', '.join(names)}")
    first = np.ascontiguousarray(columns[names[0]])
    if padded <= _WORD:
        wide = first.astype(f"<u{padded}", copy=False).reshape(-1, 1).view(np.uint8)
    elif len(names) == 1:
        wide = first.astype("<u8", copy=False).view(np.uint8).reshape(len(first), padded)
    else:
        wide = np.stack([columns[column] for column in names], axis=1).astype("<u8", copy=False).view(np.uint8)
    return wide if padded == width else np.ascontiguousarray(wide[:, :width])


def stray_bits(columns: Mapping[str, NDArray[Any]], width: int, name: str = REPORT) -> NDArray[np.intp]:
    """Rows with a bit set beyond the width of a report: no protocol fills those up."""
    padded = _padded(width)
    if padded == width:
        return np.empty(0, dtype=np.intp)
    last = word_names(width, name)[-1]
    words = np.asarray(columns[last])
    if words.ndim > 1:
        words = words[:, -1]
    used = 8 * (width - (padded - words.dtype.itemsize))
    return np.flatnonzero(words >> words.dtype.type(used))


def word_names(width: int, name: str = REPORT) -> tuple[str, ...]:
    """The columns that reports this wide stand in."""
    words = _padded(width) // _WORD
    return (name,) if not 1 < words <= _MOST_COLUMNS else tuple(f"{name}_{i}" for i in range(words))


def word_types(width: int, name: str = REPORT) -> dict[str, str]:
    """Their types: u1 to u8, or `u8 × m` for a list of m numbers."""
    padded = _padded(width)
    if padded <= _WORD:
        return {name: f"u{padded}"}
    names = word_names(width, name)
    return dict.fromkeys(names, "u8") if len(names) > 1 else {name: f"u8 × {padded // _WORD}"}


def _padded(width: int) -> int:
    """The bytes that reports this wide take: a whole number, or several of eight bytes."""
    return next(size for size in _SIZES if size >= width) if width <= _WORD else -(-width // _WORD) * _WORD
