from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pldp.papers.multiupp.dense import dense_catalogue
from pldp.questions.aggregates import catalogue as module
from pldp.questions.aggregates.catalogue import Catalogue, Units, maximal_rows
from tests.pldp.questions.aggregates.world import MATRICES, catalogue, movies, names


def _covered(row: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return row != other and all(a <= b for a, b in zip(row, other, strict=True))


def _plain(rows: list[tuple[int, ...]]) -> set[tuple[int, ...]]:
    return {row for row in rows if not any(_covered(row, other) for other in rows)}


def _as_set(rows: Units) -> set[tuple[int, ...]]:
    listed = [tuple(int(value) for value in row) for row in rows]
    assert len(set(listed)) == len(listed)
    return set(listed)


@settings(max_examples=200)
@given(MATRICES)
def test_the_rows_kept_are_the_maximal_distinct_ones(rows: list[list[int]]) -> None:
    kept = catalogue(rows)
    common = np.gcd.reduce(np.array(rows), axis=0)
    units = [tuple(int(value) for value in row) for row in np.array(rows) // common]
    assert _as_set(kept.rows) == _plain(units)
    assert kept.n_items == len(rows)
    assert kept.n_distinct == len(set(units))
    assert kept.grid == tuple(Fraction(int(factor)) for factor in common)


@pytest.mark.parametrize("values", [2, 5, 500])
@pytest.mark.parametrize("width", [3, 9])
def test_coarse_and_fine_weights_are_reduced_alike(values: int, width: int) -> None:
    # 500 values have more thresholds than bit sets are kept for.
    rng = np.random.default_rng(values * width)
    rows = np.unique(rng.integers(0, values, (400, width)), axis=0)
    rows = rows[rows.any(axis=1)]
    assert _as_set(maximal_rows(rows)) == _plain([tuple(int(value) for value in row) for row in rows])


@settings(max_examples=100)
@given(MATRICES, st.integers(0, 2**32))
def test_triples_in_any_order_give_the_same_as_a_matrix(rows: list[list[int]], key: int) -> None:
    matrix = np.array(rows)
    items, columns = np.nonzero(matrix)
    mixed = np.random.default_rng(key).permutation(items.size)
    entries = items[mixed], columns[mixed], matrix[items, columns][mixed]
    sparse = Catalogue.from_triples(names(matrix.shape[1]), *entries, n_items=len(matrix))
    dense = catalogue(rows)
    assert np.array_equal(sparse.rows, dense.rows)
    assert sparse.grid == dense.grid
    assert (sparse.n_items, sparse.n_distinct) == (dense.n_items, dense.n_distinct)


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    matrix = rng.integers(0, 3, (500, 6)) | np.eye(500, 6, dtype=np.int64)
    matrix[:, 0] |= ~matrix.any(axis=1)
    whole = dense_catalogue(names(6), matrix)
    items, columns = np.nonzero(matrix)
    monkeypatch.setattr(module, "_CHUNK_ITEMS", 7)
    assert np.array_equal(dense_catalogue(names(6), matrix).rows, whole.rows)
    sparse = Catalogue.from_triples(names(6), items, columns, matrix[items, columns], n_items=500)
    assert np.array_equal(sparse.rows, whole.rows)


def test_columns_wider_than_one_number_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_WIDEST_CODE", 100)
    matrix = np.random.default_rng(2).integers(0, 4, (300, 8)) + np.eye(300, 8, dtype=np.int64)
    matrix[:, 0] += 1
    assert dense_catalogue(names(8), matrix).n_distinct == len(np.unique(matrix, axis=0))


def test_movielens_keeps_101_of_3883() -> None:
    attributes, matrix = movies()
    reduced = dense_catalogue(attributes, matrix)
    assert (len(attributes), reduced.n_items, reduced.n_distinct, len(reduced.rows)) == (18, 3_883, 301, 101)
    assert not reduced.separable
    assert np.array_equal(reduced.sensitivity, np.ones(18))


def test_a_million_items() -> None:
    rng = np.random.default_rng(0)
    kinds = np.unique((rng.random((400, 30)) < 0.12).astype(np.uint8), axis=0)
    kinds = np.concatenate([kinds[kinds.any(axis=1)], np.eye(30, dtype=np.uint8)])
    chosen = rng.integers(0, len(kinds), 1_000_000)
    reduced = dense_catalogue(names(30), kinds[chosen])
    assert reduced.n_items == 1_000_000
    expected = np.unique(kinds[np.unique(chosen)], axis=0)
    assert reduced.n_distinct == len(expected)
    assert _as_set(reduced.rows) == _as_set(maximal_rows(expected.astype(np.int64)))


def test_weights_become_whole_units_of_the_coarsest_grid() -> None:
    weights = np.array([[0.5, 0.0], [1.5, 0.3], [0.0, 0.1]])
    reduced = dense_catalogue(["half", "tenth"], weights, Fraction(1, 10))
    assert reduced.grid == (Fraction(1, 2), Fraction(1, 10))
    assert _as_set(reduced.rows) == {(3, 3)}
    assert np.array_equal(reduced.units(weights), [[1, 0], [3, 3], [0, 1]])
    with pytest.raises(ValueError, match=r"attribute 'tenth': the weight must be a multiple of the grid 1/10"):
        reduced.units(np.array([[0.5, 0.05]]))


def test_a_cap_multiplies_what_one_item_can_move() -> None:
    reduced = catalogue([[1, 0, 2], [0, 1, 0]])
    assert np.array_equal(reduced.capped(3).sensitivity, 3 * reduced.sensitivity)
    for cap in (0, 1 << 21):
        with pytest.raises(ValueError, match="cap of an item's count must lie in 1 …"):
            reduced.capped(cap)


def test_separable_means_one_attribute_a_binding_row() -> None:
    assert catalogue([[1, 0], [0, 1], [0, 2]]).separable
    assert not catalogue([[1, 0], [1, 1]]).separable


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[1, 0], [1, 0]], "attribute 'a1' belongs to no item"),
        ([[1, 1], [0, 0]], "item 1 has no attribute; leave it out"),
        ([[1, 1], [0, -1]], "item 1, attribute 'a1': the weight must be ≥ 0"),
        ([[1, 1], [0, 1 << 21]], "item 1, attribute 'a1': the weight must be at most"),
        ([[1.0, 1.0], [0.0, np.nan]], "item 1, attribute 'a1': the weight must be finite"),
        ([[1.0, 1.0], [0.0, 0.5]], "item 1, attribute 'a1': the weight must be a multiple of the grid 1; round"),
        ([["x", "y"]], "weights must be numbers"),
    ],
)
def test_a_bad_matrix_is_refused(rows: list[list[float]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        dense_catalogue(["a0", "a1"], np.array(rows))


def test_other_bad_input_is_refused() -> None:
    one = np.array([0])
    with pytest.raises(ValueError, match="at least one item"):
        dense_catalogue(["a"], np.zeros((0, 1)))
    with pytest.raises(ValueError, match="one column for each of the 2 attributes"):
        dense_catalogue(["a", "b"], np.ones((3, 1)))
    with pytest.raises(ValueError, match="each named once"):
        dense_catalogue(["a", "a"], np.ones((3, 2)))
    with pytest.raises(ValueError, match="grid must be > 0"):
        dense_catalogue(["a"], np.ones((3, 1)), Fraction(0))
    with pytest.raises(ValueError, match="item 0 lists an attribute twice"):
        Catalogue.from_triples(["a"], np.array([0, 0]), np.array([0, 0]), n_items=1)
    with pytest.raises(ValueError, match=r"items must be numbered 0 … 0"):
        Catalogue.from_triples(["a"], np.array([1]), one, n_items=1)
    with pytest.raises(ValueError, match=r"attributes must be numbered 0 … 0"):
        Catalogue.from_triples(["a"], one, np.array([1]), n_items=1)
    with pytest.raises(ValueError, match="an item, an attribute and a weight each"):
        Catalogue.from_triples(["a"], one, np.array([0, 0]), n_items=1)
    with pytest.raises(ValueError, match="item 1 has no attribute"):
        Catalogue.from_triples(["a"], one, one, n_items=2)
