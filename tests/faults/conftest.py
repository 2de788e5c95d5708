"""The server and the command line of the flows' tests, and a home with one release to lose."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pldp.tables.registry import PUBLISHED
from tests.faults.dying import Point, start
from tests.flows.conftest import PATIENCE, pldp, server
from tests.people import digests, world

__all__ = ["pldp", "server"]

TABLES = [table.name for table in PUBLISHED]
FILES = 2 * 3 * 4
"""Report files of a release: attributes × levels × partitions."""

Rows = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True)
class Place:
    """A home in which one release is published, and the spec of it: another slot is the release under test."""

    spec: Path
    home: Path
    earlier: Rows
    """What the published release put into the results."""

    def run(self, slot: str, point: Point | None = None) -> int:
        """Run the release of a slot in a process of its own; its exit code."""
        process = start(self.home / "said", "release", self.spec, "--home", self.home, "--slot", slot, point=point)
        process.join(PATIENCE)
        assert process.exitcode is not None, "the release hangs"
        return process.exitcode

    def said(self) -> str:
        return (self.home / "said").read_text()

    def opened(self, slot: str) -> str:
        """The one release of a slot that was ever opened, if it was."""
        (found,) = [
            path.parent.name
            for path in self.home.glob("releases/*/opened.json")
            if json.loads(path.read_text())["slot"] == slot
        ]
        return found

    def committed(self) -> dict[str, str]:
        """What every report file holds; drafts of the killed are nobody's."""
        found = digests(self.home / "reports")
        return {name: digest for name, digest in found.items() if not Path(name).name.startswith(".")}

    def spent(self, release_id: str) -> int:
        lines = (self.home / "ledger.jsonl").read_text().splitlines()
        return sum(json.loads(line)["release_id"] == release_id for line in lines if line.endswith("}"))

    def check_whole(self) -> int:
        """What an analyst sees now: the earlier release as it was, the others whole. How many there are."""
        rows = read(self.home)
        ids = {row[0] for row in rows["releases"]}
        assert len(ids) == len(rows["releases"])
        for table, earlier in self.earlier.items():
            by_release = {key: [row for row in rows[table] if row[0] == key] for key in ids}
            assert sum(map(len, by_release.values())) == len(rows[table]), f"rows of {table} without a release"
            assert by_release[earlier[0][0]] == earlier
            assert {len(found) for found in by_release.values()} == {len(earlier)}, f"half a release in {table}"
        return len(ids)

    def check_done(self, release_id: str) -> None:
        """A release that is through: published, spent once, and nothing left lying about."""
        assert [row[2] for row in read(self.home)["releases"] if row[0] == release_id] == ["published"]
        self.check_whole()
        assert self.spent(release_id) == 1
        assert sum(release_id in name for name in self.committed()) == FILES
        assert (self.home / "pages" / f"{release_id}.html").exists()
        assert release_id in (self.home / "pages" / "index.html").read_text()
        assert list(self.home.rglob(".*")) == [], "drafts are left"
        assert [path.name for path in (self.home / "vault").iterdir()] == ["key"], "a vault is left"


def read(home: Path) -> Rows:
    """Every published table, as a plain DuckDB reads it."""
    with duckdb.connect(str(home / "results.duckdb"), read_only=True) as results:
        return {table: results.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall() for table in TABLES}  # noqa: S608


@pytest.fixture(scope="session")
def published(server: str, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """To copy, not to change."""
    folder = tmp_path_factory.mktemp("faults")
    place = Place(world(folder), folder / "home", {})
    place.home.mkdir()
    assert place.run("earlier") == 0, place.said()
    return Place(place.spec, place.home, read(place.home))


@pytest.fixture
def place(published: Place, tmp_path: Path) -> Place:
    return copy_to(tmp_path / "home", published)


def copy_to(home: Path, published: Place) -> Place:
    """The same home, with its key, elsewhere."""
    shutil.copytree(published.home, home, symlinks=True, dirs_exist_ok=True)
    return Place(published.spec, home, published.earlier)
