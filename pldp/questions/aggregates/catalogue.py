"""The public catalogue: which item counts how much for which attribute, reduced to the items that can bind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Units = NDArray[np.int64]

_CHUNK_ITEMS = 1 << 16  # rows made dense at a time: 16 MB at 30 attributes
_LARGEST_UNITS = 1 << 20
_MOST_THRESHOLDS = 64  # thresholds of one attribute kept as bit sets; finer weights are compared row by row
_WIDEST_CODE = 1 << 62


@dataclass(frozen=True)
class Catalogue:
    """Maximal distinct rows of the item × attribute matrix A, in whole units of each attribute's grid.

    `rows[i, j]` · `grid[j]` is what one item of row i adds to attribute j. Adding or removing an item moves the
    aggregates by its row, so a row that another one covers in every attribute can never be the worst case
    (multiupp Eq. 5): dropping it changes neither promise nor optimum.
    """

    attributes: tuple[str, ...]
    rows: Units
    grid: tuple[Fraction, ...]
    n_items: int
    n_distinct: int

    @classmethod
    def from_triples(
        cls,
        attributes: Sequence[str],
        items: NDArray[np.integer[Any]],
        columns: NDArray[np.integer[Any]],
        weights: NDArray[Any] | None = None,
        *,
        n_items: int,
        grid: Fraction = Fraction(1),
    ) -> Self:
        """Entries (item, attribute, weight) of a sparse matrix, items numbered 0 … n_items − 1; no weights: 1 each."""
        values = np.ones(items.size, dtype=np.int64) if weights is None else weights
        if not items.size == columns.size == values.size:
            raise ValueError("catalogue entries must have an item, an attribute and a weight each")
        if items.size and not (items.min() >= 0 and items.max() < n_items):
            raise ValueError(f"catalogue items must be numbered 0 … {n_items - 1}")
        if items.size and not (columns.min() >= 0 and columns.max() < len(attributes)):
            raise ValueError(f"catalogue attributes must be numbered 0 … {len(attributes) - 1}")
        cells = items.astype(np.int64) * len(attributes) + columns
        order = np.argsort(cells, kind="stable")
        if np.any(np.diff(cells[order]) == 0):
            first = int(cells[order][np.flatnonzero(np.diff(cells[order]) == 0)[0]]) // len(attributes)
            raise ValueError(f"catalogue: item {first} lists an attribute twice; give every pair once")
        chunks = _dense_chunks(cells[order], values[order], n_items, len(attributes))
        return cls._reduce(attributes, chunks, 0, grid)

    @classmethod
    def _reduce(cls, attributes: Sequence[str], chunks: Iterator[NDArray[Any]], first: int, grid: Fraction) -> Self:
        if not attributes or len(set(attributes)) != len(attributes):
            raise ValueError("catalogue attributes must be at least one, each named once")
        if grid <= 0:
            raise ValueError(f"catalogue grid must be > 0 (got {grid})")
        distinct = np.zeros((0, len(attributes)), dtype=np.int64)
        for chunk in chunks:
            units = _whole_units(chunk, grid, attributes, first)
            first += len(chunk)
            # Distinct rows of what was seen so far, so that memory follows them and not the items.
            distinct = _distinct(np.concatenate([distinct, _distinct(units)]))
        if not first:
            raise ValueError("catalogue must hold at least one item")
        empty = np.flatnonzero(distinct.max(axis=0) == 0)
        if empty.size:
            raise ValueError(
                f"catalogue attribute {attributes[empty[0]]!r} belongs to no item, so nothing can be said about it: "
                "leave it out"
            )
        # The coarsest grid that still holds all weights has the least noise.
        common = np.gcd.reduce(distinct, axis=0)
        rows = maximal_rows(distinct // common)
        fine = tuple(grid * int(factor) for factor in common)
        return cls(tuple(attributes), rows, fine, first, len(distinct))

    @property
    def sensitivity(self) -> Units:
        """Δ_j in units: the most that one item adds to attribute j (multiupp Theorem 3's C_j)."""
        most: Units = self.rows.max(axis=0)
        return most

    @property
    def separable(self) -> bool:
        """Whether every binding item has one attribute only, so that attributes do not compete for the budget."""
        return bool(np.all(np.count_nonzero(self.rows, axis=1) == 1))

    def units(self, weights: NDArray[Any]) -> Units:
        """Items' weights (item × attribute) as this catalogue's whole units: what the aggregates add up."""
        columns = [
            _whole_units(weights[:, [column]], step, [name], 0, bare=True)[:, 0]
            for column, (step, name) in enumerate(zip(self.grid, self.attributes, strict=True))
        ]
        return np.stack(columns, axis=1)

    def capped(self, cap: int) -> Catalogue:
        """The catalogue whose unit is an item with all its occurrences, of which at most `cap` are counted."""
        if cap < 1 or cap * int(self.rows.max()) > _LARGEST_UNITS:
            raise ValueError(f"the cap of an item's count must lie in 1 … {_LARGEST_UNITS // int(self.rows.max())}")
        return Catalogue(self.attributes, self.rows * cap, self.grid, self.n_items, self.n_distinct)


def _dense_chunks(cells: Units, values: NDArray[Any], n_items: int, width: int) -> Iterator[NDArray[Any]]:
    for start in range(0, n_items, _CHUNK_ITEMS):
        stop = min(start + _CHUNK_ITEMS, n_items)
        low, high = np.searchsorted(cells, [start * width, stop * width])
        dense = np.zeros((stop - start) * width, dtype=values.dtype)
        dense[cells[low:high] - start * width] = values[low:high]
        yield dense.reshape(stop - start, width)


def _whole_units(
    weights: NDArray[Any], grid: Fraction, attributes: Sequence[str], first: int, *, bare: bool = False
) -> Units:
    """Weights as multiples of the grid; a weight between two grid points would make the exact ε a guess."""
    if weights.dtype.kind not in "biuf":
        raise ValueError("catalogue weights must be numbers")
    if weights.dtype.kind == "f" and not np.isfinite(weights).all():
        _refuse(~np.isfinite(weights), attributes, first, "must be finite")
    if weights.dtype.kind != "b" and np.any(weights < 0):
        _refuse(weights < 0, attributes, first, "must be ≥ 0; count a debit as an attribute of its own")
    if grid == 1 and weights.dtype.kind in "biu":
        if weights.size and int(weights.max()) > _LARGEST_UNITS:
            rule = f"must be at most {_LARGEST_UNITS}; give a coarser grid"
            _refuse(weights > _LARGEST_UNITS, attributes, first, rule)
        units = weights.astype(np.int64)
    else:
        scaled = weights / float(grid)
        if np.any(scaled > _LARGEST_UNITS):
            rule = f"must be at most {_LARGEST_UNITS} times the grid; give a coarser grid"
            _refuse(scaled > _LARGEST_UNITS, attributes, first, rule)
        units = np.rint(scaled).astype(np.int64)
        # A double is off its decimal by 1e-16 of itself; anything more is another number.
        off = np.abs(scaled - units) > 1e-9 * np.maximum(scaled, 1)
        if off.any():
            _refuse(off, attributes, first, f"must be a multiple of the grid {grid}; round it or give a finer grid")
    if not bare and not units.any(axis=1).all():
        item = first + int(np.flatnonzero(~units.any(axis=1))[0])
        raise ValueError(f"catalogue item {item} has no attribute; leave it out or give it one")
    return units


def _refuse(bad: NDArray[np.bool_], attributes: Sequence[str], first: int, rule: str) -> None:
    item, column = (int(index[0]) for index in np.nonzero(bad))
    raise ValueError(f"catalogue item {first + item}, attribute {attributes[column]!r}: the weight {rule}")


def _distinct(units: Units) -> Units:
    """Distinct rows, by folding the columns into one number; it is compacted whenever it would grow too wide."""
    code = np.zeros(len(units), dtype=np.int64)
    width = 1
    for column in units.T:
        size = int(column.max(initial=0)) + 1
        if width * size > _WIDEST_CODE:
            seen, code = np.unique(code, return_inverse=True)
            width = seen.size
        code = code * size + column
        width *= size
    _, where = np.unique(code, return_index=True)
    return units[where]


def maximal_rows(rows: Units) -> Units:
    """Rows (distinct ones) that no other row covers in every column.

    For each attribute and threshold a bit set says which rows reach it; the rows that cover a given one are the
    intersection over its attributes. A row that covers another has a larger sum, so rows go from large to small and
    only larger ones are asked.
    """
    totals = rows.sum(axis=1)
    order = np.argsort(-totals, kind="stable")
    rows, totals = rows[order], totals[order]
    larger = np.searchsorted(-totals, -totals, side="left")  # how many rows have a larger sum
    thresholds = [_thresholds(column) for column in rows.T]
    reach = [
        np.stack([np.packbits(column >= threshold) for threshold in known])
        for column, known in zip(rows.T, thresholds, strict=True)
    ]
    codes = np.stack(
        [np.searchsorted(known, column, side="right") - 1 for column, known in zip(rows.T, thresholds, strict=True)],
        axis=1,
    )
    exact = all(known.size == np.unique(column).size for column, known in zip(rows.T, thresholds, strict=True))
    maximal = np.ones(len(rows), dtype=bool)
    for index, row in enumerate(rows):
        prefix = int(larger[index])
        if not prefix:
            continue
        stop = -(-prefix // 8)
        first, *others = np.flatnonzero(row)
        covering = reach[first][codes[index, first], :stop].copy()
        for column in others:
            covering &= reach[column][codes[index, column], :stop]
        if prefix % 8:
            covering[-1] &= 0xFF << (8 - prefix % 8) & 0xFF
        if not covering.any():
            continue
        if exact:
            maximal[index] = False
        else:
            candidates = rows[np.flatnonzero(np.unpackbits(covering))]
            maximal[index] = not np.any(np.all(candidates >= row, axis=1))
    return rows[maximal]


def _thresholds(column: Units) -> Units:
    """All values of a column, or at most 64 of them evenly spread; the smallest is always there."""
    values = np.unique(column)
    if values.size <= _MOST_THRESHOLDS:
        return values
    spread: Units = values[np.linspace(0, values.size - 1, _MOST_THRESHOLDS).astype(np.intp)]
    return spread
