"""Gates that follow from the declarations: each by itself, on rows that only it has something against."""

from __future__ import annotations

from typing import Any

import pytest

from pldp.questions.table_gates import as_computed, cells_sound, intervals_sound, keys_unique, table_gates
from pldp.questions.tables import published_table
from tests.pldp.questions.memory import passes

Columns = dict[str, list[Any]]
NAN, INFINITE = float("nan"), float("inf")
SHARE: Columns = {
    "attribute": ["age", "age"],
    "value": ["young", "old"],
    "method": ["oc+", "oc+"],
    "postprocess": ["norm-sub", "norm-sub"],
    "frequency": [0.7, 0.3],
    "standard_error": [0.1, 0.1],
    "ci_low": [0.5, 0.0],
    "ci_high": [1.0, 0.4],
    "count": [7.0, 3.0],
    "unbiased_frequency": [1.2, -0.1],
    "n_reports": [10, 10],
    "reliable": [True, False],
    "unbiased_standard_error": [0.1, 0.1],
    "interval": ["inverted test"] * 2,
    "dependence": ["1", "1"],
    "bias_bound": [0.0, None],
    "level_weight_cap": [2.0, None],
}
MEAN: Columns = {
    "attribute": ["pay"],
    "method": ["reports"],
    "mean": [104.0],
    "standard_error": [3.0],
    "ci_low": [98.0],
    "ci_high": [100.0],
    "n_reports": [7],
    "lower": [0.0],
    "upper": [100.0],
    "interval": ["normal"],
    "dependence": ["unknown"],
}
BIN: Columns = {
    "attribute": ["pay"],
    "bin_low": [0.0],
    "bin_high": [1.0],
    "method": ["em"],
    "frequency": [1.0],
    "standard_error": [0.1],
    "n_reports": [3],
}
RULE: Columns = {
    "antecedent": [["a"], ["a"]],
    "consequent": [["b"], ["c"]],
    "support": [0.1] * 2,
    "confidence": [0.4] * 2,
    "standard_error": [0.1] * 2,
    "ci_low": [0.3] * 2,
    "ci_high": [0.5] * 2,
    "lift": [None, 2.0],
}
GOOD: dict[str, Columns] = {"histograms": SHARE, "means": MEAN, "bins": BIN, "rules": RULE}


def with_cell(table: str, column: str, cell: Any) -> list[Any]:
    rows = {**GOOD[table], column: [*GOOD[table][column][:-1], cell]}
    return [(published_table(table), rows)]


def test_good_tables_pass() -> None:
    assert all(passes(gate) for gate in table_gates(GOOD, GOOD))
    assert len(table_gates(GOOD, GOOD)) == 4
    assert len(table_gates(GOOD, GOOD, finite=False)) == 2, "an evaluation may look at what has no finite ε"
    assert all(passes(gate) for gate in table_gates({"rules": {}}, {"rules": {}})), "a table may have no rows"


@pytest.mark.parametrize(
    ("table", "column", "cell"),
    [
        ("histograms", "frequency", NAN),
        ("histograms", "frequency", None),
        ("histograms", "bias_bound", NAN),
        ("histograms", "standard_error", 0.0),
        ("histograms", "unbiased_standard_error", -1.0),
        ("histograms", "interval", None),
        ("histograms", "attribute", None),
        ("means", "upper", INFINITE),
        ("rules", "lift", -INFINITE),
    ],
)
def test_cells_that_are_missing_or_no_numbers(table: str, column: str, cell: Any) -> None:
    assert not passes(cells_sound(with_cell(table, column, cell)))


@pytest.mark.parametrize(
    ("table", "column", "cell"),
    [
        ("histograms", "ci_high", -0.1),
        ("histograms", "ci_high", 1.1),
        ("histograms", "ci_low", 0.35),
        ("histograms", "ci_low", NAN),
        ("means", "ci_low", 101.0),
        ("means", "ci_high", 99.0),
        ("means", "mean", 97.0),
        ("bins", "bin_high", -1.0),
        ("rules", "confidence", 0.6),
    ],
)
def test_intervals_that_hold_nothing(table: str, column: str, cell: Any) -> None:
    assert not passes(intervals_sound(with_cell(table, column, cell)))


def test_an_interval_holds_the_unbiased_estimate_or_the_answer_it_was_extended_to() -> None:
    unbiased: Columns = {**SHARE, "ci_high": [1.0, 0.2]}
    assert passes(intervals_sound([(published_table("histograms"), unbiased)]))
    neither: Columns = {**unbiased, "unbiased_frequency": [1.2, 0.25]}
    assert not passes(intervals_sound([(published_table("histograms"), neither)]))


@pytest.mark.parametrize(
    ("table", "column", "cell"), [("histograms", "value", "young"), ("rules", "consequent", ["b"])]
)
def test_a_key_that_stands_there_twice(table: str, column: str, cell: Any) -> None:
    assert not passes(keys_unique(with_cell(table, column, cell)))


def test_a_missing_part_of_a_key_is_a_value_like_any_other() -> None:
    shares: Columns = {
        "attribute": [None, None],
        "level": ["high", "low"],
        "share": [0.5, 0.5],
        "standard_error": [0.1, 0.1],
    }
    assert passes(keys_unique([(published_table("level_shares"), shares)]))
    assert not passes(keys_unique([(published_table("level_shares"), {**shares, "level": ["low", "low"]})]))


def test_tables_are_compared_cell_by_cell_and_row_by_row() -> None:
    assert passes(as_computed({"bins": BIN}, {"bins": BIN}))
    gate = as_computed({"bins": {**BIN, "frequency": [1.0 + 1e-15]}}, {"bins": BIN})
    assert not passes(gate)
    assert gate.observed == 1, "a single cell"
    assert not passes(as_computed({}, {"bins": BIN}))
    assert not passes(as_computed({"bins": {}}, {}))
    assert not passes(as_computed({"bins": BIN}, {"bins": {name: cells * 2 for name, cells in BIN.items()}}))
