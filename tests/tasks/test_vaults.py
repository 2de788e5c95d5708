"""Raw values end when they should, and are seen to; a key that is lost spends nothing again."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pldp.errors import HomeError, SourceError
from pldp.flows.release import record_spend
from pldp.tasks.home import Home
from pldp.tasks.ingest import ingest
from pldp.tasks.perturb import perturb
from pldp.tasks.run import Run
from pldp.tasks.vaults import forget_vault, leaving_nothing, sweep_vaults, vaults
from tests.people import opened, world
from tests.tasks.published import publish_by_hand

NOBODY = 65534


@contextmanager
def somebody_else() -> Iterator[None]:
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


def states(home: Path) -> dict[str, str]:
    return {vault.release_id: vault.state for vault in vaults(Home(home))}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to play two users")
@pytest.mark.parametrize("status", ["published", "refused"])
def test_a_vault_that_cannot_be_deleted_is_told(status: str, tmp_path: Path) -> None:
    """A folder in it is somebody else's: the operator cannot empty it."""
    run, file = opened(world(tmp_path), tmp_path / "home")
    ingest.fn(run, file)
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)
    os.chown(run.home.vault, NOBODY, NOBODY)
    os.chown(run.vault.parent, NOBODY, NOBODY)
    state = "is published" if status == "published" else "was refused"
    with (
        pytest.raises(
            HomeError, match=rf"of release {run.release_id}, which {state}.*could not be deleted \(Permission denied"
        ),
        somebody_else(),
    ):
        forget_vault(run, file, status)
    assert HomeError.exit_code == 3
    assert run.partition_file(0).exists()
    forget_vault(run, file, status)
    assert not run.vault.parent.exists()


def test_a_kept_vault_stays(tmp_path: Path) -> None:
    run, file = opened(world(tmp_path, retention={"vault": "keep"}), tmp_path / "home")
    ingest.fn(run, file)
    forget_vault(run, file, "published")
    assert run.vault.exists()


def test_a_crashed_ingest_whose_source_changed_is_swept(tmp_path: Path) -> None:
    spec, home = world(tmp_path), tmp_path / "home"
    crashed, file = opened(spec, home)
    ingest.fn(crashed, file)
    world(tmp_path, None, expected={"users": 1999})
    following, _ = opened(spec, home)
    assert states(home) == {crashed.release_id: "left", following.release_id: "left"}
    sweep_vaults(following)
    assert not crashed.vault.parent.exists()
    assert following.vault.parent.exists()


@pytest.mark.parametrize("drawn", [False, True])
def test_a_vault_that_has_spent_is_never_swept(drawn: bool, tmp_path: Path) -> None:
    """Its release draws what is missing from it, and from no other; also if the ledger was lost."""
    spec, home = world(tmp_path), tmp_path / "home"
    unfinished, file = opened(spec, home)
    found = ingest.fn(unfinished, file)
    record_spend(unfinished, "manual")
    if drawn:
        perturb.fn(unfinished, 0, "low", range(found.partitions))
        Home(home).ledger.unlink()
    following, _ = opened(spec, home, "next")
    sweep_vaults(following)
    assert unfinished.vault.exists()
    assert states(home)[unfinished.release_id] == "unfinished"
    (told,) = [str(vault) for vault in vaults(Home(home)) if vault.state == "unfinished"]
    assert str(unfinished.vault.parent) in told
    assert "run its command again" in told


def test_a_vault_of_a_finished_release_is_swept_unless_kept(tmp_path: Path) -> None:
    home, first = publish_by_hand(tmp_path)
    home, second = publish_by_hand(tmp_path, "b", retention={"vault": "keep"})
    for release_id in (first, second):
        (home / "vault" / release_id).mkdir(exist_ok=True)
    run, _ = opened(tmp_path / "spec.yaml", home, "c")
    assert states(home) == {first: "left", second: "kept", run.release_id: "left"}
    sweep_vaults(run)
    assert sorted(states(home)) == sorted([second, run.release_id])


def test_analysts_see_no_vaults(tmp_path: Path) -> None:
    assert vaults(Home(tmp_path / "none")) == []


def test_a_refused_source_leaves_nothing(tmp_path: Path) -> None:
    spec, home = world(tmp_path), tmp_path / "home"
    (tmp_path / "people.parquet").write_bytes(b"no parquet")
    run, file = opened(spec, home)
    with pytest.raises(SourceError), leaving_nothing(run, file):
        ingest.fn(run, file)
    for place in ("releases", "reports", "vault"):
        assert [path.name for path in (home / place).iterdir() if path.is_dir()] == []


def test_what_was_spent_is_not_cleared_away(tmp_path: Path) -> None:
    run, file = opened(world(tmp_path), tmp_path / "home")
    ingest.fn(run, file)
    record_spend(run, "manual")
    with pytest.raises(SourceError), leaving_nothing(run, file):
        raise SourceError("late")
    assert run.vault.exists()
    assert (run.folder / "plan.json").exists()


def spent(folder: Path, *, named: bool = True) -> tuple[Path, Run]:
    """A release that has spent; of an older version, if its line does not name its key."""
    run, _ = opened(world(folder), folder / "home")
    record_spend(run, "manual")
    if not named:
        lines = [json.loads(line) for line in run.home.ledger.read_text().splitlines()]
        for line in lines:
            del line["key"]
        run.home.ledger.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder / "spec.yaml", run


@pytest.mark.parametrize("named", [True, False])
def test_a_lost_key_spends_nothing_again(named: bool, tmp_path: Path) -> None:
    spec, run = spent(tmp_path, named=named)
    home, key = run.home, run.home.vault / "key"
    kept, ledger = key.read_bytes(), home.ledger.read_bytes()
    key.unlink()
    for _ in range(2):
        with pytest.raises(HomeError, match=r"slot 'manual' of 'people' was spent by people-.* Restore .*vault/key"):
            opened(spec, home.root)
        assert not key.exists()
    # Another slot is meant, and makes another key, under which the first is refused all the same.
    other, _ = opened(spec, home.root, "other")
    record_spend(other, "other")
    with pytest.raises(HomeError, match="give another --slot"):
        opened(spec, home.root)
    assert home.ledger.read_bytes().startswith(ledger)
    assert len(home.spends()) == 2
    key.unlink()
    key.write_bytes(kept)
    assert opened(spec, home.root)[0] == run
    with pytest.raises(HomeError, match="slot 'other'"):
        opened(spec, home.root, "other")


def test_a_home_of_an_older_version_goes_on(tmp_path: Path) -> None:
    spec, run = spent(tmp_path, named=False)
    assert opened(spec, run.home.root)[0] == run


def test_the_ledger_names_the_key_and_does_not_tell_it(tmp_path: Path) -> None:
    _, run = spent(tmp_path)
    (line,) = run.home.spends()
    assert line["key"] == run.home.fingerprint()
    assert line["key"] not in run.home.key().hex()
    shutil.copytree(run.home.root, tmp_path / "moved")
    assert Home(tmp_path / "moved").fingerprint() == line["key"]


@pytest.mark.parametrize("size", [0, 31, 33])
def test_a_damaged_key_is_refused(size: int, tmp_path: Path) -> None:
    home = Home(tmp_path).prepare()
    (home.vault / "key").write_bytes(bytes(size))
    with pytest.raises(HomeError, match=rf"must have 32 bytes \(got {size}\). Restore it"):
        home.key()
