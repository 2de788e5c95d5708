"""A source that changes between hashing and reading is refused: the release would have another's identity."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import pldp.tasks.aggregates.catalogue
import pldp.tasks.ingest
from pldp.errors import SourceError
from pldp.tasks.buckets import bring_together
from pldp.tasks.home import Home
from pldp.tasks.ingest import ingest
from pldp.tasks.references import reference_of
from pldp.tasks.run import open_run
from pldp.tasks.sources.whole import read_whole
from pldp.tasks.specfile import load_spec
from tests import baskets, items, people

CHANGED = "was changed or replaced while it was read"


def replaced(path: Path) -> None:
    """By another file of the same size and time of writing, as a careful attacker or `rsync -t` would."""
    before = path.stat()
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    os.utime(copy, ns=(before.st_atime_ns, before.st_mtime_ns))
    copy.replace(path)


def rewritten(path: Path) -> None:
    """In place, and its time of writing put back."""
    before = path.stat()
    with path.open("r+b") as handle:
        handle.write(path.read_bytes()[:8])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("change", [replaced, rewritten, Path.unlink])
def test_a_source_that_changes_after_it_was_hashed(change: Callable[[Path], None], tmp_path: Path) -> None:
    run, file = people.opened(people.world(tmp_path), tmp_path / "home")
    change(file.source)
    with pytest.raises(SourceError, match=f"{CHANGED}|cannot be read"):
        ingest.fn(run, file)
    assert not list(Home(tmp_path / "home").vault.rglob("vault.duckdb*"))


def test_a_source_that_changes_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, file = people.opened(people.world(tmp_path), tmp_path / "home")

    def late(*arguments: Any) -> Any:
        replaced(file.source)
        return bring_together(*arguments)

    monkeypatch.setattr(pldp.tasks.ingest, "bring_together", late)
    with pytest.raises(SourceError, match=rf"people\.parquet: the file {CHANGED}"):
        ingest.fn(run, file)


@pytest.mark.parametrize("name", ["rows.parquet", "users.csv", "items.csv"])
def test_files_of_items(name: str, tmp_path: Path) -> None:
    (tmp_path / "items.csv").write_text("item\n" + "".join(f"{item}\n" for item in baskets.ITEMS))
    run, file = baskets.opened(baskets.world(tmp_path, items={"path": "items.csv"}), tmp_path / "home")
    replaced(tmp_path / name)
    with pytest.raises(SourceError, match=rf"{name}: the file {CHANGED}"):
        ingest.fn(run, file)


@pytest.mark.parametrize("name", ["items.parquet", "users.csv", "catalogue.csv"])
def test_files_of_aggregates(name: str, tmp_path: Path) -> None:
    run, file = items.opened(items.world(tmp_path), tmp_path / "home")
    replaced(tmp_path / name)
    with pytest.raises(SourceError, match=rf"{name}: the file {CHANGED}"):
        ingest.fn(run, file)


def test_public_files_that_change_after_the_plan_read_them(tmp_path: Path) -> None:
    """They are read before they are hashed."""
    spec = items.world(tmp_path / "films")
    read = load_spec(spec)
    replaced(tmp_path / "films" / "catalogue.csv")
    with pytest.raises(SourceError, match=rf"catalogue\.csv: the file {CHANGED}"):
        open_run(Home(tmp_path / "home").prepare(), read, "manual")
    (tmp_path / "items.csv").write_text("item\n" + "".join(f"{item}\n" for item in baskets.ITEMS))
    listed = load_spec(baskets.world(tmp_path, items={"path": "items.csv"}))
    replaced(tmp_path / "items.csv")
    with pytest.raises(SourceError, match=rf"items\.csv: the file {CHANGED}"):
        open_run(Home(tmp_path / "home").prepare(), listed, "manual")


def test_public_files_that_change_while_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = items.world(tmp_path)
    rows = read_whole

    def late(*arguments: Any) -> Any:
        found = rows(*arguments)
        replaced(tmp_path / "catalogue.csv")
        return found

    monkeypatch.setattr(pldp.tasks.aggregates.catalogue, "read_whole", late)
    with pytest.raises(SourceError, match=CHANGED):
        load_spec(spec)


def test_a_public_reference(tmp_path: Path) -> None:
    rows = [("job", job, 1 / 6) for job in people.JOBS] + [("sex", sex, 0.5) for sex in people.SEXES]
    lines = "".join(f"{attribute},{value},{share}\n" for attribute, value, share in rows)
    (tmp_path / "r.csv").write_text("attribute,value,frequency\n" + lines)
    reference = {"method": "op", "reference": {"kind": "public", "path": "r.csv"}}
    run, file = people.opened(people.world(tmp_path, combination=reference), tmp_path / "home")
    assert reference_of(run, file) is not None
    replaced(tmp_path / "r.csv")
    with pytest.raises(SourceError, match=rf"r\.csv: the file {CHANGED}"):
        reference_of(run, file)


def test_what_has_not_changed_is_read(tmp_path: Path) -> None:
    run, file = people.opened(people.world(tmp_path), tmp_path / "home")
    file.source.read_bytes()
    assert ingest.fn(run, file).n_users == 2000
