"""Reading published results: what analysts and commands see."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pldp.errors import NotFound
from pldp.tasks.publish import publish
from pldp.tasks.results import list_releases, read_release
from pldp.tasks.run import Run
from tests.people import opened, world
from tests.tasks.conftest import Staged

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict


def published(folder: Path, slot: str, staged: Staged, verdicts: tuple[Verdict, ...]) -> Run:
    run, _ = opened(folder / "spec.yaml", folder / "home", slot)
    run.home.record_spend(
        {"release_id": run.release_id, "name": run.plan.name, "at": "2026-11-16T03:00:00+00:00", "budget": 4.0}
    )
    publish.fn(run, 4000, staged.tables, verdicts)
    return run


@pytest.fixture
def home(tmp_path: Path) -> Path:
    world(tmp_path)
    return tmp_path / "home"


def test_an_empty_home(home: Path) -> None:
    assert list_releases(home).is_empty()
    with pytest.raises(NotFound, match=r"`pldp releases --home .*` lists them"):
        read_release(home, "people")


def test_a_release_by_id_or_the_newest_of_a_name(
    home: Path, staged: Staged, passed: tuple[Verdict, ...], refused: tuple[Verdict, ...]
) -> None:
    runs = [published(home.parent, slot, staged, verdicts) for slot, verdicts in (("a", passed), ("b", refused))]
    assert read_release(home, runs[0].release_id).status == "published"
    assert read_release(home, "people").release_id == runs[1].release_id
    listed = list_releases(home)
    assert listed["release_id"].to_list() == [runs[1].release_id, runs[0].release_id], "newest first"
    assert listed["spent"].to_list() == [4.0, 4.0]


def test_what_a_release_holds(home: Path, staged: Staged, passed: tuple[Verdict, ...]) -> None:
    found = read_release(home, published(home.parent, "a", staged, passed).release_id)
    assert found.valid
    assert found.failed_gates() == ""
    assert found.tables["histograms"].equals(staged.rows)
    assert found.statement is not None
    content = json.loads(json.dumps(found.as_json(), default=str, allow_nan=False))
    assert {"release_id", "name", "status", "histograms", "budgets", "validations", "privacy"} <= set(content)


def test_a_failed_gate_or_a_changed_plan_is_not_valid(
    home: Path, staged: Staged, passed: tuple[Verdict, ...], refused: tuple[Verdict, ...]
) -> None:
    bad = read_release(home, published(home.parent, "a", staged, refused).release_id)
    assert not bad.valid
    assert bad.failed_gates() == "two"
    assert bad.statement is not None
    run = published(home.parent, "b", staged, passed)
    (run.folder / "plan.json").write_text("{}")
    changed = read_release(home, run.release_id)
    assert not changed.valid
    assert "does not have the published hash" in changed.failed_gates()
    (run.folder / "plan.json").unlink()
    assert not read_release(home, run.release_id).valid


def test_a_release_that_spent_but_never_ended_is_listed(tmp_path: Path) -> None:
    run, _ = opened(world(tmp_path), tmp_path / "home")
    run.home.record_spend({"release_id": run.release_id, "name": "people", "at": "2026-11-16T03:00:00Z", "budget": 4.0})
    row = list_releases(tmp_path / "home").to_dicts()[0]
    assert (row["status"], row["spent"], row["n_users"]) == ("unfinished", 4.0, None)
    with pytest.raises(NotFound):
        read_release(tmp_path / "home", run.release_id)
