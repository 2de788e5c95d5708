"""The end of raw values and the loss of the key, through the command line."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from pldp.errors import SourceError
from pldp.flows.release import release
from tests.flows.conftest import Pldp
from tests.people import digests, world

pytestmark = pytest.mark.usefixtures("server")


def folders(home: Path) -> list[str]:
    """Of single releases, wherever a home has them."""
    places = (home / "releases", home / "reports", home / "vault")
    return [f"{place.name}/{path.name}" for place in places for path in sorted(place.iterdir()) if path.is_dir()]


def test_a_release_whose_key_was_lost_is_not_drawn_again(tmp_path: Path, pldp: Pldp) -> None:
    spec, home = world(tmp_path), tmp_path / "home"
    assert pldp("release", spec, "--home", home).code == 0
    before, ledger = digests(home / "reports"), (home / "ledger.jsonl").read_bytes()
    key = (home / "vault" / "key").read_bytes()
    (home / "vault" / "key").unlink()
    said = pldp("release", spec, "--home", home)
    assert said.code == 3
    assert "was spent by people-" in said.err
    assert "Restore" in said.err
    assert "Nothing was drawn" in said.err
    assert digests(home / "reports") == before
    assert (home / "ledger.jsonl").read_bytes() == ledger
    (home / "vault" / "key").write_bytes(key)
    said = pldp("release", spec, "--home", home)
    assert said.code == 0
    assert "nothing was drawn" in said.out
    assert (home / "ledger.jsonl").read_bytes() == ledger


def test_a_refused_source_leaves_no_folders(tmp_path: Path, pldp: Pldp) -> None:
    spec, home = world(tmp_path), tmp_path / "home"
    (tmp_path / "people.parquet").write_bytes(b"no parquet")
    assert pldp("release", spec, "--home", home).code == 2
    assert not home.exists(), "the command looks at the source before it makes a home"
    with pytest.raises(SourceError):
        release(spec, home)
    assert folders(home) == []
    assert not (home / "ledger.jsonl").exists()


def test_a_vault_that_cannot_be_deleted_is_told_and_listed(
    tmp_path: Path, pldp: Pldp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Busy, as a folder is on which something is mounted. The results stand, and the next run deletes it."""
    spec, home = world(tmp_path), tmp_path / "home"
    rmdir = os.rmdir

    def busy(path: Any, **how: Any) -> None:
        if str(path) == "partitions" or str(path).endswith("/partitions"):
            raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))
        rmdir(path, **how)

    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", busy)
        for _ in range(2):  # a release that is there already says it too
            said = pldp("release", spec, "--home", home)
            assert said.code == 3
            assert "could not be deleted (Device or resource busy" in said.err
            assert "is published" in said.err
        assert list((home / "pages").glob("people-*.html")), "the page does not wait for it"
    shown = pldp("releases", "--home", home).out
    assert "published" in shown
    assert "the next release in this home deletes them" in shown
    assert pldp("release", spec, "--home", home).code == 0
    assert [name for name in folders(home) if name.startswith("vault/")] == []
    assert "Raw values" not in pldp("releases", "--home", home).out
