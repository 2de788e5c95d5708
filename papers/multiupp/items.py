"""multiupp 5.3: item vectors that fit perturbed aggregates, min ½‖Aᵀd − a‖² over d ∈ {0, 1}ⁿ.

Items with the same row of A are alike to the programme, so it is solved for how many items of each *kind* a user gets:
301 whole numbers for MovieLens instead of 3,883 bits. Relaxed to real numbers between zero and all items of a kind it
is convex; its solution is rounded, then single items are added or taken away as long as that lowers the loss. The
relaxed optimum bounds the best loss from below, so it is known how far from it the result can be. Which items of a kind
a user gets is for the lot to say: aggregates do not tell.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

STEPS = 60
"""Enough for the rounded solution; the bound gets tight with some hundreds."""
_MOVES = 400
_CHUNK_USERS = 512


@dataclass(frozen=True)
class Kinds:
    """Distinct rows of the item × attribute matrix, and which items have them."""

    rows: Floats
    of_item: NDArray[np.intp]

    @classmethod
    def of(cls, matrix: NDArray[np.generic]) -> Kinds:
        rows, of_item = np.unique(np.asarray(matrix), axis=0, return_inverse=True)
        return cls(rows.astype(np.float64), of_item.reshape(-1))

    @property
    def most(self) -> Floats:
        """How many items there are of each kind."""
        return np.bincount(self.of_item, minlength=len(self.rows)).astype(np.float64)

    def counts(self, users: NDArray[np.integer], items: NDArray[np.integer], n_users: int) -> Whole:
        """How many items of each kind every user has, (user, kind)."""
        cells = users.astype(np.int64) * len(self.rows) + self.of_item[items]
        return np.bincount(cells, minlength=n_users * len(self.rows)).reshape(n_users, -1)


@dataclass(frozen=True)
class Fit:
    """Items of each kind per user, the loss of that, and a loss below which no choice of items lies."""

    counts: Whole
    loss: Floats
    bound: Floats


def fit(kinds: Kinds, aggregates: Floats, start: Whole | None = None, steps: int = STEPS) -> Fit:
    """Whole numbers of items for every user's aggregates (user × attribute), from `start` (nothing, unless given)."""
    parts = []
    for first in range(0, len(aggregates), _CHUNK_USERS):
        part = slice(first, first + _CHUNK_USERS)
        begin = np.zeros((len(aggregates[part]), len(kinds.rows))) if start is None else start[part].astype(np.float64)
        relaxed, bound = _relax(kinds, aggregates[part], begin, steps)
        parts.append((*_improve(kinds, aggregates[part], np.rint(relaxed).astype(np.int64)), bound))
    counts, loss, bounds = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return Fit(counts, loss, bounds)


def _relax(kinds: Kinds, target: Floats, start: Floats, steps: int) -> tuple[Floats, Floats]:
    """Accelerated projected gradient on the box; the bound is its loss minus the Frank–Wolfe gap, so always a bound.

    Single precision on the way: what it ends with is rounded to whole items anyway.
    """
    rows, most, wanted = (array.astype(np.float32) for array in (kinds.rows, kinds.most, target))
    pull = rows.T / np.float32(np.linalg.eigvalsh(kinds.rows.T @ kinds.rows).max())
    here = ahead = start.astype(np.float32)
    momentum = 1.0
    for _ in range(steps):
        there = ahead - (ahead @ rows - wanted) @ pull
        np.clip(there, 0, most, out=there)
        grown = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = there + np.float32((momentum - 1) / grown) * (there - here)
        here, momentum = there, grown
    relaxed = here.astype(np.float64)
    residual = relaxed @ kinds.rows - target
    gradient = residual @ kinds.rows.T
    gap = (gradient * (relaxed - np.where(gradient > 0, 0, kinds.most))).sum(axis=1)
    return relaxed, np.maximum((residual**2).sum(axis=1) / 2 - gap, 0)


def _improve(kinds: Kinds, target: Floats, counts: Whole) -> tuple[Whole, Floats]:
    """Add or take away the one item that lowers a user's loss most, until none does."""
    rows, most = kinds.rows, kinds.most
    counts = np.clip(counts, 0, most.astype(np.int64))
    size = (rows**2).sum(axis=1) / 2
    residual = counts @ rows - target
    active = np.arange(len(counts))
    for _ in range(_MOVES):
        slope = residual[active] @ rows.T
        change = np.concatenate(
            [
                np.where(counts[active] < most, slope + size, np.inf),
                np.where(counts[active] > 0, size - slope, np.inf),
            ],
            axis=1,
        )
        best = change.argmin(axis=1)
        better = change[np.arange(active.size), best] < -1e-9
        active, best = active[better], best[better]
        if not active.size:
            break
        kind, step = best % len(rows), np.where(best < len(rows), 1, -1)
        counts[active, kind] += step
        residual[active] += step[:, None] * rows[kind]
    return counts, (residual**2).sum(axis=1) / 2


def draw_items(
    kinds: Kinds, counts: Whole, rng: np.random.Generator, preferred: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Users and items of a choice with these counts: by lot, or a user's `own` items (user × item) before others."""
    order = np.argsort(kinds.of_item, kind="stable")
    kind = kinds.of_item[order]
    place = np.arange(order.size) - (np.cumsum(kinds.most) - kinds.most).astype(np.int64)[kind]
    users, items = [], []
    for first in range(0, len(counts), _CHUNK_USERS):
        part = slice(first, first + _CHUNK_USERS)
        # Sorted, a kind's items stay together: those that come first in their kind are taken.
        lot = 0.5 * rng.random((len(counts[part]), order.size))
        if preferred is not None:
            lot += np.where(preferred[part][:, order], 0, 0.5)
        ranked = order[np.argsort(kind + lot, axis=1)]
        user, at = np.nonzero(place < counts[part][:, kind])
        users.append(user + first)
        items.append(ranked[user, at])
    return np.concatenate(users), np.concatenate(items)
