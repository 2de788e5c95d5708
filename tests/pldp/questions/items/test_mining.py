"""Mining: equal to brute force, whatever the partitions; Apriori; bad input."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm

from pldp.channels.randomness import Keystream
from pldp.questions.items.allocation import RowDemand, bounded_items
from pldp.questions.items.channels import ItemChannels
from pldp.questions.items.comparators import Grouped, mask
from pldp.questions.items.index import Index
from pldp.questions.items.mining import EstimatedSets, Search, frequent_sets, mine
from pldp.questions.items.transactions import Columns, Counts, Itemsets
from tests.pldp.questions.items.reconstruction import item_inverse, reconstruct
from tests.pldp.questions.items.world import Table, all_sets, columns, msnbc, skewed, symmetric, true_support

TABLES = st.tuples(st.integers(1, 150), st.integers(1, 7), st.integers(0, 2**32 - 1)).map(
    lambda size: np.random.default_rng(size[2]).random((size[0], size[1])) < 0.5
)


def brute(table: Table, minimum: float, length: int) -> set[tuple[int, ...]]:
    return {own for own in all_sets(table.shape[1], length) if true_support(table, own) >= minimum}


@settings(max_examples=80)
@given(TABLES, st.floats(0.01, 1), st.integers(1, 5))
def test_without_noise_mining_is_brute_force(table: Table, minimum: float, length: int) -> None:
    found = mine(columns(table).count, len(table), symmetric(table.shape[1], 1.0), Search(minimum, length, reach=0))
    expected = brute(table, minimum - 1e-9, length)
    near = {own for own in expected if true_support(table, own) < minimum + 1e-9}
    assert expected - near <= frequent_sets(found) <= expected
    assert all((np.diff(level.items, axis=1) > 0).all() for level in found)


@settings(max_examples=40)
@given(TABLES, st.floats(0.55, 0.95), st.floats(0.05, 0.5), st.integers(1, 4))
def test_supports_equal_those_of_the_whole_table(table: Table, keep: float, minimum: float, length: int) -> None:
    """Every set found has the support that the full reconstruction gives, and every set it should have is found."""
    d = table.shape[1]
    channels = symmetric(d, keep)
    reports = channels.perturb(columns(table), Keystream.seeded(1, keep.hex()))
    found = mine(reports.count, len(table), channels, Search(minimum, length))
    bits = reports.table()
    whole: dict[tuple[int, ...], float] = {}
    for own in all_sets(d, length):
        counts = np.zeros((2,) * len(own))
        np.add.at(counts, tuple(bits[:, own].T.astype(int)), 1)
        whole[own] = float(reconstruct(counts, [item_inverse(channels, item) for item in own])[(1,) * len(own)])
    kept: set[tuple[int, ...]] = set()
    for level in found:
        for row, support in zip(level.items.tolist(), level.support, strict=True):
            assert support == pytest.approx(whole[tuple(row)], abs=1e-6)
            kept.add(tuple(row))
    for own in kept:  # Apriori: every subset was kept too
        assert all(part in kept for size in range(1, len(own)) for part in combinations(own, size))
    for own, support in whole.items():
        parents = [part for part in combinations(own, len(own) - 1) if part]
        if support >= minimum + 1e-9 and all(part in kept for part in parents):
            assert own in kept


@given(TABLES, st.integers(1, 4), st.integers(1, 5))
def test_counts_add_up_over_partitions(table: Table, m: int, parts: int) -> None:
    sets = np.array(list(combinations(range(table.shape[1]), m)), dtype=np.int32).reshape(-1, m)
    whole = columns(table).count(sets)
    pieces = [piece for piece in np.array_split(table, parts) if len(piece)]
    assert (np.sum([columns(piece).count(sets) for piece in pieces], axis=0) == whole).all()
    assert (whole == [table[:, own].all(axis=1).sum() for own in sets.tolist()]).all()


@given(TABLES)
def test_forms_of_transactions_agree(table: Table) -> None:
    packed = columns(table)
    assert (packed.table() == table).all()
    assert (Columns.of_reports(packed.reports(), table.shape[1]).words == packed.words).all()
    assert (packed.reports() == np.packbits(table, axis=1, bitorder="little")).all()
    items = np.nonzero(table)[1]
    offsets = np.concatenate([[0], np.cumsum(table.sum(axis=1))])
    assert (Columns.of_sets(offsets, items, table.shape[1], empty="keep").words == packed.words).all()


def test_large_blocks_are_counted_like_small_ones() -> None:
    table = np.random.default_rng(3).random((140_000, 5)) < 0.3
    for m in (1, 2, 3):
        sets = np.array(list(combinations(range(5), m)), dtype=np.int32)
        assert (columns(table).count(sets) == [table[:, own].all(axis=1).sum() for own in sets.tolist()]).all()
    gaps = np.array([[0, 2], [0, 4], [1, 3]], dtype=np.int32)  # not all partners of an item in a row
    assert (columns(table).count(gaps) == [table[:, own].all(axis=1).sum() for own in gaps.tolist()]).all()


def test_probability_interval_and_error_belong_together() -> None:
    table = skewed(3000, 6, 2)
    channels = symmetric(6, 0.8)
    reports = channels.perturb(columns(table), Keystream.seeded(2))
    looked_at = []

    def count(sets: Itemsets) -> Counts:
        looked_at.append(len(sets))
        return reports.count(sets)

    found = mine(count, 3000, channels, Search(0.2, 3))
    for level, candidates in zip(found, looked_at, strict=False):
        # Longer sets are shown because of their estimates: fewer of their intervals may fail.
        selected = 1.0 if level.items.shape[1] == 1 else len(level.items) / candidates
        reach = norm.isf(0.025 * selected) * level.standard_error
        np.testing.assert_allclose(level.ci_high - level.support, reach)
        np.testing.assert_array_equal(level.frequent(), level.support >= 0.2)
        clear = np.abs(level.support - 0.2) > 5 * level.standard_error
        np.testing.assert_allclose(level.probability_frequent[clear], level.support[clear] > 0.2, atol=1e-3)


def test_pruning_that_knows_the_error_loses_fewer_sets(seed: int) -> None:
    """A set whose support lies at the minimum is missed if a subset is underestimated; reach 2 lets it through."""
    table = skewed(2000, 8, 4)
    channels, stream = symmetric(8, 0.75), Keystream.seeded(seed, "prune")
    lost = {0.0: 0, 2.0: 0}
    for _ in range(15):
        reports = channels.perturb(columns(table), stream)
        truly = brute(table, 0.15, 3)
        for reach in lost:
            found = mine(reports.count, 2000, channels, Search(0.15, 3, reach=reach))
            lost[reach] += len(truly - frequent_sets(found))
    assert lost[2.0] <= lost[0.0]


def test_probabilities_are_calibrated(seed: int) -> None:
    """Of sets at the minimum support half are called frequent; within four binomial standard errors and more."""
    table = skewed(4000, 2, 9)
    minimum = true_support(table, (0, 1))
    channels, stream = symmetric(2, 0.8), Keystream.seeded(seed, "calibrated")
    repeats, above = 300, 0
    for _ in range(repeats):
        reports = channels.perturb(columns(table), stream)
        level = mine(reports.count, 4000, channels, Search(minimum, 2, reach=50))[1]
        above += int(level.frequent()[0])
    # Skewness moves the half by less than 0.01 at this n.
    assert abs(above / repeats - 0.5) < 5 * np.sqrt(0.25 / repeats) + 0.01


@pytest.mark.parametrize(("field", "value"), [("minimum", 0), ("minimum", 1.01), ("length", 0), ("length", 13)])
def test_searches_out_of_range_are_named(field: str, value: float) -> None:
    settings_ = {"minimum": 0.1, "length": 2} | {field: value}
    with pytest.raises(ValueError, match=f"itemsets.{field}"):
        Search(**settings_)  # type: ignore[arg-type]


@pytest.mark.parametrize("setting", [{"reach": -1}, {"confidence": 1}])
def test_settings_out_of_range_are_named(setting: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=f"itemsets.{next(iter(setting))}"):
        Search(0.1, 2, **setting)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("offsets", "items", "words"),
    [
        ([0, 2, 4], [0, 1, 2, 2], "row 1 holds an item twice"),
        ([0, 1, 1], [0], "row 1 is empty"),
        ([0, 1, 2], [0, 77], "row 1 holds an item that is not declared"),
        ([0, 1, 2], [-1, 0], "row 0 holds an item that is not declared"),
        ([0], [], "none at all"),
        ([0, 3], [0], "offsets"),
    ],
)
def test_bad_transactions_are_named(offsets: list[int], items: list[int], words: str) -> None:
    with pytest.raises(ValueError, match=words) as caught:
        Columns.of_sets(np.array(offsets), np.array(items, dtype=np.int64), 3)
    assert "77" not in str(caught.value)


def test_too_many_candidates_are_refused() -> None:
    table = np.ones((10, 6), dtype=bool)
    with pytest.raises(ValueError, match="15 candidates of length 2"):
        mine(columns(table).count, 10, symmetric(6, 0.9), Search(0.1, 2, most_candidates=10))
    with pytest.raises(ValueError, match="no reports"):
        mine(columns(table).count, 0, symmetric(6, 0.9), Search(0.1, 2))


def test_nothing_frequent_is_nothing_found() -> None:
    table = np.zeros((50, 3), dtype=bool)
    assert mine(columns(table).count, 50, symmetric(3, 1.0), Search(0.5, 3)) == ()


def test_grouped_users_are_reconstructed_by_the_mixture() -> None:
    """The responses solve the mixture's equations, which no product of single channels does."""
    shares = tuple(Fraction(part, 11) for part in (4, 2, 2, 2, 1))
    grouped = Grouped.of(3, shares)
    for m in (1, 2, 3):
        mixture = np.zeros((1 << m, 1 << m))
        for keep, share in zip((1, 0.9, 0.8, 0.7, 0.6), shares, strict=True):
            single = np.array([[keep, 1 - keep], [1 - keep, keep]])
            whole = np.ones((1, 1))
            for _ in range(m):
                whole = np.kron(whole, single)
            mixture += float(share) * whole
        own = grouped.responses(np.arange(m)[None])[0]
        np.testing.assert_allclose(mixture @ own, np.eye(1 << m)[-1], atol=1e-12)


def test_grouped_and_mask_find_the_supports(seed: int) -> None:
    table = skewed(6000, 3, 6)
    shares = tuple(Fraction(part, 11) for part in (4, 2, 2, 2, 1))
    grouped, single = Grouped.of(3, shares), mask(3)
    # Lots of their own: with the table's generator the groups would follow the items.
    rng, stream = np.random.default_rng([seed, 1]), Keystream.seeded(seed, "groups")
    cases: list[tuple[Grouped | ItemChannels, Columns]] = [
        (grouped, grouped.perturb(columns(table), stream, rng)),
        (single, single.perturb(columns(table), stream)),
    ]
    for channel, reports in cases:
        found = mine(reports.count, 6000, channel, Search(0.01, 3, population=True))
        for level in found:
            for row, support, error in zip(level.items.tolist(), level.support, level.standard_error, strict=True):
                assert abs(support - true_support(table, tuple(row))) < 6 * error


def test_an_index_finds_what_it_was_given() -> None:
    index = Index(10, 4)
    assert index.extend(100).tolist() == [[0], [1], [2], [3]]
    index.add(np.array([[0], [1], [3]], dtype=np.int32), np.array([5, 4, 3]))
    assert index.extend(100).tolist() == [[0, 1], [0, 3], [1, 3]]
    index.add(np.array([[0, 1], [0, 3]], dtype=np.int32), np.array([2, 1]))
    assert index.extend(100).tolist() == []  # {1, 3} was not kept


def test_empty_results_have_the_right_types() -> None:
    empty: Counts = columns(np.ones((3, 2), dtype=bool)).count(np.empty((0, 2), dtype=np.int32))
    assert empty.size == 0
    sets: Itemsets = np.empty((1, 0), dtype=np.int32)
    assert columns(np.ones((3, 2), dtype=bool)).count(sets).tolist() == [3]
    assert EstimatedSets.__dataclass_fields__.keys() >= {"items", "support", "standard_error", "probability_frequent"}


@pytest.mark.slow
def test_msnbc_end_to_end(seed: int) -> None:
    """989,818 users, 17 categories, a row bound of 17: every set found lies within six errors of the truth."""
    offsets, items = msnbc()
    truth = Columns.of_sets(offsets, items, 17)
    assert truth.n_rows == 989_818
    channels = bounded_items(RowDemand((1.0,) * 17, Fraction(17)))
    reports = channels.perturb(truth, Keystream.seeded(seed, "msnbc"))
    found = mine(reports.count, reports.n_rows, channels, Search(0.01, 4))
    assert len(found) >= 3
    for level in found:
        true = truth.count(level.items) / truth.n_rows
        assert (np.abs(level.support - true) < 6 * level.standard_error).all()
