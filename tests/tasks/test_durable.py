"""Files that must outlive a loss of power, and folders that must be gone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pldp.errors import HomeError, Outcome, SourceError
from pldp.tasks.durable import Syncs, delete_or_refuse, write_new


def test_a_new_file_replaces_none(tmp_path: Path) -> None:
    path = tmp_path / "key.pem"
    write_new(path, b"first", 0o600, Outcome.NOTHING_SIGNED, "; it is in use")
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"first", 0o600)
    with pytest.raises(SourceError, match="is there already; it is in use") as refused:
        write_new(path, b"second", 0o600, Outcome.NOTHING_SIGNED, "; it is in use")
    assert refused.value.problems[0].file == str(path)
    assert path.read_bytes() == b"first"


def test_a_new_file_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(SourceError, match="is there already"):
        write_new(tmp_path / "link", b"secret", 0o600, Outcome.NOTHING_SIGNED, "")
    assert not (tmp_path / "elsewhere").exists()


def test_a_new_file_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"cannot be written \(No such file or directory\)"):
        write_new(tmp_path / "nowhere" / "file", b"", 0o644, Outcome.NOTHING_WRITTEN, "")


def test_what_is_still_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "pieces"
    (folder / "deep").mkdir(parents=True)
    with monkeypatch.context() as patch:
        patch.setattr("pldp.tasks.durable.shutil.rmtree", lambda _: None)
        with pytest.raises(HomeError, match=r"raw values could not be deleted \(it is there again\)"):
            delete_or_refuse(folder, "raw values", Outcome.AS_BEFORE, "Delete the folder yourself.")
    delete_or_refuse(folder, "raw values", Outcome.AS_BEFORE, "Delete the folder yourself.")
    assert not folder.exists()


def test_files_are_synced_before_the_block_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, paths = set[int](), [tmp_path / name for name in "abc"]
    monkeypatch.setattr(os, "fsync", lambda number: synced.add(os.fstat(number).st_ino))
    with Syncs() as syncs:
        for path in paths:
            path.write_text("rows")
            syncs.add(path)
    assert synced == {path.stat().st_ino for path in paths}


def test_a_file_that_cannot_be_synced_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), Syncs() as syncs:
        syncs.add(tmp_path / "nowhere")


def test_what_fails_in_the_block_is_told_before_what_the_disk_says(tmp_path: Path) -> None:
    def fail(syncs: Syncs) -> None:
        syncs.add(tmp_path / "nowhere")
        raise ValueError("rows")

    with pytest.raises(ValueError, match="rows"), Syncs() as syncs:
        fail(syncs)
