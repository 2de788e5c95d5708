"""No table cuts a number, whatever the width: at 40, 80 and 200 columns every number of every table is there whole."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from rich.console import Console
from rich.text import Text

from pldp.flows.answers import show_answer
from pldp.flows.planned import predict
from pldp.flows.render import gates_table, show_releases
from pldp.flows.render_aggregates import totals_tables
from pldp.flows.render_budgets import budget_tables
from pldp.flows.render_histograms import histogram_tables, shares_table
from pldp.flows.render_items import itemset_tables
from pldp.flows.render_numbers import means_table, quantiles_table
from pldp.flows.shown import show_plan, show_study
from pldp.flows.tables import Bar, Table
from pldp.tasks.analyst import Answer
from pldp.tasks.specfile import load_spec
from tests.flows.conftest import ROOT
from tests.tasks.published import publish_by_hand

WIDTHS = (40, 80, 200)
TOTAL = 553_699.0
LONG = "a rather long name of an attribute"


class Study:
    """Stands for an evaluation: what is shown of one are its tables."""

    def __init__(self, **tables: pl.DataFrame) -> None:
        self.tables = tables


class Catcher(Console):
    """Keeps the tables that are printed."""

    def __init__(self) -> None:
        super().__init__(file=io.StringIO(), width=200)
        self.caught: list[Table] = []

    def print(self, *objects: Any, **_: Any) -> None:
        self.caught += [found for found in objects if isinstance(found, Table)]


def shares(**columns: Any) -> pl.DataFrame:
    return pl.DataFrame({"attribute": [LONG, LONG, LONG], **columns})


def test_shares_that_were_moved_out_of_their_intervals_are_told() -> None:
    rows = pl.DataFrame(
        {
            "attribute": ["meal"] * 2,
            "value": ["soup", "salad"],
            "frequency": [0.999, 0.0003],
            "standard_error": [0.002] * 2,
            "ci_low": [0.99, 0.0007],
            "ci_high": [1.0, 0.0133],
            "method": ["guarded"] * 2,
            "postprocess": ["norm-sub"] * 2,
            "n_reports": [100] * 2,
            "reliable": [True] * 2,
        }
    )
    (moved,) = histogram_tables(rows)
    assert str(moved.caption).startswith("norm-sub moved 1 of these out of their intervals")
    (inside,) = histogram_tables(rows.with_columns(frequency=pl.col("ci_low")))
    assert inside.caption is None


def published() -> list[Table]:
    estimates = {"standard_error": [0.0043, 0.0065, 0.001], "ci_low": [0.31, 0.2, 0.0], "ci_high": [0.33, 0.22, 0.001]}
    histograms = shares(
        value=["60-74", "a value of many words that is long", "1,234,567.89"],
        method=["oc+"] * 3,
        postprocess=["norm-sub"] * 3,
        n_reports=[1_234_567] * 3,
        frequency=[0.3217, 0.2111, 0.0001],
        reliable=[True, True, False],
        **estimates,
    )
    numbers = {"n_reports": [1_234_567] * 3, "standard_error": [2_970.4, 0.012, 3e-7]}
    interval = {"ci_low": [TOTAL, -1.5, 1e-9], "ci_high": [1_234_567.8, 2.5, 1e-8]}
    means = shares(
        mean=[TOTAL, 0.5, 1e-9],
        lower=[0.0] * 3,
        upper=[1e7] * 3,
        method=["inverse-variance"] * 3,
        **numbers,
        **interval,
    )
    quantiles = shares(probability=[0.25, 0.5, 0.999], quantile=[TOTAL, 1.0, 12_345.678], **numbers, **interval)
    levels = shares(level=["a", "b", "c"], share=[0.512, 0.3, 0.188], standard_error=[0.0123] * 3)
    gates = [
        {"passed": True, "gate": "levels_agree", "sentence": "The levels agree within 12.5 %.", "false_alarm": 5e-6}
    ]
    tables = [*histogram_tables(histograms), means_table(means), quantiles_table(quantiles)]
    return [*tables, *providers_tables(), *basket_tables(), shares_table(levels), gates_table(gates)]


def providers_tables() -> list[Table]:
    aggregates = pl.DataFrame(
        {
            "provider": ["tv", "tv"],
            "attribute": [LONG, "x"],
            "total": [TOTAL, 123_456.0],
            "standard_error": [12_345.6, 1_234.5],
            "ci_low": [529_501.0, 121_000.0],
            "ci_high": [577_896.0, 125_875.0],
            "share": [0.8177, 0.1823],
            "share_error": [0.012, 0.011],
            "n_users": [1_000_000] * 2,
        }
    )
    budgets = pl.DataFrame(
        {
            "provider": ["tv"] * 3,
            "attribute": [LONG] * 3,
            "level": ["a profile", "low", "high"],
            "unit": ["item"] * 3,
            "mechanism": ["subset 3 of 12"] * 3,
            "exact_epsilon": [0.123456, 1.23456, 12.3456],
            "nominal_epsilon": [0.123457, 1.23457, 12.3457],
            "level_leak": [0.123, 0.123, 0.123],
            "share": [0.25] * 3,
        }
    )
    of_people = budgets.with_columns(provider=pl.lit(None, dtype=pl.String))
    return [*totals_tables(aggregates), *budget_tables(budgets), *budget_tables(of_people)]


def basket_tables() -> list[Table]:
    itemsets = pl.DataFrame(
        {
            "items": [["milk", "bread and butter"], ["beer"]],
            "length": [2, 1],
            "support": [0.3217, 0.2111],
            "probability_frequent": [0.97, 0.42],
            "understatement": [0.01, 0.0],
            "standard_error": [0.0043, 0.0065],
            "ci_low": [0.31, 0.2],
            "ci_high": [0.33, 0.22],
        }
    )
    rules = pl.DataFrame(
        {
            "antecedent": [["milk"]],
            "consequent": [["bread and butter"]],
            "support": [0.3217],
            "confidence": [0.9123],
            "standard_error": [0.0123],
            "ci_low": [0.88],
            "lift": [12.34],
        }
    )
    return list(itemset_tables(itemsets, rules))


def studies() -> list[Table]:
    out = Catcher()
    methods = pl.DataFrame(
        {
            "attribute": [LONG],
            "method": ["oc+"],
            "repeats": [1_000_000],
            "rmse": [0.01234],
            "predicted": [0.01236],
            "coverage": [0.951],
            "maximum_error": [0.12345],
            "nse": [TOTAL],
            "unbiasedness_rate": [0.0],
            "disagreement_rate": [0.0],
        }
    )
    means = methods.select("attribute", "method", "repeats", "coverage").with_columns(
        users=pl.lit(1_234_567), rmse=pl.lit(TOTAL), predicted=pl.lit(TOTAL - 1), bias=pl.lit(-1_234.5)
    )
    show_study(out, Study(methods=methods, means=means))  # type: ignore[arg-type]
    aggregates = pl.DataFrame(
        {
            "provider": ["tv"],
            "attribute": [LONG],
            "total": [TOTAL],
            "truth": [TOTAL + 1],
            "standard_error": [12_345.6],
            "z": [-1.23],
            "mean_error": [TOTAL],
            "predicted_mean_error": [0.01234],
        }
    )
    amounts = {"mae": [TOTAL], "mse": [TOTAL**2], "mael": [0.5], "kl": [0.0123]}
    losses = pl.DataFrame({"provider": ["tv"], "profile": ["low"], "spending": ["least loss"], **amounts})
    show_study(out, Study(aggregates=aggregates, losses=losses))  # type: ignore[arg-type]
    return out.caught


def planned(spec: Path) -> list[Table]:
    out = Catcher()
    show_plan(out, predict(load_spec(spec)))
    return out.caught


PLANS = sorted(path.name for path in (ROOT / "data").glob("*.yaml"))


def tokens(text: str) -> list[str]:
    """Words with a digit in them."""
    return [word for word in re.split(r"[\s│┃]+", text) if re.search(r"\d", word)]


def rendered(table: Table, width: int) -> str:
    out = Console(file=io.StringIO(), width=width, markup=False)
    out.print(table)
    text = out.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= width
    return str(text)


def check_whole(table: Table, width: int) -> None:
    cells = [str(cell) for column in table.columns for cell in column.cells if isinstance(cell, str | Text)]
    wanted = {token for cell in cells for token in tokens(cell)}
    shown = rendered(table, width)
    assert wanted <= set(tokens(shown)), f"{sorted(wanted - set(tokens(shown)))} of {table.title} at {width}\n{shown}"
    assert "…" not in shown.replace("… ", "")


@pytest.mark.parametrize("width", WIDTHS)
def test_tables_of_releases_and_studies(width: int) -> None:
    tables = [*published(), *studies()]
    assert len(tables) == 15
    for table in tables:
        check_whole(table, width)
    assert any("553,699" in rendered(table, width) for table in tables)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PLANS)
def test_tables_of_plans(name: str, width: int) -> None:
    path = ROOT / "data" / name
    if not (tables := _planned(path)):
        pytest.skip("its source has to be fetched first")
    for table in tables:
        check_whole(table, width)


def _planned(path: Path) -> list[Table]:
    from pldp.errors import PldpError

    try:
        return planned(path)
    except PldpError:
        return []


@pytest.mark.parametrize("width", WIDTHS)
def test_bars_compare_at_any_width(width: int) -> None:
    """32 % and 21 % have bars of different lengths, in the proportion of their numbers."""
    table, *_ = published()
    longest, second, *_ = [len(line) for line in re.findall(r"█+", rendered(table, width))]
    assert second / longest == pytest.approx(0.2111 / 0.3217, abs=1 / longest)
    assert longest - second >= 2


def test_a_bar_is_drawn_in_the_room_there_is() -> None:
    for width in (8, 12, 24, 100):
        out = Console(file=io.StringIO(), width=width)
        out.print(Bar(1.0, 24))
        assert out.file.getvalue().strip() == "█" * min(width, 24)  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", WIDTHS)
def test_answers(width: int) -> None:
    values = (553_699.25, 5_536_990.5, 123_456_789_012, -0.012345, "60-74", None, 1e-9)
    answer = Answer(tuple(f"column_{i}" for i in range(len(values))), [values], whole=True)
    out = Console(file=io.StringIO(), width=width, markup=False)
    show_answer(out, answer)
    shown = tokens(out.file.getvalue())  # type: ignore[attr-defined]
    assert {"553699", "123456789012", "-0.012345", "60-74", "1e-09"} <= set(shown)
    assert {"5536990", "5536991"} & set(shown)


def test_releases_at_forty_columns(tmp_path: Path) -> None:
    from pldp.tasks.results import list_releases

    home, release_id = publish_by_hand(tmp_path, "first")
    out = Catcher()
    show_releases(out, list_releases(home), home)
    for width in WIDTHS:
        check_whole(out.caught[0], width)
        assert release_id in rendered(out.caught[0], width)


def test_a_pipe_has_every_number(tmp_path: Path) -> None:
    """A command in a pipe, of which nobody said how wide it is: one line a row, nothing cut."""
    home, release_id = publish_by_hand(tmp_path, "first")
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "pldp.flows.cli", "show", release_id, "--home", str(home)]
    said = subprocess.run(command, capture_output=True, text=True, env=environment, check=True).stdout
    assert "…" not in said
    rows = [line for line in said.splitlines() if "farmer" in line]
    assert any("40.82% │   2.00% │ 36.82% – 44.82%" in line for line in rows), said


def test_budgets_stand_in_the_column_of_their_level() -> None:
    """Providers have tables of their own; attributes whose people choose from other levels keep to their columns."""
    rows = pl.DataFrame(
        {
            "provider": [None, None, None, "tv", "tv", "shop", "shop"],
            "attribute": ["sex", "sex", "age", "war", "war", "war", "war"],
            "level": ["high", "low", "low", "shy", "open", "shy", "open"],
            "unit": ["user"] * 3 + ["item"] * 4,
            "mechanism": ["krr"] * 7,
            "exact_epsilon": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7],
            "nominal_epsilon": [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7],
            "level_leak": [0.25, 0.25, None, None, None, None, None],
            "share": [0.5] * 7,
        }
    )
    people, tv, shop = budget_tables(rows)
    high, low = (list(column.cells) for column in people.columns[1:3])
    assert high == ["0.1000 krr", ""]
    assert low == ["0.2000 krr", "0.3000 krr"]
    assert list(people.columns[-1].cells) == ["0.250", ""]
    assert [list(column.cells) for column in tv.columns] == [["war"], ["0.4000 of 0.4000"], ["0.5000 of 0.5000"]]
    assert str(shop.title).startswith("shop: ε of one item")
