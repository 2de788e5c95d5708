"""The rows of the published tables."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pldp.tasks.query import connect, names, statement
from pldp.tasks.tables import budget_rows, validation_rows
from tests.people import JOBS
from tests.tasks.conftest import Staged, stage_run


@pytest.mark.parametrize("table", ["histograms", "level_estimates", "budgets"])
def test_frames_have_the_columns_of_their_tables(table: str, staged: Staged, tmp_path: Path) -> None:
    (name,) = (name for name in names("5") if name.endswith(f"publish_{table}"))
    with connect(tmp_path / "t.duckdb") as connection:
        connection.execute(statement(name))
        columns = [row[0] for row in connection.execute(f"SELECT column_name FROM (DESCRIBE {table})").fetchall()]  # noqa: S608
    # Only a release of aggregates has providers; in others the column stays null.
    elsewhere = {"provider"} if table == "budgets" else set()
    assert set(staged.tables[table].columns) | {"release_id"} | elsewhere == set(columns)


def test_histogram_rows(staged: Staged) -> None:
    rows = staged.rows.filter(pl.col("attribute") == "job")
    assert rows["value"].to_list() == list(JOBS)
    assert rows["count"].to_list() == pytest.approx((rows["frequency"] * 4000).to_list())
    assert set(rows["n_reports"]) == {4000}
    assert rows["frequency"].sum() == pytest.approx(1), "norm-sub"
    error = staged.histograms[0].unbiased.standard_error
    reliable = np.asarray(rows["unbiased_frequency"]) > 3 * error
    assert rows["reliable"].to_list() == reliable.tolist()
    assert reliable.any()
    assert rows["unbiased_standard_error"].to_list() == error.tolist(), "that of the column to compute with"
    assert (rows["unbiased_standard_error"] > rows["standard_error"]).any(), "post-processing makes single cells better"


def test_level_rows(staged: Staged) -> None:
    """A level's standard error is that of its noise, √(v/n)."""
    rows = staged.tables["level_estimates"]
    for i, attribute in enumerate(staged.run.plan.attributes):
        for j, level in enumerate(attribute.levels):
            part = rows.filter((pl.col("attribute") == attribute.name) & (pl.col("level") == level.level))
            assert part["frequency"].to_list() == pytest.approx(staged.estimates[i].levels.frequencies[j].tolist())
            n = int(staged.supports[i].n[j])
            p, q = level.protocol.p, level.protocol.q
            assert set(part["n_reports"]) == {n}
            assert part["standard_error"].to_list() == pytest.approx([np.sqrt(p * q / (p - q) ** 2 / n)] * part.height)


def test_budget_rows(staged: Staged) -> None:
    rows = staged.tables["budgets"]
    assert rows.height == 2 * 3
    assert rows["level_leak"].null_count() == 6
    assert rows.filter(pl.col("level") == "low")["nominal_epsilon"].sum() == pytest.approx(4)
    assert (rows["exact_epsilon"] <= rows["nominal_epsilon"]).all()
    assert budget_rows(staged.run.plan)["n_users"].null_count() == 6, "a plan has no users yet"


def test_a_level_nobody_chose_has_no_estimates(tmp_path: Path) -> None:
    levels = {"assigned": {"high": 0.5, "mid": 0, "low": 0.5}}
    found = stage_run(tmp_path, levels=levels)
    assert set(found.tables["level_estimates"]["level"]) == {"high", "low"}
    sizes = dict(found.tables["budgets"].filter(pl.col("attribute") == "job").select("level", "n_users").iter_rows())
    assert sizes["mid"] == 0
    assert sum(sizes.values()) == 4000


def test_validation_rows() -> None:
    from pldp.expectations.runner import Verdict

    rows = validation_rows((Verdict("g", "It holds.", False, 1.0, 2.0, 0.5),))
    assert rows.to_dicts() == [
        {"gate": "g", "sentence": "It holds.", "passed": False, "observed": 1.0, "bound": 2.0, "false_alarm": 0.5}
    ]


def test_the_error_of_the_unbiased_frequency_covers_the_population(tmp_path: Path) -> None:
    """Where a spec asks about the population behind the users, their sampling is in this error: f(1 − f)/(n − 1)."""
    staged = stage_run(tmp_path, intervals={"target": "population"})
    for histogram, (_, rows) in zip(
        staged.histograms, staged.rows.group_by("attribute", maintain_order=True), strict=True
    ):
        inside = np.clip(histogram.unbiased.frequency, 0, 1)
        expected = np.sqrt(histogram.unbiased.standard_error**2 + inside * (1 - inside) / 3999)
        assert rows["unbiased_standard_error"].to_list() == pytest.approx(expected.tolist(), rel=1e-12)
