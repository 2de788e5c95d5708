"""The commands in a home of an earlier version: a slot that was spent there draws nothing, another one works."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from pldp.tasks.home import Home
from pldp.tasks.results import list_releases, read_release
from tests.flows.conftest import Pldp
from tests.flows.test_migration import ARCHIVE
from tests.people import digests, make_people, world


@pytest.fixture
def home(tmp_path: Path) -> Home:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path / "home", filter="data")
    return Home(tmp_path / "home")


def test_the_same_name_and_slot_draw_nothing_and_another_slot_works(
    home: Home, tmp_path: Path, pldp: Pldp, server: str
) -> None:
    spec = world(tmp_path / "world", make_people(300), name="survey")
    earlier = read_release(home.root, "survey").release_id
    before = digests(home.root)
    said = pldp("release", spec, "--slot", "past", "--home", home.root)
    assert said.code != 0
    for part in (earlier, "older version", f"pldp show {earlier}", "--slot", "Nothing was drawn"):
        assert part in " ".join(said.err.split())
    after = digests(home.root)
    assert before.items() <= after.items()
    assert not any(name.startswith(("reports/", "releases/", "vault/")) for name in after.keys() - before.keys())
    following = json.loads(pldp("release", spec, "--slot", "now", "--home", home.root, "--json").out)
    assert following["status"] == "published"
    assert following["release_id"] != earlier
    assert set(list_releases(home.root).filter(name="survey")["release_id"]) == {earlier, following["release_id"]}
    assert [line["slot"] for line in home.spends() if line["name"] == "survey"] == ["past", "now"]
    assert read_release(home.root, earlier).valid
