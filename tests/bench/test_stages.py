"""How long stages took, from what a flow reports."""

from __future__ import annotations

import time

import pytest

from bench.scale import Cost
from bench.stages import Stages


def test_stages_last_from_their_first_report_to_their_last(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = {"wall": 0.0, "cpu": 0.0}
    monkeypatch.setattr(time, "perf_counter", lambda: clock["wall"])
    monkeypatch.setattr(time, "process_time", lambda: clock["cpu"])
    monkeypatch.setattr(time, "time", lambda: 1000 + clock["wall"])
    stages = Stages(lambda: 3 * clock["wall"])
    for wall, cpu, stage, done in (
        (1, 0, "load", 0),
        (2, 0, "load", 1),
        (2, 0, "start", 0),
        (3, 0, "start", 1),
        (3, 0, "ingest", 0),
        (7, 2, "ingest", 1),
        (8, 2, "perturb", 0),
        (9, 4, "perturb", 1),
        (10, 5, "perturb", 2),
        (10, 5, "count", 0),
        (11, 5, "count", 1),
    ):
        clock.update(wall=wall, cpu=cpu)
        stages.listen(stage, done, 2)
    assert stages.first == 1001
    assert stages.seconds == {"load": 1, "start": 1, "ingest": 4, "perturb": 2, "count": 1}
    assert stages.work == 7
    cost = Cost(12.0, 1.0, 0, 0, 0, stages=stages.seconds, stage_cpu=stages.cpu, stage_workers=stages.workers)
    assert cost.shared == 7
    assert cost.commands == 5
    assert cost.workers == 21
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    assert cost.busy == 75
