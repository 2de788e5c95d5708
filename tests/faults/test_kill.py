"""SIGKILL, at every stage and at random moments: a rerun completes the same release, and nobody ever sees half."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest

from tests.faults.conftest import FILES, Place
from tests.faults.dying import Point, start
from tests.flows.conftest import PATIENCE

KILLED = -signal.SIGKILL

STAGES = {
    "ingest": {
        "opening": Point("pldp.tasks.run:commit", "before", 3),
        "before-ingest": Point("pldp.tasks.ingest:_fill", "before"),
        "amid-ingest": Point("pldp.tasks.ingest:_read", "after"),
        "ingest-amid-partitions": Point("pldp.tasks.partitions:write_partition", "after", 2),
        "ingest-before-commit": Point("pldp.tasks.ingest:_deal", "after"),
        "after-ingest": Point("pldp.flows.release:record_spend", "before"),
    },
    "perturb": {
        "after-spend": Point("pldp.flows.release:record_spend", "after"),
        "perturb-first-file": Point("pldp.tasks.perturb:write_reports", "after"),
        "perturb-uncommitted-file": Point("pldp.tasks.perturb:link", "before", 3),
        "perturb-committed-file": Point("pldp.tasks.perturb:link", "after", 4),
        "perturb-all-files": Point("pldp.flows.histograms:draw", "after"),
    },
    "conclude": {
        "amid-count": Point("pldp.tasks.count:read_reports", "after", 5),
        "after-count": Point("pldp.flows.pipeline:add_up", "after"),
        "estimate": Point("pldp.tasks.estimate:estimate_levels", "after"),
        "combine": Point("pldp.tasks.combine:estimate_histogram", "after"),
        "before-validate": Point("pldp.expectations.runner:run_gates", "before"),
        "after-validate": Point("pldp.flows.histograms:budget_rows", "before"),
    },
    "publish": {
        "before-draft": Point("pldp.tasks.publish:_replace", "before"),
        "amid-draft": Point("pldp.tasks.publish:comments", "after", 3),
        "amid-rows": Point("polars:DataFrame.to_arrow", "after", 3),
        "draft-done": Point("pathlib:Path.rename", "before", given="results-"),
        "before-swap": Point("pldp.tasks.publish:_point", "before"),
        "amid-swap": Point("pathlib:Path.symlink_to", "after", given="results-"),
        "after-swap": Point("pldp.tasks.publish:_point", "after"),
    },
    "forget": {
        "before-forgetting": Point("pldp.flows.release:forget_vault", "before"),
        "amid-forgetting": Point("os:rmdir", "before", given="/vault/"),
    },
    "page": {
        "after-forgetting": Point("pldp.flows.release:forget_vault", "after"),
        "amid-page": Point("pldp.tasks.page:replace", "after"),
    },
    "end": {"after-page": Point("pldp.flows.release:page_problem", "after")},
}
"""Every stage with its moments, in order: a release that resumes after one still comes to the next."""

POINTS = {name: point for moments in STAGES.values() for name, point in moments.items()}


def reached(name: str, moment: str) -> bool:
    return list(POINTS).index(name) >= list(POINTS).index(moment)


def kill(place: Place, name: str) -> None:
    """Kill the release there, and look at once at what is left."""
    before = place.committed()
    assert place.run("killed", POINTS[name]) == KILLED, place.said()
    assert place.check_whole() == (2 if reached(name, "after-swap") else 1)
    committed = place.committed()
    assert before.items() <= committed.items(), "committed reports were drawn again"
    assert (len(committed) > FILES) == reached(name, "perturb-first-file")
    if name != "opening":
        assert place.spent(place.opened("killed")) == reached(name, "after-spend")


def finish(place: Place) -> None:
    committed = place.committed()
    assert place.run("killed") == 0, place.said()
    assert committed.items() <= place.committed().items(), "committed reports were drawn again"
    assert place.check_whole() == 2
    place.check_done(place.opened("killed"))


@pytest.mark.parametrize("stage", STAGES)
def test_kills_at_every_stage(stage: str, place: Place) -> None:
    """Killed at every moment of a stage in turn, the release then ends as if nothing had been."""
    for name in STAGES[stage]:
        kill(place, name)
    finish(place)


@pytest.mark.slow
@pytest.mark.parametrize("name", POINTS)
def test_one_kill(name: str, place: Place) -> None:
    kill(place, name)
    finish(place)


def kill_at_random(place: Place, kills: int, seed: int) -> list[float]:
    """Kill releases at random moments, each again and again until one outruns its killer; the moments."""
    rng = np.random.default_rng(seed)
    began = time.monotonic()
    assert place.run("measured") == 0, place.said()
    lasts = time.monotonic() - began
    moments: list[float] = []
    finished, slots = 2, 0
    while len(moments) < kills:
        slot = f"slot-{slots}"
        process = start(place.home / "said", "release", place.spec, "--home", place.home, "--slot", slot)
        moment = float(rng.uniform(0, lasts))
        process.join(moment)
        process.kill()
        process.join(PATIENCE)
        assert process.exitcode in (0, KILLED), place.said()
        seen = place.check_whole()
        assert seen in (finished, finished + 1)
        if process.exitcode == KILLED:
            moments.append(moment)
        committed = place.committed()
        if process.exitcode == 0 or seen > finished or rng.random() < 0.25:
            assert place.run(slot) == 0, place.said()
            place.check_done(place.opened(slot))
            finished, slots = finished + 1, slots + 1
        assert committed.items() <= place.committed().items(), "committed reports were drawn again"
    assert place.run(f"slot-{slots}") == 0, place.said()
    place.check_done(place.opened(f"slot-{slots}"))
    assert place.check_whole() == finished + 1
    return moments


def test_kills_at_a_few_random_moments(place: Place, seed: int) -> None:
    assert len(kill_at_random(place, 4, seed)) == 4


@pytest.mark.slow
def test_kills_at_fifty_random_moments(place: Place, seed: int) -> None:
    moments = kill_at_random(place, 50, seed)
    print(f"killed after {', '.join(f'{moment:.2f}' for moment in sorted(moments))} s")
    assert len(moments) == 50


def test_two_specs_at_once_end_published(place: Place) -> None:
    """The one without --wait is told; those with it queue up, whoever comes first."""
    other = place.home.parent / "other.yaml"
    text = place.spec.read_text().replace("people.parquet", str(place.spec.parent / "people.parquet"))
    other.write_text(text.replace("name: people", "name: others", 1))
    waiting = [
        start(place.home / "said", "release", spec, "--home", place.home, "--slot", "at-once", "--wait")
        for spec in (place.spec, other)
    ]
    for process in waiting:
        process.join(PATIENCE)
        assert process.exitcode == 0, place.said()
    assert place.check_whole() == 3
