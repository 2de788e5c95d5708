"""The bench of items' coverage: a small run of every protocol through the release's code."""

from __future__ import annotations

import numpy as np
import pytest

from bench.coverage_items import SETTINGS, Setting, lengths_of, plan_of, rows


def test_rows_say_what_was_measured() -> None:
    found = rows(2, SETTINGS[:1] + SETTINGS[-1:])
    assert {row["setting"] for row in found} == {SETTINGS[0].name, SETTINGS[-1].name}
    assert {row["class"].split(",")[0] for row in found} == {"singles", "sets", "rules"}
    intervals = np.array([row["intervals"] for row in found])
    covered = np.array([row["covered"] for row in found])
    # Several hundred intervals of two draws: far from the few in a hundred that held before.
    assert (intervals @ covered) / intervals.sum() > 0.9
    assert all(row["length"] > 0 for row in found)


def test_declared_lengths_are_whole_and_choose_the_padding() -> None:
    setting = Setting("small", 30, 2000, 4, 3, 0.1)
    shares = [eval_ratio(share) for share in lengths_of(setting).values()]
    assert sum(shares) == pytest.approx(1)
    plan = plan_of(setting)
    assert plan.protocol == "sampling"
    assert plan.lengths is not None


def eval_ratio(share: str) -> float:
    part, whole = share.split("/")
    return int(part) / int(whole)
