"""How often the commonest report stands among those of a sheet: for reports that clients send."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from pldp.questions.question import Columns

MOST_HASHES = 1 << 23
"""Held at a time; more reports are looked at in several passes, each over a part of the hashes."""


def most_equal(rows: Callable[[], Iterator[Columns]], size: int) -> int:
    """The largest number of equal rows. Rows are compared by a hash of 64 bits under a secret seed."""
    passes = -(-size // MOST_HASHES)
    seed, most = secrets.randbits(64), 0
    for part in range(passes):
        hashes = (_hashes(columns, seed) for columns in rows())
        kept = np.sort(np.concatenate([one[one % np.uint64(passes) == part] for one in hashes]))
        edges = np.flatnonzero(np.r_[True, kept[1:] != kept[:-1], True]) if kept.size else np.zeros(1)
        most = max(most, int(np.diff(edges).max(initial=0)))
    return most


def _hashes(columns: Columns, seed: int) -> np.ndarray:
    flat: dict[str, np.ndarray] = {}
    for name, column in columns.items():
        flat |= {name: column} if column.ndim == 1 else {f"{name} {i}": words for i, words in enumerate(column.T)}
    return pl.DataFrame(flat).hash_rows(seed=seed).to_numpy()
