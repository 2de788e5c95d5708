"""Reports of items as columns of whole numbers: what they look like, that SQL recounts them, that strange ones fail."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from pldp.channels.exact import SCALE
from pldp.channels.randomness import Keystream
from pldp.questions.items.question import Items
from pldp.questions.items.rowchannels import Bits
from pldp.questions.question import Columns, offsets
from tests.pldp.questions.items.memory import NAMES, ONE, make_question, make_table

ALONE: dict[str, Any] = {"users": None, "levels": None, "protocol": "bounded"}


FLIPPED = 3000
"""One bit in so many."""


def wide(n_items: int) -> Items:
    """Next to no noise, more than a spec may spend, so that bits stand where the items do."""
    question = make_question(items=[f"i{n}" for n in range(n_items)], budget={"total": 1000}, **ALONE)
    keep = (SCALE - SCALE // FLIPPED,) * n_items
    (level,) = question.levels
    clear = level.model_copy(update={"channel": Bits(keep_zero=keep, keep_one=keep)})
    return question.model_copy(update={"levels": (clear,)})


def rows_of(table: np.ndarray) -> Columns:
    bounds = np.concatenate([[0], np.cumsum(table.sum(axis=1))])
    return {"items": np.nonzero(table)[1].astype(np.uint32), offsets("items"): bounds}


@pytest.mark.parametrize(
    ("n_items", "columns"),
    [
        (1, {"report": ("uint8", (50,))}),
        (9, {"report": ("uint16", (50,))}),
        (64, {"report": ("uint64", (50,))}),
        (65, {"report_0": ("uint64", (50,)), "report_1": ("uint64", (50,))}),
        (1024, {f"report_{i}": ("uint64", (50,)) for i in range(16)}),
        (1025, {"report": ("uint64", (50, 17))}),
    ],
)
def test_bits_are_unsigned_columns(n_items: int, columns: dict[str, Any], seed: int) -> None:
    """In every coordinate, the first and the last included."""
    question = wide(n_items)
    table = np.random.default_rng(seed).random((50, n_items)) < 0.3
    (sheet,) = question.sheets()
    drawn = question.draw(sheet, rows_of(table), Keystream.seeded(seed), None)
    assert {name: (str(column.dtype), column.shape) for name, column in drawn.items()} == columns
    tally = question.tally(sheet, drawn)
    assert tally.n_reports == 50
    flips = np.abs(tally.counts - table.sum(axis=0))
    # An item has Binomial(50, 1/3000) flips: over four with chance 1e-11, any of 1,025 items with 1e-8.
    assert flips.max() <= 4
    nobody = question.draw(sheet, rows_of(table[:0]), Keystream.seeded(seed), None)
    assert {name: column.dtype for name, column in nobody.items()} == {
        name: column.dtype for name, column in drawn.items()
    }
    assert question.tally(sheet, nobody).counts.tolist() == [0] * n_items


@pytest.mark.parametrize("n_items", [6, 100])
def test_sql_recounts_support_and_sets(n_items: int) -> None:
    question = wide(n_items)
    (sheet,) = question.sheets()
    table = np.random.default_rng(1).random((2000, n_items)) < 0.4
    drawn = question.draw(sheet, rows_of(table), Keystream.seeded(1), None)
    frame = pl.DataFrame(dict(drawn))
    word = "report" if n_items <= 64 else "report_1"
    first = 0 if n_items <= 64 else 64
    held = f"sum(({word} >> 0) & 1)::BIGINT, sum(({word} >> 5) & 1)::BIGINT"
    both = f"sum(({word} >> 0) & ({word} >> 5) & 1)::BIGINT"
    with duckdb.connect() as database:
        database.register("reports", frame.to_arrow())
        ((one, other, together),) = database.execute(f"SELECT {held}, {both} FROM reports").fetchall()  # noqa: S608
    counts = question.tally(sheet, drawn).counts
    assert [one, other] == counts[[first, first + 5]].tolist()
    pairs = np.array([[first, first + 5]], dtype=np.int32)
    assert question.count_sets(sheet, drawn, pairs).tolist() == [[together]]


def test_one_value_is_one_number() -> None:
    question = make_question(**{**ONE, **ALONE})
    (sheet,) = question.sheets()
    values = np.arange(600) % len(NAMES)
    rows: Columns = {"items": values.astype(np.uint32), offsets("items"): np.arange(601)}
    drawn = question.draw(sheet, rows, Keystream.seeded(1), None)
    assert drawn["report"].dtype == np.uint16
    assert question.tally(sheet, drawn).counts.sum() == 600
    with pytest.raises(ValueError, match="a user without exactly one value"):
        question.draw(sheet, {**rows, offsets("items"): np.array([0, 2, 2, *range(3, 601)])}, Keystream.seeded(1), None)


def test_a_slice_of_a_longer_column_starts_elsewhere() -> None:
    """Bounds of a list column need not start at zero."""
    question = wide(6)
    (sheet,) = question.sheets()
    table = make_table(300)
    rows, later = rows_of(table), rows_of(table[100:])
    part = {"items": rows["items"], offsets("items"): rows[offsets("items")][100:]}
    whole = question.draw(sheet, later, Keystream.seeded(4), None)
    np.testing.assert_array_equal(question.draw(sheet, part, Keystream.seeded(4), None)["report"], whole["report"])


def test_an_item_that_stands_twice_is_refused() -> None:
    """It would be drawn twice as often as the exact ratio allows for."""
    question = make_question(**{**ALONE, "protocol": "sampling"})
    sheet = question.sheets()[0]
    rows = {"items": np.array([1, 1], dtype=np.uint32), offsets("items"): np.array([0, 2])}
    with pytest.raises(ValueError, match="row 0 holds an item twice"):
        question.draw(sheet, rows, Keystream.seeded(1), None)


def test_reports_that_no_channel_makes_are_refused() -> None:
    six, wider = wide(6), wide(66)
    (sheet,) = six.sheets()
    for report in (0b100_0000, 0b1000_0000):
        with pytest.raises(ValueError, match="row 1 of the reports has bits beyond the 6 declared items"):
            six.tally(sheet, {"report": np.array([3, report], dtype=np.uint8)})
    assert six.tally(sheet, {"report": np.array([0b11_1111], dtype=np.uint8)}).counts.tolist() == [1] * 6
    good = np.zeros(2, dtype=np.uint64)
    for bit in (2, 8, 63):
        bad = np.array([0, 1 << bit], dtype=np.uint64)
        with pytest.raises(ValueError, match="row 1 of the reports has bits beyond the 66 declared items"):
            wider.tally(wider.sheets()[0], {"report_0": good, "report_1": bad})
    with pytest.raises(ValueError, match="stand in the columns report_0, report_1"):
        wider.tally(wider.sheets()[0], {"report": good})
    one = make_question(**{**ONE, **ALONE})
    with pytest.raises(ValueError, match="row 2 of the reports tells none of the 6 declared values"):
        one.tally(one.sheets()[0], {"report": np.array([0, 5, 6], dtype=np.uint16)})
    sampled = make_question(**{**ALONE, "protocol": "sampling"})
    width = sampled.levels[0].channel.asked[0].sampling.protocol.report_bytes  # type: ignore[union-attr]
    assert width <= 8
    with pytest.raises(ValueError, match=r"row 0 of the reports is none that \w+ can make"):
        sampled.tally(sampled.sheets()[0], {"report": np.array([~np.uint64(0)], dtype=np.uint64)})


def test_only_bits_hold_sets() -> None:
    question = make_question(**{**ONE, **ALONE})
    pairs = np.array(list(combinations(range(3), 2)), dtype=np.int32)
    with pytest.raises(ValueError, match="only reports of bits hold sets"):
        question.count_sets(question.sheets()[0], {"report": np.zeros(1, dtype=np.uint16)}, pairs)
    assert [make_question(**form).asks for form in ({}, {"protocol": "sampling"}, ONE)] == [True, False, False]
