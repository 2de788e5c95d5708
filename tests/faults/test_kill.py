"""SIGKILL, at every stage and at random moments: a rerun completes the same release, and nobody ever sees half."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.faults.conftest import KINDS, Place, copy_to
from tests.faults.dying import Point, start
from tests.flows.conftest import PATIENCE

KILLED = -signal.SIGKILL

INGEST = {
    "histograms": {
        "before-ingest": Point("pldp.tasks.ingest:_fill", "before"),
        "amid-ingest": Point("pldp.tasks.shares:deal_rows", "after"),
        "ingest-amid-partitions": Point("pldp.tasks.buckets:write_partition", "after", 2),
        "ingest-before-commit": Point("pldp.tasks.ingest:bring_together", "after"),
    },
    "items": {
        "before-ingest": Point("pldp.tasks.ingest:_fill", "before"),
        "amid-ingest": Point("pldp.tasks.shares:deal_rows", "after", 2),
        "ingest-amid-partitions": Point("pldp.tasks.buckets:write_partition", "after", 2),
        "ingest-after-partitions": Point("pldp.tasks.ingest:bring_together", "after"),
        "ingest-before-commit": Point("pldp.tasks.ingest:rows_in", "after"),
    },
}
INGEST["aggregates"] = INGEST["items"]
"""What differs before the draws, by what the people are."""

QUESTIONS = {
    "histograms": "pldp.questions.histograms.question:Histograms",
    "numbers": "pldp.questions.numbers.question:Numbers",
    "hidden": "pldp.questions.histograms.question:Histograms",
    "items": "pldp.questions.items.question:Items",
    "sampled": "pldp.questions.items.question:Items",
    "aggregates": "pldp.questions.aggregates.question:Aggregates",
}

ADAPTING = {
    "before-adapting": Point("pldp.flows.pipeline:_adapt", "before"),
    "amid-adapting": Point("pldp.flows.pipeline:commit", "before"),
    "after-adapting": Point("pldp.flows.pipeline:commit", "after"),
    "second-half-first-file": Point("pldp.tasks.perturb:commit_reports", "after", given="/sets/"),
    "second-half-uncommitted-file": Point("pldp.tasks.reports:link", "before", 2, given="/sets/"),
}
"""Between the halves of a release whose second is asked what the first half's reports say."""


def stages(kind: str) -> dict[str, dict[str, Point]]:
    """Every stage with its moments, in order: a release that resumes after one still comes to the next."""
    people = {"sampled": "items", "numbers": "histograms", "hidden": "histograms"}.get(kind, kind)
    halves = kind == "sampled"
    sets = "/sets/" if halves else ""  # else the count of the first half would be the one that is killed
    asking = {"amid-asking": Point(f"{QUESTIONS[kind]}.count_sets", "after", 3)} if kind == "items" else {}
    return {
        "ingest": {
            "opening": Point("pldp.tasks.run:commit", "before", 3),
            **INGEST[people],
            "after-ingest": Point("pldp.flows.release:record_spend", "before"),
        },
        "perturb": {
            "after-spend": Point("pldp.flows.release:record_spend", "after"),
            "perturb-first-file": Point("pldp.tasks.perturb:commit_reports", "after"),
            "perturb-uncommitted-file": Point("pldp.tasks.reports:link", "before", 3),
            "perturb-committed-file": Point("pldp.tasks.reports:link", "after", 4),
            "perturb-all-files": Point("pldp.flows.release:draw", "after"),
        },
        **({"adapt": ADAPTING} if halves else {}),
        "conclude": {
            "amid-count": Point("pldp.tasks.count:read_reports", "after", 5, given=sets),
            "after-count": Point("pldp.flows.pipeline:add_up", "after", given=sets.lstrip("/")),
            "recorded": Point("pldp.flows.pipeline:record_counted", "after"),
            **asking,
            "estimate": Point(f"{QUESTIONS[kind]}.combine", "after"),
            "combine": Point(f"{QUESTIONS[kind]}.conclude", "after"),
            "before-validate": Point("pldp.expectations.runner:run_gates", "before"),
            "after-validate": Point("pldp.flows.pipeline:Outcome", "before"),
        },
        "publish": {
            "before-draft": Point("pldp.tasks.publish:_replace", "before"),
            "amid-draft": Point("pldp.tasks.schema:_comment", "after", 3),
            "amid-rows": Point("pldp.tasks.publish:insert_rows", "after", 3),
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


POINTS = {kind: {name: p for part in stages(kind).values() for name, p in part.items()} for kind in KINDS}
DIFFERENT = {
    "histograms": tuple(stages("histograms")),
    "numbers": ("conclude",),
    "hidden": ("conclude",),
    "items": ("ingest", "conclude"),
    "sampled": ("adapt", "conclude"),
    "aggregates": ("conclude",),
}
"""Stages where a kind is not like another; the others are run through for every kind if there is time.

Aggregates are ingested as items are, and tests/flows/test_every_kind.py kills every kind amid perturb.
"""
ALIKE = ("opening", "before-ingest", "after-ingest", "after-count", "recorded", "before-validate", "after-validate")
"""Moments when no code of a kind runs: histograms stand for all."""


def kill(place: Place, kind: str, name: str) -> None:
    """Kill the release there, and look at once at what is left."""

    def reached(name: str, moment: str) -> bool:
        return list(POINTS[kind]).index(name) >= list(POINTS[kind]).index(moment)

    before = place.committed()
    assert place.run("killed", POINTS[kind][name]) == KILLED, place.said()
    assert place.check_whole() == (2 if reached(name, "after-swap") else 1)
    committed = place.committed()
    assert before.items() <= committed.items(), "committed reports were drawn again"
    assert (len(committed) > place.kind.files) == reached(name, "perturb-first-file")
    if name != "opening":
        assert place.spent(place.opened("killed")) == reached(name, "after-spend")


def finish(place: Place) -> None:
    committed = place.committed()
    assert place.run("killed") == 0, place.said()
    assert committed.items() <= place.committed().items(), "committed reports were drawn again"
    assert place.check_whole() == 2
    place.check_done(place.opened("killed"))


@pytest.mark.parametrize(
    ("kind", "stage"),
    [
        pytest.param(kind, stage, marks=() if stage in DIFFERENT[kind] else pytest.mark.slow)
        for kind in KINDS
        for stage in stages(kind)
    ],
)
def test_kills_at_every_stage(
    kind: str, stage: str, places: Callable[[str], Place], tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """Killed at every moment of a stage in turn, the release then ends as if nothing had been."""
    place = copy_to(tmp_path / "home", places(kind))
    for name in stages(kind)[stage]:
        if kind == "histograms" or name not in ALIKE or pytestconfig.getoption("--slow"):
            kill(place, kind, name)
    finish(place)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, points in POINTS.items() for name in points])
def test_one_kill(kind: str, name: str, places: Callable[[str], Place], tmp_path: Path) -> None:
    place = copy_to(tmp_path / "home", places(kind))
    kill(place, kind, name)
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
