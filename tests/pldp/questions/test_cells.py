"""Cells to positions: plain Python for one person and the database for everybody agree on every odd text."""

from __future__ import annotations

import math
from random import Random

import duckdb
import polars as pl
import pytest

from pldp.questions.cells import (
    NO_MISSING,
    NO_OTHER,
    Bins,
    Choice,
    Codes,
    Declared,
    Importance,
    Product,
    combined,
    number,
    position,
    weight,
)
from pldp.tasks.positions import Positions, column, combine, matters, place

ODD = [
    None, "", " ", "a", "A", " a", "a ", "b", "ä", "a\u0308", "é", "名", "null", "NULL", "none", "0", "1", "2", "-1",
    "1e3", "1E+3", "0x10", "0b1", "inf", "-inf", "Infinity", "nan", "NaN", "-nan", " 5 ", "\t5", "5\n",
    "\u00a05", "5\u2003",
    "١٢", "５", "½", "9" * 400, "9" * 30, "1" + "0" * 25, "-0.0", "0.0", "+5", "+-5", "++5", "+ 5", "- 5", "--5",
    "5-", ".5",
    "5.", ".", "-", "+", "1e", "e5", "1e400", "1e-400", "1_000", "1__0", "_1", "1_", "1,5", "1.5", "0.5", "0.25", "0.1",
    "0.30000000000000004", "0.3", "0.1000000000000000055511151231257827",
    "true", "True", "t", "yes", "Y", "no", "false",
    "f", "on", " true ", "T", "high", "low", "LOW", "5'", '5"', "--", ";", "1 2", "00012", "1d", "0x1p3",
]  # fmt: skip
CUTS = (-0.5, 0.1, 0.30000000000000004, 0.5, 2.0, 12.0)
RULES = [
    Declared(("a", "b", "é", "5", " ", "1e3")),
    Declared(("b", "a"), missing=1),
    Declared(("b", "a"), other=0),
    Declared(("a", "0", "1"), missing=2, other=0),
    Declared(("it's", 'say "hi"', "名", "a"), missing=0, other=1),
    Bins(CUTS),
    Bins(CUTS, missing=3),
    Bins((0.0, 1.0)),
    Codes(0.0, 1.0, 1 << 20),
    Codes(-0.7, 0.30000000000000004, 3, missing=2),
    Codes(0.0, 5.0, 2),
    Choice(("high", "mid", "low"), 0),
    Choice(("high", "low"), 1),
]


def read(texts: list[str | None]) -> pl.DataFrame:
    return pl.DataFrame({"row": range(len(texts)), "cell": texts}, schema_overrides={"cell": pl.String})


def edges() -> list[str | None]:
    """Every cut and its neighbouring doubles, to the last digit, and halves between codes."""
    near = [value for cut in CUTS for value in (cut, math.nextafter(cut, -9), math.nextafter(cut, 99))]
    halves = [0.5 / 2 * 5, 1.5 / 2 * 5, 2.5, -0.7 + 0.5 / 3, -0.7 + 2.5 / 3]
    return [repr(value) for value in (*near, *halves)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{type(rule).__name__}")
def test_one_person_and_everybody_have_the_same_positions(rule: Declared | Bins | Codes | Choice) -> None:
    texts = [*ODD, *edges()]
    frame = read(texts).to_arrow()
    with duckdb.connect() as connection:
        raw = Positions(connection).raw(rule, column("cell"))
        cells = connection.from_arrow(frame)
        faults = place(rule, column("cell"), raw, faults=True)
        found = cells.select(column("row"), faults.cast("INTEGER"), place(rule, column("cell"), raw)).order("row")
        rows = found.fetchall()
    for (_, with_faults, plain), text in zip(rows, texts, strict=True):
        expected = position(rule, text)
        assert with_faults == expected, repr(text)
        assert plain == (expected if expected >= 0 else None), repr(text)


def test_faults_are_told_apart() -> None:
    assert position(Declared(("a",)), None) == position(Declared(("a",)), "") == NO_MISSING
    assert position(Declared(("a",)), "x") == NO_OTHER
    assert position(Bins((0.0, 1.0)), "x") == NO_MISSING
    assert position(Codes(0.0, 1.0, 10), "nan") == NO_MISSING
    assert position(Choice(("a", "b"), 1), "x") == 1


def test_random_texts_are_the_same_numbers(seed: int) -> None:
    """What looks nearly like a number: 20,000 texts of its signs."""
    rng = Random(seed)  # noqa: S311
    texts = ["".join(rng.choice("0159+-.eE_ \tinfaN") for _ in range(rng.randrange(1, 7))) for _ in range(20_000)]
    with duckdb.connect() as connection:
        Positions(connection)
        found = connection.execute("SELECT cell_number(unnest($texts::VARCHAR[]))", {"texts": texts}).fetchall()
    different = [text for text, (value,) in zip(texts, found, strict=True) if value != number(text)]
    assert not different


@pytest.mark.parametrize("truth", [True, False])
def test_importance(truth: bool) -> None:
    rule = Importance(truth)
    with duckdb.connect() as connection:
        raw = Positions(connection).raw(rule, column("cell"))
        cells = connection.from_arrow(read(list(ODD)).to_arrow())
        found = cells.select(column("row"), matters(rule, raw)).order("row").fetchall()
    for (_, value), text in zip(found, ODD, strict=True):
        assert value == pytest.approx(weight(rule, text), rel=1e-6), repr(text)


def test_crosstabs() -> None:
    rule = Product((Declared(("a", "b"), missing=0), Bins((0.0, 1.0, 2.0)), Declared(("x", "y", "z"), other=2)))
    texts = [(a, b, c) for a in ("a", "b", None, "no") for b in ("0.5", "1", "none") for c in ("x", "y", "?", None)]
    frame = pl.DataFrame({"row": range(len(texts)), **{f"c{i}": [text[i] for text in texts] for i in range(3)}})
    with duckdb.connect() as connection:
        rules = Positions(connection)
        placed = [place(part, column(f"c{i}"), rules.raw(part, column(f"c{i}"))) for i, part in enumerate(rule.parts)]
        found = connection.from_arrow(frame.to_arrow()).select(column("row"), combine(rule, placed)).order("row")
        rows = found.fetchall()
    assert len({at for _, at in rows if at is not None}) == 2 * 2 * 3
    for (_, at), text in zip(rows, texts, strict=True):
        expected = combined(rule, text)
        assert at == (expected if expected >= 0 else None), text
