"""The template of Prefect's database: whom it is taken from, and that nobody else can put one in its place."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from pldp.flows import template
from tests.people import mode

NAME = "prefect-1-0.db"


def make_database(path: Path, marker: str = "marker") -> Path:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"CREATE TABLE {marker} (n)")
    connection.commit()
    connection.close()
    return path


def tables(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    found = [name for (name,) in connection.execute("SELECT name FROM sqlite_master")]
    connection.close()
    return found


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A template as the first run keeps it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(template, "template_name", lambda: NAME)
    assert template.keep_template(make_database(tmp_path / "migrated.db"))
    return tmp_path / "cache" / "pldp" / NAME


def test_a_new_home_gets_a_copy_and_a_used_one_keeps_its_own(kept: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    assert template.copy_template(home / "prefect.db")
    assert tables(home / "prefect.db") == ["marker"]
    assert mode(home / "prefect.db") == 0o600
    used = make_database(tmp_path / "used.db", "mine")
    assert not template.copy_template(used)
    assert tables(used) == ["mine"]


def test_what_is_left_of_a_database_is_not_applied_to_the_copy(kept: Path, tmp_path: Path) -> None:
    (tmp_path / "prefect.db-wal").write_bytes(b"what somebody wrote")
    assert not template.copy_template(tmp_path / "prefect.db")
    assert not (tmp_path / "prefect.db").exists()


def test_the_template_is_the_users_alone_and_made_once(kept: Path, tmp_path: Path) -> None:
    assert (mode(kept.parent), mode(kept)) == (0o700, 0o600)
    assert [path.name for path in kept.parent.iterdir()] == [NAME], "a draft was left"
    before = kept.read_bytes()
    assert template.keep_template(make_database(tmp_path / "another.db", "another"))
    assert kept.read_bytes() == before


def linked(path: Path) -> None:
    """To a file that would do."""
    path.rename(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def linked_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))
    path.parent.symlink_to(path.parent.with_name("elsewhere"))


def cut_short(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path, 0o600)


SPOILT: dict[str, Callable[[Path], object]] = {
    "others may read the file": lambda path: path.chmod(0o644),
    "others may write the file": lambda path: path.chmod(0o622),
    "others may enter the folder": lambda path: path.parent.chmod(0o755),
    "the file is a link": linked,
    "the folder is a link": linked_folder,
    "the file is cut short": cut_short,
    "the file is empty": lambda path: path.write_bytes(b""),
    "the file is no database": lambda path: path.write_bytes(b"x" * 4096),
    "the file is a pipe": a_pipe,
    "the file is gone": lambda path: path.unlink(),
}
if os.geteuid() == 0:
    SPOILT |= {
        "the file is another user's": lambda path: os.chown(path, 65534, 65534),
        "the folder is another user's": lambda path: os.chown(path.parent, 65534, 65534),
    }


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT)
def test_a_template_that_others_may_have_touched_is_not_taken(
    kept: Path, tmp_path: Path, spoil: Callable[[Path], object]
) -> None:
    spoil(kept)
    assert template.read_template() is None
    assert not template.copy_template(tmp_path / "prefect.db")
    assert not (tmp_path / "prefect.db").exists()


def test_a_folder_of_another_user_gets_no_template(kept: Path, tmp_path: Path) -> None:
    kept.unlink()
    kept.parent.chmod(0o777)
    assert not template.keep_template(make_database(tmp_path / "more.db"))
    assert list(kept.parent.iterdir()) == []


def test_a_spoilt_file_is_replaced_by_the_next_database(kept: Path, tmp_path: Path) -> None:
    cut_short(kept)
    assert template.keep_template(make_database(tmp_path / "more.db", "better"))
    assert template.copy_template(tmp_path / "prefect.db")
    assert tables(tmp_path / "prefect.db") == ["better"]


def test_other_migrations_are_another_template(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripts = tmp_path / "server" / "database" / "_migrations" / "versions" / "sqlite"
    scripts.mkdir(parents=True)
    monkeypatch.setattr(template, "find_spec", lambda name: SimpleNamespace(origin=str(tmp_path / "__init__.py")))
    monkeypatch.setattr(template, "version", lambda name: "3.8.8")
    names = []
    for content in ("", "first", "first, mended"):
        (scripts / "2026_one.py").write_text(content)
        template.template_name.cache_clear()
        names.append(template.template_name())
    monkeypatch.setattr(template, "version", lambda name: "3.8.9")
    template.template_name.cache_clear()
    names.append(template.template_name())
    template.template_name.cache_clear()
    assert len(set(names)) == 4
    assert all(name and name.startswith("prefect-3.8.") for name in names)


@pytest.mark.parametrize("relative", ["", "cache", "./cache"])
def test_a_relative_cache_is_not_used(relative: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the convention of XDG_CACHE_HOME says; it would lie in whatever folder a command is called."""
    monkeypatch.setenv("XDG_CACHE_HOME", relative)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert template.cache_folder() == tmp_path / ".cache" / "pldp"
