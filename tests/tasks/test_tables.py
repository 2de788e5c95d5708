"""Frames of the published tables: what their declaration demands, and the rows of histograms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pldp.questions.tables import published_table
from pldp.tables.common import BUDGETS, VALIDATIONS
from pldp.tables.histograms import LEVEL_ESTIMATES, LEVEL_SHARES
from pldp.tables.items import ITEMSETS, RULES
from pldp.tasks.tables import completed, frame, of_release, schema, validation_rows
from tests.people import JOBS
from tests.tasks.conftest import Staged, stage_run


@pytest.mark.parametrize("table", ["histograms", "estimates", "level_estimates", "budgets"])
def test_frames_have_the_columns_of_their_tables(table: str, staged: Staged) -> None:
    assert dict(staged.tables[table].schema) == schema(published_table(table).content)


def test_columns_are_cast_and_put_in_order() -> None:
    columns = {
        "n_reports": np.array([3, 4], dtype=np.int32),
        "mechanism": "brr",
        "frequency": [1, 0.5],
        "standard_error": np.array([0.5, 0.25], dtype=np.float32),
        "value": ("a", "b"),
        "level": "low",
        "attribute": "job",
    }
    made = frame(LEVEL_ESTIMATES, columns)
    assert dict(made.schema) == schema(LEVEL_ESTIMATES.content)
    assert made.rows() == [("job", "low", "a", "brr", 1.0, 0.5, 3), ("job", "low", "b", "brr", 0.5, 0.25, 4)]


def test_what_may_be_null_can_be_left_out() -> None:
    made = frame(LEVEL_SHARES, {"level": ["low"], "share": [0.5], "standard_error": [0.1]})
    assert made.rows() == [(None, "low", 0.5, 0.1)]
    assert dict(made.schema) == schema(LEVEL_SHARES.content)
    assert frame(LEVEL_SHARES, made.to_dict()).equals(made), "a frame's own columns make the same frame"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"levels": ["low"]}, "table level_shares has no column levels"),
        ({"release_id": "a-1"}, "table level_shares has no column release_id"),
        ({"share": ["CANARY"]}, "cells are not of their column's type"),
        ({"share": np.array(["CANARY"])}, "cells are not of their column's type"),
        ({"share": pl.Series(["CANARY"])}, "cells are not of their column's type"),
        ({"level": ["CANARY"], "share": [0.5, 0.25]}, "columns differ in length"),
    ],
)
def test_a_frame_that_is_not_its_table_is_refused_without_its_cells(wrong: dict[str, Any], message: str) -> None:
    columns = {"level": "low", "share": [0.5], "standard_error": 0.1} | wrong
    with pytest.raises(ValueError, match=message) as refused:
        frame(LEVEL_SHARES, columns)
    assert "CANARY" not in str(refused.value)
    assert refused.value.__context__ is None


def test_a_missing_column_is_named() -> None:
    with pytest.raises(ValueError, match="table level_shares lacks its column share, standard_error"):
        frame(LEVEL_SHARES, {"level": ["low"]})


def test_no_rows_have_the_columns_all_the_same() -> None:
    made = frame(RULES, {})
    assert made.is_empty()
    assert dict(made.schema) == schema(RULES.content)
    assert validation_rows([]).is_empty()


def test_rows_of_a_release() -> None:
    part = {"items": [["bread", "milk"], ["beer"]], "length": [2, 1], "n_users": 9}
    part |= dict.fromkeys(("support", "standard_error", "ci_low", "ci_high", "probability_frequent"), 0.5)
    made = frame(ITEMSETS, part)
    assert made["items"].to_list() == [["bread", "milk"], ["beer"]]
    named = of_release(made, "a-1")
    assert named.columns[0] == "release_id"
    assert set(named["release_id"]) == {"a-1"}
    assert of_release(frame(ITEMSETS, {}), "a-1").is_empty()


def test_rows_of_another_version_are_completed() -> None:
    older = pl.DataFrame({"release_id": ["a-1"], "gate": ["g"], "unknown": [1]})
    made = completed(VALIDATIONS, older)
    assert dict(made.schema) == schema(VALIDATIONS.columns)
    assert made.rows() == [("a-1", "g", None, None, None, None, None, None)]
    assert completed(VALIDATIONS, pl.DataFrame()).is_empty(), "a table that is not there has no rows"


def test_histogram_rows(staged: Staged) -> None:
    rows = staged.rows.filter(pl.col("attribute") == "job")
    assert rows["value"].to_list() == list(JOBS)
    assert rows["count"].to_list() == pytest.approx((rows["frequency"] * 4000).to_list())
    assert set(rows["n_reports"]) == {4000}
    assert rows["frequency"].sum() == pytest.approx(1), "norm-sub"
    error = staged.result.histograms[0].unbiased.standard_error
    reliable = np.asarray(rows["unbiased_frequency"]) > 3 * error
    assert rows["reliable"].to_list() == reliable.tolist()
    assert reliable.any()
    assert rows["unbiased_standard_error"].to_list() == error.tolist(), "that of the column to compute with"
    assert (rows["unbiased_standard_error"] > rows["standard_error"]).any(), "post-processing makes single cells better"


def test_level_rows(staged: Staged) -> None:
    """A level's standard error is that of its noise, √(v/n)."""
    rows = staged.tables["level_estimates"]
    for i, attribute in enumerate(staged.histograms.attributes):
        for j, level in enumerate(attribute.levels):
            part = rows.filter((pl.col("attribute") == attribute.name) & (pl.col("level") == level.level))
            assert part["frequency"].to_list() == pytest.approx(staged.result.levels[i].levels.frequencies[j].tolist())
            n = int(staged.result.supports[i].n[j])
            p, q = level.protocol.p, level.protocol.q
            assert set(part["n_reports"]) == {n}
            assert part["standard_error"].to_list() == pytest.approx([np.sqrt(p * q / (p - q) ** 2 / n)] * part.height)


def test_budget_rows(staged: Staged) -> None:
    rows = staged.tables["budgets"]
    assert rows.height == 2 * 3
    assert rows["level_leak"].null_count() == 6
    assert rows.filter(pl.col("level") == "low")["nominal_epsilon"].sum() == pytest.approx(4)
    assert (rows["exact_epsilon"] <= rows["nominal_epsilon"]).all()
    assert frame(BUDGETS, staged.histograms.budgets(None))["n_users"].null_count() == 6, "a plan has no users yet"


def test_a_level_nobody_chose_has_no_estimates(tmp_path: Path) -> None:
    levels = {"assigned": {"high": 0.5, "mid": 0, "low": 0.5}}
    found = stage_run(tmp_path, levels=levels)
    assert set(found.tables["level_estimates"]["level"]) == {"high", "low"}
    sizes = dict(found.tables["budgets"].filter(pl.col("attribute") == "job").select("level", "n_users").iter_rows())
    assert sizes["mid"] == 0
    assert sum(sizes.values()) == 4000


def test_validation_rows() -> None:
    from pldp.expectations.runner import Verdict

    rows = validation_rows((Verdict("g", "It holds.", False, 1.0, 2.0, 0.5, "items"),))
    assert rows.to_dicts() == [
        {
            "gate": "g",
            "sentence": "It holds.",
            "passed": False,
            "observed": 1.0,
            "bound": 2.0,
            "false_alarm": 0.5,
            "question": "items",
        }
    ]


def test_the_error_of_the_unbiased_frequency_covers_the_population(tmp_path: Path) -> None:
    """Where a spec asks about the population behind the users, their sampling is in this error: f(1 − f)/(n − 1)."""
    staged = stage_run(tmp_path, intervals={"target": "population"})
    for histogram, (_, rows) in zip(
        staged.result.histograms, staged.rows.group_by("attribute", maintain_order=True), strict=True
    ):
        inside = np.clip(histogram.unbiased.frequency, 0, 1)
        expected = np.sqrt(histogram.unbiased.standard_error**2 + inside * (1 - inside) / 3999)
        assert rows["unbiased_standard_error"].to_list() == pytest.approx(expected.tolist(), rel=1e-12)
