"""Transactions that the tests of items share."""

from __future__ import annotations

import gzip
from fractions import Fraction
from functools import lru_cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from pldp.channels.exact import SCALE
from pldp.papers.aprr.levels import levels_from_frequency
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.transactions import Columns

BASKETS = Path(__file__).parents[4] / "shared" / "data" / "BASKETS1n.csv.gz"
MSNBC = Path(__file__).parents[4] / "shared" / "data" / "msnbc990928.seq.gz"

SIZES = (4, 2, 2, 2, 1)
"""Items of Basket in levels 0–4 (aprr Table 2)."""
EPSILON = Fraction(9)
"""Never stated in aprr; the one at which Table 2 comes out."""

THRESHOLDS = st.integers(SCALE // 2 + SCALE // 50, SCALE - SCALE // 1000)
Table = NDArray[np.bool_]


@lru_cache
def _basket() -> Table:
    with gzip.open(BASKETS, "rt") as lines:
        next(lines)
        rows = np.array([[cell == "T" for cell in line.strip().split(",")[7:]] for line in lines])
    return rows[rows.any(axis=1)]


def basket() -> Table:
    """Basket: 940 transactions × 11 items, without the 60 empty ones of its source."""
    if not BASKETS.exists():
        pytest.skip("Basket (shared/data/BASKETS1n.csv.gz) is not beside the repository")
    return _basket()


def basket_channels(table: Table, epsilon: Fraction = EPSILON) -> ItemChannels:
    return ItemChannels.aprr(levels_from_frequency(table.sum(axis=0), SIZES), len(SIZES), epsilon)


def skewed(n: int, d: int, seed: int) -> Table:
    """Dependent items of falling frequency: a hidden taste makes some go together."""
    rng = np.random.default_rng(seed)
    taste = rng.random((n, 1)) < 0.4
    chance = 0.6 / np.arange(1, d + 1) ** 0.7
    return rng.random((n, d)) < np.where(taste & (np.arange(d) % 2 == 0), np.minimum(1.8 * chance, 0.95), 0.7 * chance)


def symmetric(d: int, keep: float) -> ItemChannels:
    return ItemChannels.symmetric((round(keep * SCALE),) * d)


def all_sets(d: int, length: int) -> list[tuple[int, ...]]:
    return [own for m in range(1, length + 1) for own in combinations(range(d), m)]


def true_support(table: Table, own: tuple[int, ...]) -> float:
    return float(table[:, own].all(axis=1).mean())


def columns(table: Table) -> Columns:
    return Columns.of_table(table)


def msnbc() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """MSNBC: the distinct page categories of each user, as offsets and numbers from 0."""
    if not MSNBC.exists():
        pytest.skip("MSNBC (shared/data/msnbc990928.seq.gz) is not beside the repository")
    with gzip.open(MSNBC, "rt") as lines:
        rows = [{int(word) - 1 for word in line.split()} for number, line in enumerate(lines) if number >= 7]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])])
    return offsets, np.fromiter((item for row in rows for item in row), dtype=np.int64, count=int(offsets[-1]))
