"""A disk that fills up and one that cannot be written: a clear message, nothing lost, and a rerun that completes."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.conftest import Place, copy_to, read
from tests.faults.dying import SMALL_PARTITIONS
from tests.flows.conftest import Pldp

FULL = "No space left on device"
SIZE, LARGER = "32m", "64m"
PAGE = 4096


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True, capture_output=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        mount("-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder))
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("mounting a small disk is not allowed here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def place(published: Place, disk: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setattr("pldp.tasks.ingest.PARTITION_CELLS", SMALL_PARTITIONS)
    return copy_to(disk / "home", published)


def fill(disk: Path, left: int) -> None:
    """Leave this much of the disk."""
    with (disk / "ballast").open("wb", buffering=0) as handle:
        state = os.statvfs(disk)
        handle.write(bytes(max(0, state.f_bavail * state.f_frsize - left)))


@pytest.mark.parametrize(
    ("stage", "where", "left"),
    [
        ("home", "pldp.tasks.run.commit", 0),
        ("ingest", "pldp.tasks.ingest._fill", 40_000),
        ("home", "pldp.flows.release.record_spend", 0),
        ("perturb", "pldp.tasks.perturb.commit_reports", 20_000),
        ("publish", "pldp.tasks.publish._replace", 2_000_000),
        pytest.param("ingest", "pldp.tasks.ingest._fill", 0, marks=pytest.mark.slow),
        pytest.param("ingest", "pldp.tasks.ingest._read", 0, marks=pytest.mark.slow),
        pytest.param("perturb", "pldp.tasks.perturb.commit_reports", 0, marks=pytest.mark.slow),
        pytest.param("publish", "pldp.tasks.publish._replace", 0, marks=pytest.mark.slow),
    ],
)
def test_a_disk_that_fills_up(
    stage: str, where: str, left: int, disk: Path, place: Place, pldp: Pldp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Full from the moment the stage begins to write."""
    ledger = place.home / "ledger.jsonl"
    with ledger.open("a") as handle:
        handle.write("\n" * (PAGE - 10 - ledger.stat().st_size))  # the next spend fits by half
    with monkeypatch.context() as patch:
        patch.setattr(where, filling(where, disk, left))
        said = pldp("release", place.spec, "--home", place.home, "--slot", "full")
    assert said.code == 3
    assert FULL in said.err
    assert f"Stage {stage} failed" in said.err or (stage == "home" and f"{place.home}: the home cannot" in said.err)
    assert "run the same command again to resume" in said.err
    assert place.check_whole() == 1
    committed = place.committed()
    mount("-o", f"remount,size={LARGER}", str(disk))
    said = pldp("release", place.spec, "--home", place.home, "--slot", "full")
    assert said.code == 0, said.err
    assert committed.items() <= place.committed().items()
    assert place.check_whole() == 2
    place.check_done(place.opened("full"))


def filling(where: str, disk: Path, left: int) -> Callable[..., Any]:
    module, _, name = where.rpartition(".")
    function = getattr(__import__(module, fromlist=[name]), name)

    def shell(*args: Any, **kwargs: Any) -> Any:
        if not (disk / "ballast").exists():
            fill(disk, left)
        return function(*args, **kwargs)

    return shell


@pytest.mark.slow
def test_a_page_that_does_not_fit_takes_nothing_back(
    disk: Path, place: Place, pldp: Pldp, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("pldp.tasks.page.build_page", filling("pldp.tasks.page.build_page", disk, 0))
        said = pldp("release", place.spec, "--home", place.home, "--slot", "full")
    assert said.code == 0
    assert "Results are published, but the page is not there." in said.err
    assert FULL in said.err
    assert place.check_whole() == 2
    (disk / "ballast").unlink()
    assert pldp("release", place.spec, "--home", place.home, "--slot", "full").code == 0
    place.check_done(place.opened("full"))


def test_a_read_only_home(disk: Path, place: Place, pldp: Pldp) -> None:
    """Nothing is begun; what is published stays readable."""
    mount("-o", "remount,ro", str(disk))
    for home in (place.home, disk / "new"):
        said = pldp("release", place.spec, "--home", home, "--slot", "locked")
        assert said.code == 3
        assert f"{home}: the home cannot be written (Read-only file system). Give another with --home." in said.err
    assert read(place.home) == place.earlier
    for command in (["releases"], ["show", "people"], ["validate", "people"], ["query", "FROM latest_releases"]):
        assert pldp(*command, "--home", place.home).code == 0, command
    mount("-o", "remount,rw", str(disk))
    assert pldp("release", place.spec, "--home", place.home, "--slot", "locked").code == 0
    place.check_done(place.opened("locked"))


@pytest.mark.parametrize("size", [0, 100, 4096, 8192, 12_288, 20_000])
def test_a_vault_that_is_no_database_yet_is_filled_anew(size: int, published: Place, tmp_path: Path) -> None:
    """A kill while DuckDB makes the file leaves a beginning of it."""
    from pldp.tasks.ingest import ingest
    from tests.people import opened

    run, file = opened(published.spec, tmp_path / "home")
    first = ingest.fn(run, file)
    os.truncate(run.vault, size)
    assert ingest.fn(run, file) == first
