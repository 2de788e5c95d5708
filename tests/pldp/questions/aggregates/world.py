"""Catalogues and profiles that the tests of aggregates share."""

from __future__ import annotations

import gzip
from copy import deepcopy
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from pldp.channels.exact import SCALE
from pldp.papers.multiupp.dense import dense_catalogue
from pldp.questions.aggregates.budgets import TICK_BITS
from pldp.questions.aggregates.catalogue import Catalogue, Units
from pldp.questions.aggregates.noise import TwoSidedGeometric
from pldp.questions.aggregates.question import Aggregates
from pldp.questions.aggregates.resolve import make_plan
from pldp.questions.aggregates.spec import AggregatesSpec

MOVIES = Path(__file__).parents[4] / "shared" / "data" / "ml-1m_movies.dat.gz"
TICK = Fraction(1, 1 << TICK_BITS)

MATRICES = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(0, 2), min_size=width, max_size=width).filter(any), min_size=1, max_size=7
    ).filter(lambda rows: all(map(any, zip(*rows, strict=True))))
)
"""Small item × attribute matrices: no empty row, no empty column."""

ATTRIBUTES = ("drama", "comedy", "war")
KINDS = (("drama",), ("comedy",), ("drama", "war"), ("comedy", "war"), ("drama", "comedy", "war"))
PROFILES = ("open", "shy")

SPEC: dict[str, Any] = {
    "kind": "aggregates",
    "name": "films",
    "source": {"path": "items.parquet"},
    "catalogue": {"path": "catalogue.csv"},
    "attributes": list(ATTRIBUTES),
    "providers": {"shop": {"epsilon": 2, "reputation": "audited"}, "ads": {"epsilon": "0.5"}},
    "profiles": {"open": 1, "shy": {"drama": 1, "comedy": "1/2", "war": 0.1}},
    "default": "shy",
    "users": {"path": "users.csv"},
    "expected": {"users": 1000},
}


def probability(law: TwoSidedGeometric, z: int) -> Fraction:
    """Pr[Z = z], exactly. A sign is drawn too, and −0 is drawn again, or zero would come twice as often."""

    def one_side(n: int) -> Fraction:
        chance = Fraction(law.tail, SCALE) ** (n >> len(law.digits)) * Fraction(SCALE - law.tail, SCALE)
        for place, digit in enumerate(law.digits):
            chance *= Fraction(digit if n >> place & 1 else SCALE - digit, SCALE)
        return chance

    return one_side(abs(z)) / (2 - one_side(0))


def spec(**sections: Any) -> AggregatesSpec:
    """Films of three genres, two providers and two profiles; whole sections replaced, or left out where None."""
    content = {key: value for key, value in {**deepcopy(SPEC), **sections}.items() if value is not None}
    return AggregatesSpec.model_validate(content)


def films() -> Catalogue:
    rows = np.array([[int(name in kind) for name in ATTRIBUTES] for kind in KINDS])
    return dense_catalogue(ATTRIBUTES, rows)


def plan(**sections: Any) -> Aggregates:
    return make_plan(spec(**sections), films(), "0" * 64)


def names(width: int) -> list[str]:
    return [f"a{column}" for column in range(width)]


def catalogue(rows: list[list[int]]) -> Catalogue:
    return dense_catalogue(names(len(rows[0])), np.array(rows))


@lru_cache
def _movie_genres() -> tuple[tuple[str, ...], NDArray[np.uint8]]:
    with gzip.open(MOVIES, "rt", encoding="latin-1") as lines:
        genres = [line.rstrip("\n").split("::")[2].split("|") for line in lines]
    attributes = tuple(sorted({genre for own in genres for genre in own}))
    matrix = np.zeros((len(genres), len(attributes)), dtype=np.uint8)
    for item, own in enumerate(genres):
        matrix[item, [attributes.index(genre) for genre in own]] = 1
    return attributes, matrix


def movies() -> tuple[tuple[str, ...], NDArray[np.uint8]]:
    """MovieLens-1M: genres and the item × genre matrix."""
    if not MOVIES.exists():
        pytest.skip("MovieLens-1M (shared/data/ml-1m_movies.dat.gz) is not beside the repository")
    return _movie_genres()


@lru_cache
def movie_like(seed: int = 0) -> Catalogue:
    """As MovieLens, made up: 18 attributes, one to six of them an item, some far more common than others."""
    rng = np.random.default_rng(seed)
    rows = np.zeros((150, 18), dtype=np.uint8)
    for row in rows:
        row[rng.choice(18, rng.integers(1, 7), replace=False, p=_zipf(18))] = 1
    rows[:18] |= np.eye(18, dtype=np.uint8)
    return dense_catalogue(names(18), rows)


def _zipf(size: int) -> NDArray[np.float64]:
    weights = 1 / np.arange(1.0, size + 1)
    return weights / weights.sum()


def dirichlet(n_profiles: int, width: int, seed: int, *, tiny: bool = False) -> Units:
    """Budgets with Σ t = 1, in ticks; `tiny` brings every third one down to 1e-6 … 0.1 of its share."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(width), n_profiles)
    if tiny:
        shares[:, ::3] = 10 ** rng.uniform(-6, -1, shares[:, ::3].shape)
        shares /= shares.sum(axis=1, keepdims=True)
    return np.maximum((shares * (1 << TICK_BITS)).astype(np.int64), 1 << 12)
