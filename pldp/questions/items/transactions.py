"""Transactions as packed bit columns, one an item, and counting in them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]
Itemsets = NDArray[np.int32]
"""One row a set, its items rising."""
Counts = NDArray[np.int64]

_BLOCK_WORDS = 1 << 10  # of a column at a time: a thousand columns of them stay in the cache
_CHUNK_CELLS = 1 << 17  # words of one intermediate result
_BLOCK_ROWS = 1 << 13


@dataclass(frozen=True, eq=False)
class Columns:
    """Row r of item j stands in bit r mod 64 of words[j, r // 64]; bits beyond the last row are zero."""

    words: Words
    n_rows: int

    @classmethod
    def of_sets(
        cls,
        offsets: NDArray[np.integer],
        items: NDArray[np.integer],
        n_items: int,
        empty: Literal["refuse", "keep"] = "refuse",
    ) -> Columns:
        """Row r has the items numbered items[offsets[r] : offsets[r + 1]].

        What a user holds must not decide whether the user is counted: a release keeps empty transactions, as rows
        without items. A source that should have none says so by the default.
        """
        sizes = check_sets(offsets, items, n_items, empty)
        n = sizes.size
        rows = np.repeat(np.arange(n), sizes)
        flat = np.zeros(n_items * (width := -(-n // 64)) * 8, dtype=np.uint8)
        place = items.astype(np.int64) * (width * 8) + (rows >> 3)
        order = np.argsort(place, kind="stable")
        place, bit = place[order], (1 << (rows[order] & 7)).astype(np.uint8)
        if place.size:
            starts = np.flatnonzero(np.concatenate([[True], place[1:] != place[:-1]]))
            flat[place[starts]] = np.bitwise_or.reduceat(bit, starts)
        return cls(flat.view(np.uint64).reshape(n_items, width), n)

    @classmethod
    def of_table(cls, table: NDArray[np.bool_]) -> Columns:
        """Rows × items, true where the row has the item."""
        n, d = table.shape
        if not n:
            raise ValueError("transactions must not be none at all")
        out = np.zeros((d, -(-n // 64) * 8), dtype=np.uint8)
        for start in range(0, n, _BLOCK_ROWS):
            packed = np.packbits(table[start : start + _BLOCK_ROWS].T, axis=1, bitorder="little")
            out[:, start // 8 : start // 8 + packed.shape[1]] = packed
        return cls(out.view(np.uint64), n)

    @classmethod
    def of_reports(cls, reports: NDArray[np.uint8], n_items: int) -> Columns:
        """From rows of packed bits, the form in which reports are kept: item j in bit j mod 8 of byte j // 8."""
        n = len(reports)
        out = np.zeros((n_items, -(-n // 64) * 8), dtype=np.uint8)
        for start in range(0, n, _BLOCK_ROWS):
            bits = np.unpackbits(reports[start : start + _BLOCK_ROWS], axis=1, count=n_items, bitorder="little")
            packed = np.packbits(bits.T, axis=1, bitorder="little")
            out[:, start // 8 : start // 8 + packed.shape[1]] = packed
        return cls(out.view(np.uint64), n)

    def reports(self) -> NDArray[np.uint8]:
        """One row of packed bits a transaction."""
        out = np.empty((self.n_rows, -(-len(self.words) // 8)), dtype=np.uint8)
        source = self.words.view(np.uint8)
        for start in range(0, self.n_rows, _BLOCK_ROWS):
            part = out[start : start + _BLOCK_ROWS]
            bits = np.unpackbits(source[:, start // 8 : (start + _BLOCK_ROWS) // 8], axis=1, bitorder="little")
            part[:] = np.packbits(bits[:, : len(part)].T, axis=1, bitorder="little")
        return out

    @cached_property
    def mask(self) -> Words:
        """Ones where there is a row."""
        mask = np.full(self.words.shape[1], np.uint64(0xFFFF_FFFF_FFFF_FFFF))
        if self.n_rows % 64:
            mask[-1] = np.uint64((1 << self.n_rows % 64) - 1)
        return mask

    def table(self) -> NDArray[np.bool_]:
        """Rows × items; for small data and tests."""
        bits = np.unpackbits(self.words.view(np.uint8), axis=1, bitorder="little")
        return bits[:, : self.n_rows].T.astype(np.bool_)

    def count(self, itemsets: Itemsets) -> Counts:
        """How many rows have all items of each set; additive over any split of the rows."""
        sets, m = itemsets.shape
        totals = np.zeros(sets, dtype=np.int64)
        if m == 0:
            totals += self.n_rows
            return totals
        if not sets:
            return totals
        if m == 2:
            return self._count_pairs(itemsets)
        for first in range(0, self.words.shape[1], _BLOCK_WORDS):
            block = self.words[:, first : first + _BLOCK_WORDS]
            size = max(1, _CHUNK_CELLS // block.shape[1])
            for start in range(0, sets, size):
                chunk = itemsets[start : start + size]
                both = block[chunk[:, 0]]
                for place in range(1, m):
                    both &= block[chunk[:, place]]
                totals[start : start + size] += np.bitwise_count(both).sum(axis=1, dtype=np.int64)
        return totals

    def _count_pairs(self, itemsets: Itemsets) -> Counts:
        """Pairs come in runs of the same first item, whose column is then read once for all."""
        totals = np.zeros(len(itemsets), dtype=np.int64)
        runs = np.flatnonzero(np.concatenate([[True], itemsets[1:, 0] != itemsets[:-1, 0]]))
        ends = [*runs[1:], totals.size]
        for first in range(0, self.words.shape[1], _BLOCK_WORDS):
            block = np.ascontiguousarray(self.words[:, first : first + _BLOCK_WORDS])
            size = max(1, _CHUNK_CELLS // block.shape[1])
            for low, high in zip(runs, ends, strict=True):
                first_item = block[itemsets[low, 0]]
                for start in range(low, high, size):
                    stop = min(start + size, high)
                    second = itemsets[start:stop, 1]
                    dense = int(second[-1]) - int(second[0]) == stop - start - 1
                    other = block[second[0] : second[-1] + 1] if dense else block[second]
                    totals[start:stop] += np.bitwise_count(other & first_item).sum(axis=1, dtype=np.int64)
        return totals


@dataclass(frozen=True, eq=False)
class Transactions:
    """Users' rows of items: user i holds items[offsets[i] : offsets[i + 1]]."""

    offsets: NDArray[np.integer]
    items: NDArray[np.integer]

    @property
    def n_users(self) -> int:
        return self.offsets.size - 1

    def of_users(self, chosen: NDArray[np.bool_]) -> Transactions:
        """Only these users' rows, in the same order."""
        sizes = np.diff(self.offsets)
        return Transactions(np.concatenate([[0], np.cumsum(sizes[chosen])]), self.items[np.repeat(chosen, sizes)])

    def columns(self, n_items: int) -> Columns:
        """Users without items are rows without items: what a user holds must not decide whether the user counts."""
        return Columns.of_sets(self.offsets, self.items, n_items, empty="keep")


def check_sets(
    offsets: NDArray[np.integer], items: NDArray[np.integer], n_items: int, empty: Literal["refuse", "keep"]
) -> NDArray[np.integer]:
    """Sizes of the rows, if there are rows, all items are declared and none stands twice in one; a row is named."""
    sizes = np.diff(offsets)
    if n_items < 1:
        raise ValueError(f"transactions.items must be declared, at least one (got {n_items})")
    if not sizes.size:
        raise ValueError("transactions must not be none at all")
    if sizes.min() < 0 or int(sizes.sum()) != items.size:
        raise ValueError("transactions.offsets must rise from 0 to the number of items held")
    unknown = np.flatnonzero((items < 0) | (items >= n_items))
    if unknown.size:
        row = int(np.searchsorted(np.cumsum(sizes), unknown[0], side="right"))
        raise ValueError(f"transactions row {row} holds an item that is not declared; declare it or map it to `other`")
    nothing = np.flatnonzero(sizes == 0)
    if nothing.size and empty == "refuse":
        raise ValueError(
            f"transactions row {nothing[0]} is empty; a transaction needs an item, unless empty ones are kept "
            "(empty: keep), as rows without items"
        )
    held = np.repeat(np.arange(sizes.size), sizes) * n_items + items
    if (held[1:] > held[:-1]).all():
        return sizes  # rows whose items rise, as ingest leaves them, need no sorting
    held.sort()
    repeated = np.flatnonzero(held[1:] == held[:-1])
    if repeated.size:
        row = int(held[repeated[0]]) // n_items
        raise ValueError(f"transactions row {row} holds an item twice; an item may occur once: remove the repetition")
    return sizes
