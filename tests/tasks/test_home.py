"""The home: folders and modes, one writer, the ledger, and files that appear whole or not at all."""

from __future__ import annotations

import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from pldp.errors import HomeError
from pldp.tasks.drafts import commit, link
from pldp.tasks.home import Home
from pldp.tasks.settings import settle
from tests.people import mode


def entry(release_id: str, budget: float = 1.0) -> dict[str, Any]:
    return {"release_id": release_id, "budget": budget}


def test_folders_and_their_modes(tmp_path: Path) -> None:
    home = Home(tmp_path / "new" / "home").prepare()
    assert mode(home.root) == mode(home.releases) == 0o755
    assert mode(home.vault) == mode(home.evaluations) == mode(home.reports) == 0o700
    (home.root / "later").write_text("")
    assert mode(home.root / "later") == 0o600, "files made from now on are the operator's alone"


def test_an_existing_home_keeps_its_mode_but_not_its_vaults(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.root.mkdir(mode=0o700)
    home.vault.mkdir(mode=0o755)
    home.prepare()
    assert mode(home.root) == 0o700
    assert mode(home.vault) == 0o700


NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user too")


@needs_root
@pytest.mark.parametrize("whose", ["", "vault", "reports", "evaluations", "releases", "pages"])
def test_a_home_that_another_user_has_made_is_refused(tmp_path: Path, whose: str) -> None:
    """In a folder where everybody may write, whoever is first would own the vault."""
    home = Home(tmp_path / "home")
    (home.root / whose).mkdir(parents=True)
    os.chown(home.root / whose, NOBODY, NOBODY)
    with pytest.raises(HomeError, match=r"belongs to another user \(number 65534\).* Nothing was read or published"):
        home.prepare()
    assert not (home.vault / "key").exists()


@needs_root
def test_a_home_that_is_another_users_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "home").symlink_to(tmp_path / "real")
    os.chown(tmp_path / "home", NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(HomeError, match="belongs to another user"):
        Home(tmp_path / "home").prepare()
    assert list((tmp_path / "real").iterdir()) == []


@needs_root
def test_another_users_settings_for_prefect_are_refused(tmp_path: Path) -> None:
    """They could name a server, which a run obeys."""
    home = Home(tmp_path).prepare()
    (home.root / "prefect").mkdir()
    os.chown(home.root / "prefect", NOBODY, NOBODY)
    with pytest.raises(HomeError, match="belongs to another user"):
        settle(home.root)


def test_a_home_where_everybody_can_write_is_refused(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.root.mkdir()
    home.root.chmod(0o1777)
    with pytest.raises(HomeError, match=r"every user of this machine can write there.*chmod o-w"):
        home.prepare()
    home.root.chmod(0o775)
    assert home.prepare().vault.is_dir(), "a group is the operator's to choose"


def test_a_home_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HomeError, match=r"cannot be written .* Give another with --home"):
        Home(tmp_path / "file" / "home").prepare()


def test_the_key_is_made_once_and_differs_between_homes(tmp_path: Path) -> None:
    first, second = (Home(tmp_path / name).prepare() for name in ("a", "b"))
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: first.key(), range(8)))
    assert len(keys) == 1
    assert len(first.key()) == 32
    assert first.key() != second.key()
    assert mode(first.vault / "key") == 0o600


def test_the_ledger_takes_a_release_once(tmp_path: Path) -> None:
    home = Home(tmp_path).prepare()
    assert home.spends() == []
    for release_id in ("a", "b", "a"):
        home.record_spend(entry(release_id))
    assert [spent["release_id"] for spent in home.spends()] == ["a", "b"]
    assert mode(home.ledger) == 0o644


def test_a_release_spends_once_per_unit(tmp_path: Path) -> None:
    """Different units are never added, so each has a line; whoever resumes after the first writes the second."""
    home = Home(tmp_path).prepare()
    for unit in ("user", "item", "user", "item"):
        home.record_spend({**entry("a"), "unit": unit})
    assert [(spent["release_id"], spent["unit"]) for spent in home.spends()] == [("a", "user"), ("a", "item")]


@pytest.mark.parametrize("cut", [1, 5, 20])
def test_the_ledger_survives_a_crash_in_a_line(cut: int, tmp_path: Path) -> None:
    """A line without its end was never followed by a draw; the release that resumes writes it again."""
    home = Home(tmp_path).prepare()
    for release_id in ("a", "b"):
        home.record_spend(entry(release_id))
    os.truncate(home.ledger, home.ledger.stat().st_size - cut)
    home.record_spend(entry("b"))
    home.record_spend(entry("c"))
    assert [spent["release_id"] for spent in home.spends()] == ["a", "b", "c"]
    whole = [line for line in home.ledger.read_text().splitlines() if line.endswith("}")]
    assert [json.loads(line)["release_id"] for line in whole] == ["a", "b", "c"]


def test_one_holds_the_lock(tmp_path: Path) -> None:
    home = Home(tmp_path).prepare()
    with home.locked():
        with pytest.raises(HomeError, match="another release is running in this home"), home.locked():
            pass
        entered = threading.Event()
        waiting = threading.Thread(target=lambda: _enter(home, entered))
        waiting.start()
        assert not entered.wait(0.5), "who waits stays outside"
    assert entered.wait(5)
    waiting.join()
    with home.locked():
        pass


def _enter(home: Home, entered: threading.Event) -> None:
    with home.locked(wait=True):
        entered.set()


def test_a_committed_file_is_never_replaced(tmp_path: Path) -> None:
    path = tmp_path / "file"
    assert commit(path, b"first", mode=0o644)
    assert not commit(path, b"second")
    assert path.read_bytes() == b"first"
    assert mode(path) == 0o644
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"], "no draft is left"


def test_one_of_many_writers_wins(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with ThreadPoolExecutor(8) as pool:
        won = list(pool.map(lambda i: commit(path, bytes([i]) * 10_000), range(16)))
    assert sum(won) == 1
    assert path.read_bytes() == bytes([won.index(True)]) * 10_000
    assert len(list(tmp_path.iterdir())) == 1


def test_link_gives_a_draft_its_name_unless_taken(tmp_path: Path) -> None:
    for draft in ("one", "two"):
        (tmp_path / draft).write_text(draft)
    assert link(tmp_path / "one", tmp_path / "final")
    assert not link(tmp_path / "two", tmp_path / "final")
    assert (tmp_path / "final").read_text() == "one"
