"""Loss of power: after every sync only what was synced is there, and the release is completed from that.

`os.fsync` is watched. A file is as it was when it was last synced, and empty if it never was; a folder has the names
that it had when it was last synced. That is the least a disk may keep. What it may keep besides is what kills test.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pytest

import pldp.tasks.ingest
from pldp.errors import StageFailed
from pldp.flows.pipeline import draw
from pldp.flows.release import record_spend
from pldp.tasks.ingest import ingest
from pldp.tasks.publish import publish, status_of
from pldp.tasks.run import Run
from pldp.tasks.vaults import forget_vault
from tests.faults.conftest import KINDS
from tests.faults.dying import SMALL_PARTITIONS
from tests.people import digests, opened
from tests.tasks.published import PASSED

INGESTS = {"histograms": ingest, "items": ingest, "aggregates": ingest}
Entry = tuple[str, Any]
"""A name in a folder: a file or folder by its inode, or a link by where it leads."""


@dataclass
class Disk:
    """What a loss of power would leave of a folder."""

    root: Path
    files: dict[int, bytes] = field(default_factory=dict)
    folders: dict[int, dict[str, Entry]] = field(default_factory=dict)
    states: list[dict[str, bytes | str | None]] = field(default_factory=list)
    watching: bool = True

    def synced(self, descriptor: int) -> None:
        found = os.fstat(descriptor)
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if not self.watching or not path.is_relative_to(self.root):
            return
        if stat.S_ISDIR(found.st_mode):
            self.folders[found.st_ino] = {entry.name: _entry(entry) for entry in os.scandir(path)}
        else:
            self.files[found.st_ino] = path.read_bytes() if path.exists() else b""
        state = self.left()
        if not self.states or state != self.states[-1]:
            self.states.append(state)

    def left(self) -> dict[str, bytes | str | None]:
        """Paths with their bytes, where links lead, or None for folders."""
        tree: dict[str, bytes | str | None] = {}
        self._walk(self.root.stat().st_ino, "", tree)
        return tree

    def _walk(self, folder: int, at: str, tree: dict[str, bytes | str | None]) -> None:
        for name, (kind, what) in self.folders.get(folder, {}).items():
            path = f"{at}{name}"
            if kind == "link":
                tree[path] = what
            elif kind == "file":
                tree[path] = self.files.get(what, b"")
            else:
                tree[path] = None
                self._walk(what, f"{path}/", tree)


def _entry(entry: os.DirEntry[str]) -> Entry:
    if entry.is_symlink():
        return "link", os.readlink(entry.path)
    return ("folder" if entry.is_dir() else "file"), entry.inode()


def restore(state: dict[str, bytes | str | None], root: Path) -> None:
    for name, what in state.items():
        path = root / name
        if what is None:
            path.mkdir(parents=True)
        elif isinstance(what, str):
            path.symlink_to(what)
        else:
            path.write_bytes(what)


def release(spec: Path, home: Path) -> Run:
    """The stages of a release that write, in their order."""
    run, file = opened(spec, home)
    if status_of(run.home, run.release_id) is None:
        found = INGESTS[file.spec.kind].fn(run, file)
        record_spend(run, "manual")
        draw(run, found)
        publish.fn(run, found.n_users, {}, (PASSED,))
    forget_vault(run, file, "published")
    return run


@pytest.fixture(autouse=True)
def _without_orchestration(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of stages one after the other, in this thread."""

    def fan_out(name: str, calls: Iterable[tuple[Any, ...]]) -> list[Any]:
        return [stage.fn(*arguments) for stage, *arguments in calls]

    monkeypatch.setattr("pldp.flows.pipeline.fan_out", fan_out)


def recorded(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    """A release from beginning to end, and what was left of it at every moment."""
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", SMALL_PARTITIONS)
    root = tmp_path / "disk"
    root.mkdir()
    disk = Disk(root)
    sync, link = os.fsync, os.link

    def watched(descriptor: int) -> None:
        sync(descriptor)
        disk.synced(descriptor)

    def linked(source: Any, target: Any, **how: Any) -> None:
        if disk.watching and "/reports/" in str(target):
            assert "home/ledger.jsonl" in disk.left(), "drawn before the spend was on disk"
        link(source, target, **how)

    monkeypatch.setattr(os, "fsync", watched)
    monkeypatch.setattr(os, "link", linked)
    release(KINDS[kind].make(tmp_path), root / "home")
    disk.watching = False
    return disk


def check_left(state: dict[str, bytes | str | None]) -> None:
    reports = {name for name in state if name.startswith("home/reports/") and name.endswith(".parquet")}
    if reports:
        assert state["home/ledger.jsonl"], "drawn, and no spend recorded"
        assert all(state[name] for name in reports), "a report file without its rows"
        assert len(state["home/vault/key"] or b"") == 32
    if any("/sets/" in name for name in reports):
        (asked,) = (name for name in state if name.endswith("/candidates.json"))
        assert state[asked], "asked, and nobody knows what"
    if "home/results.duckdb" in state:
        target = state["home/results.duckdb"]
        assert isinstance(target, str)
        assert state[f"home/{target}"], "the link leads nowhere"


@pytest.mark.parametrize("kind", KINDS)
def test_every_moment_of_a_release_can_be_recovered_from(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pytestconfig: pytest.Config
) -> None:
    """Every moment is looked at; completed from are the first and last of each kind of step, and some between."""
    disk = recorded(kind, tmp_path, monkeypatch)
    assert len(disk.states) > 21 + KINDS[kind].files
    for state in disk.states:
        check_left(state)
    drawn = [sum(name.endswith(".parquet") and "/reports/" in name for name in state) for state in disk.states]
    assert drawn == sorted(drawn), "a report that was on disk is gone"
    assert drawn[-1] == KINDS[kind].files
    assert not any("vault.duckdb" in name for name in disk.states[-1]), "deleted, and back after the loss"
    # Every eighth moment of histograms, and of every kind the last before and the first after each kind of step.
    every = 8 if kind == "histograms" or pytestconfig.getoption("--slow") else len(disk.states)
    steps = [0, *(i for i in range(1, len(disk.states)) if i % every == 0 or _step(disk, i) != _step(disk, i - 1))]
    for i in sorted({max(i - before, 0) for i in steps for before in (0, 1)}):
        home = tmp_path / f"after-{i}"
        restore(disk.states[i], home)
        before = digests(home / "home" / "reports") if (home / "home" / "reports").exists() else {}
        kept = {name: digest for name, digest in before.items() if not Path(name).name.startswith(".")}
        run = release(tmp_path / "spec.yaml", home / "home")
        after = digests(run.home.reports)
        assert {name: after[name] for name in kept} == kept, f"drawn again after moment {i}"
        assert [spend["release_id"] for spend in run.home.spends()] == [run.release_id]
        with duckdb.connect(str(run.home.results), read_only=True) as results:
            assert results.execute("SELECT release_id, status FROM releases").fetchall() == [
                (run.release_id, "published")
            ]


def _step(disk: Disk, moment: int) -> tuple[bool, ...]:
    state = disk.states[moment]
    marks = ("home/ledger.jsonl", "home/vault/key", "home/results.duckdb")
    adapted = any(name.endswith("/candidates.json") for name in state)
    return (*(mark in state for mark in marks), any("/reports/" in name for name in state), adapted)


def test_the_check_can_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same without syncing folders, as it was once: bytes are on disk, and nobody knows their names."""
    monkeypatch.setattr("pldp.tasks.lines.sync_folder", lambda folder: None)
    monkeypatch.setattr("pldp.tasks.drafts.sync_folder", lambda folder: None)
    monkeypatch.setattr("pldp.tasks.publish.sync_folder", lambda folder: None)
    with pytest.raises(StageFailed, match=r"perturb failed \(AssertionError\)"):
        recorded("histograms", tmp_path, monkeypatch)
    state: dict[str, bytes | str | None] = {"home/results.duckdb": "results-1.duckdb", "home/results-1.duckdb": b""}
    with pytest.raises(AssertionError, match="leads nowhere"):
        check_left(state)
    with pytest.raises(KeyError):
        check_left({"home/reports/people/00000.parquet": b"rows"})
