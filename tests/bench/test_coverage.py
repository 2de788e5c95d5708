"""The coverage bench says what it finds: a bad cell fails it, chance does not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench import common
from bench.coverage import grid, measure, moved_gamma
from bench.coverage_report import REPEATS, Cell, Setting, edges, report

SETTING = Setting(7, 1_000, 6, "thirds", "guarded", 1.0, "independent")
CELL = Cell(SETTING, "one person", round(0.95 * REPEATS), REPEATS, False, 0.1, 1.0)


@pytest.fixture(autouse=True)
def _results_elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(common, "RESULTS", tmp_path)


@pytest.mark.parametrize(
    ("change", "passes"),
    [
        ({}, True),
        ({"covered": round(0.93 * REPEATS)}, True),  # 2,000 repetitions cannot tell it from 94 %
        ({"covered": round(0.91 * REPEATS)}, False),
        ({"covered": round(0.99 * REPEATS)}, False),
        ({"covered": round(0.99 * REPEATS), "forced": True}, True),
        ({"over_sum": 1.05}, True),  # without dependence it is `oc+`, whose tests are not compared with those of `sum`
        ({"over_sum": 1.05, "setting": replace(SETTING, gamma=1.3)}, False),
    ],
)
def test_a_bad_cell_fails_and_chance_does_not(change: dict[str, float | bool | Setting], passes: bool) -> None:
    cells = [CELL] * 20 + [replace(CELL, kind="top", **change)]  # type: ignore[arg-type]
    assert report(cells) is passes


def test_an_edge_is_judged_beside_the_other_one() -> None:
    """What is covered too often at one edge of Γ may be what the other needs; alone it says nothing yet."""
    up, down = (
        replace(CELL, setting=replace(SETTING, gamma=1.3, choice=choice), covered=round(rate * REPEATS))
        for choice, rate in (("up", 0.99), ("down", 0.95))
    )
    assert edges([up]) == []
    assert edges([up, down]) == [down]
    assert not report([up, replace(down, covered=up.covered)])


def test_one_setting_from_end_to_end() -> None:
    cells = measure(SETTING)
    assert [cell.kind for cell in cells] == ["nobody", "one person", "rare", "middle", "top", "most"]
    # α = 1e-6 over six cells.
    assert all(0.925 < cell.rate < 0.98 for cell in cells)


def test_the_quick_grid_is_a_part_of_the_hard_corners_and_moving_people_means_a_gamma() -> None:
    quick, whole = list(grid(quick=True)), list(grid(quick=False))
    assert len(quick) == 54
    assert len({setting.name for setting in whole}) == len(whole)
    assert moved_gamma("thirds", 33) == pytest.approx(0.95 + 0.05 * 3, abs=1e-3)
