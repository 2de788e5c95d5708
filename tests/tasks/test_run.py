"""A run: identity, and a reference that carries names and paths, never data."""

from __future__ import annotations

import hashlib
import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from pldp.errors import SourceError, SpecError
from pldp.tasks.run import Run
from tests.people import make_people, mode, opened, world, write_spec


def test_the_same_identity_resumes(tmp_path: Path) -> None:
    spec = world(tmp_path)
    first, _ = opened(spec, tmp_path / "home")
    at = (first.folder / "opened.json").read_bytes()
    again, _ = opened(spec, tmp_path / "home")
    assert again == first
    assert (first.folder / "opened.json").read_bytes() == at, "it keeps the time it was first opened"


def test_spec_source_slot_kind_and_seed_make_the_identity(tmp_path: Path) -> None:
    spec, home = world(tmp_path), tmp_path / "home"
    ids = {opened(spec, home)[0].release_id, opened(spec, home, "other")[0].release_id}
    ids |= {opened(spec, home, evaluation=True, seed=seed)[0].release_id for seed in (None, 1, 2)}
    write_spec(tmp_path, budget={"total": 3})
    ids.add(opened(spec, home)[0].release_id)
    make_people(2000, seed=9).write_parquet(tmp_path / "people.parquet")
    ids.add(opened(spec, home)[0].release_id)
    assert len(ids) == 7
    assert all(release_id.startswith("people-") for release_id in ids)


def test_the_identity_is_keyed_with_the_home(tmp_path: Path) -> None:
    """An unkeyed hash of private data would let anyone confirm a guess at it."""
    spec = world(tmp_path)
    assert opened(spec, tmp_path / "a")[0].release_id != opened(spec, tmp_path / "b")[0].release_id


def test_a_run_keeps_spec_plan_and_hashes(tmp_path: Path) -> None:
    run, file = opened(world(tmp_path), tmp_path / "home")
    assert run.plan == file.plan
    assert run.spec_sha256 == hashlib.sha256(file.public.encode()).hexdigest()
    assert json.loads((run.folder / "opened.json").read_text())["slot"] == "manual"


def test_modes_of_a_release_and_of_an_evaluation(tmp_path: Path) -> None:
    spec, home = world(tmp_path), tmp_path / "home"
    release, _ = opened(spec, home)
    evaluation, _ = opened(spec, home, evaluation=True)
    assert mode(release.folder) == 0o755
    assert mode(release.vault.parent) == mode(release.reports) == 0o700
    assert evaluation.folder.parent == home / "evaluations"
    for folder in (evaluation.folder, evaluation.vault.parent, evaluation.reports):
        assert folder == evaluation.folder or folder.parent == evaluation.folder
        assert mode(folder) == 0o700


def test_a_release_accepts_no_seed() -> None:
    with pytest.raises(ValueError, match="a release accepts no seed"):
        Run("home", "x", seed=1)


def test_streams_are_fresh_in_a_release_and_repeat_in_a_seeded_evaluation() -> None:
    release = Run("home", "x")
    assert not np.array_equal(release.stream("a").copy(4), release.stream("a").copy(4))
    seeded = Run("home", "x", evaluation=True, seed=1)
    assert np.array_equal(seeded.stream("a", 1).copy(4), seeded.stream("a", 1).copy(4))
    assert not np.array_equal(seeded.stream("a", 1).copy(4), seeded.stream("a", 2).copy(4))


def test_a_shipped_run_holds_no_data(tmp_path: Path) -> None:
    run, _ = opened(world(tmp_path), tmp_path / "home")
    content = pickle.dumps(run)
    assert len(content) < 500
    assert b"user-" not in content
    assert b"farmer" not in content


def test_a_release_refuses_the_truth_as_reference(tmp_path: Path) -> None:
    spec = world(tmp_path, combination={"method": "op", "reference": {"kind": "truth"}})
    with pytest.raises(SpecError, match=r"the true histogram is private. Use `pldp evaluate`"):
        opened(spec, tmp_path / "home")
    opened(spec, tmp_path / "home", evaluation=True)


@pytest.mark.parametrize("slot", ["", "a b", "../up", "x" * 65, "ü"])
def test_a_slot_is_a_plain_word(slot: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="slot must be 1 to 64"):
        opened(world(tmp_path), tmp_path / "home", slot)


def test_a_missing_source(tmp_path: Path) -> None:
    spec = write_spec(tmp_path)
    with pytest.raises(SourceError, match=r"people.parquet: cannot be read \(No such file"):
        opened(spec, tmp_path / "home")
    assert list((tmp_path / "home" / "releases").iterdir()) == []
