"""Counts of the sets that were kept so far, and the candidates that follow from them (Apriori)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pldp.questions.items.transactions import Counts, Itemsets


class Index:
    """Counts of kept sets, found again by the number of the set without its last item and that last item."""

    def __init__(self, n_rows: int, n_items: int) -> None:
        self.n_rows = n_rows
        self._width = n_items
        self._items: list[Itemsets] = [np.empty((1, 0), dtype=np.int32)]
        self._keys: list[NDArray[np.int64]] = [np.zeros(1, dtype=np.int64)]
        self._counts: list[Counts] = [np.array([n_rows], dtype=np.int64)]

    def add(self, items: Itemsets, counts: Counts) -> None:
        """The next length, in rising order."""
        prefix, _ = self._find(items[:, :-1])
        self._items.append(items)
        self._keys.append(prefix * self._width + items[:, -1])
        self._counts.append(counts)

    def supersets(self, items: Itemsets, counts: Counts) -> Counts:
        """How many rows have all items of each subset, (set, 2^m); `counts` are those of the whole sets."""
        sets, m = items.shape
        table = np.empty((sets, 1 << m), dtype=np.int64)
        for subset in range((1 << m) - 1):
            chosen = [place for place in range(m) if subset >> place & 1]
            where, _ = self._find(items[:, chosen])
            table[:, subset] = self._counts[len(chosen)][where]
        table[:, -1] = counts
        # The last axis of a reshaped table is the lowest bit, so `patterns` may treat the axes in any order.
        return table

    def extend(self, most: int) -> Itemsets:
        """Apriori: sets one longer, all of whose subsets were kept. Two kept sets that differ in the last make one.

        ValueError before there are more than `most`, so that memory stays bounded.
        """
        last = self._items[-1]
        m = last.shape[1]
        if m == 0:
            return np.arange(self._width, dtype=np.int32)[:, None]
        partners = self._partners()
        if (total := int(partners.sum())) > most:
            raise ValueError(
                f"itemsets: {total} candidates of length {m + 1}, more than {most}; raise the minimum support or use a "
                "protocol that samples"
            )
        left = np.repeat(np.arange(len(last)), partners)
        offset = np.arange(left.size) - np.repeat(np.cumsum(partners) - partners, partners)
        candidates = np.concatenate([last[left], last[left + 1 + offset, -1:]], axis=1)
        alive = np.ones(len(candidates), dtype=np.bool_)
        for place in range(m - 1):  # without one of the last two it is one of the two sets
            _, known = self._find(np.delete(candidates, place, axis=1))
            alive &= known
        return candidates[alive]

    @property
    def n_partners(self) -> int:
        """How many sets one longer two kept ones make, before any is dropped."""
        return int(self._partners().sum())

    def _partners(self) -> NDArray[np.intp]:
        """Of each kept set, how many later ones differ from it in the last item alone."""
        last = self._items[-1]
        fresh = np.concatenate([[True], (last[1:, :-1] != last[:-1, :-1]).any(axis=1)])
        edges = np.concatenate([np.flatnonzero(fresh), [len(last)]])
        ends = np.repeat(edges[1:], np.diff(edges))
        return ends - np.arange(len(last)) - 1

    def _find(self, items: Itemsets) -> tuple[NDArray[np.intp], NDArray[np.bool_]]:
        """Numbers of these sets among the kept ones of their length, and whether each is there."""
        where = np.zeros(len(items), dtype=np.intp)
        known = np.ones(len(items), dtype=np.bool_)
        for length in range(1, items.shape[1] + 1):
            keys = self._keys[length]
            wanted = where * self._width + items[:, length - 1]
            where = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
            known &= keys[where] == wanted
        return where, known
