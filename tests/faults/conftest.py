"""The server and the command line of the flows' tests, and a home with one release to lose."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from pldp.questions.tables import PUBLISHED
from tests import baskets, items, people
from tests.faults.dying import Point, start
from tests.flows.conftest import PATIENCE, pldp, server
from tests.people import digests

__all__ = ["pldp", "server"]

TABLES = [table.name for table in PUBLISHED]

Rows = dict[str, list[tuple[Any, ...]]]


MINED = ("itemsets", "rules")


@dataclass(frozen=True)
class Kind:
    """People whose reports look different, and what their release comes to."""

    make: Callable[[Path], Path]
    """Writes people and spec into a folder; the spec's path."""
    files: int
    """Of reports, in a whole release."""
    tables: tuple[str, ...]
    """That have rows of their own in every release."""


@dataclass(frozen=True)
class Place:
    """A home in which one release is published, and the spec of it: another slot is the release under test."""

    kind: Kind
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
        """What every report file holds; drafts of the killed are nobody's, and what was asked of files is no report."""
        found = digests(self.home / "reports")
        names = (name for name in found if name.endswith(".parquet") and not Path(name).name.startswith("."))
        return {name: found[name] for name in names}

    def spent(self, release_id: str) -> int:
        lines = (self.home / "ledger.jsonl").read_text().splitlines()
        return sum(json.loads(line)["release_id"] == release_id for line in lines if line.endswith("}"))

    def check_whole(self) -> int:
        """What an analyst sees now: the earlier release as it was, the others whole. How many there are."""
        rows = read(self.home)
        ids = {row[0] for row in rows["releases"]}
        assert len(ids) == len(rows["releases"])
        filled = {table for table, earlier in self.earlier.items() if earlier}
        assert {"releases", "budgets", "validations", *self.kind.tables} <= filled
        for table, earlier in self.earlier.items():
            by_release = {key: [row for row in rows[table] if row[0] == key] for key in ids}
            assert sum(map(len, by_release.values())) == len(rows[table]), f"rows of {table} without a release"
            assert by_release[self.earlier["releases"][0][0]] == earlier
            if table == "validations":  # where no rule is found, none is looked at
                looked_at = {frozenset(row[1] for row in found) - {"rules_usable"} for found in by_release.values()}
                assert looked_at == {frozenset(row[1] for row in earlier) - {"rules_usable"}}
            elif table in MINED:  # which sets are frequent is the noise's to say
                assert all(by_release.values()) or table not in self.kind.tables, f"half a release in {table}"
            else:
                assert {len(found) for found in by_release.values()} == {len(earlier)}, f"half a release in {table}"
        return len(ids)

    def check_done(self, release_id: str) -> None:
        """A release that is through: published, spent once, and nothing left lying about."""
        assert [row[2] for row in read(self.home)["releases"] if row[0] == release_id] == ["published"]
        self.check_whole()
        assert self.spent(release_id) == 1
        assert sum(release_id in name for name in self.committed()) == self.kind.files
        assert {path.suffix for path in (self.home / "reports" / release_id).rglob("*.*")} == {".parquet"}
        assert (self.home / "pages" / f"{release_id}.html").exists()
        assert release_id in (self.home / "pages" / "index.html").read_text()
        assert list(self.home.rglob(".*")) == [], "drafts are left"
        assert [path.name for path in (self.home / "vault").iterdir()] == ["key"], "a vault is left"


def read(home: Path) -> Rows:
    """Every published table, as a plain DuckDB reads it."""
    with duckdb.connect(str(home / "results.duckdb"), read_only=True) as results:
        return {table: results.execute(f"SELECT * FROM {table} ORDER BY ALL").fetchall() for table in TABLES}  # noqa: S608


def _with_numbers(folder: Path) -> Path:
    ages = pl.Series("age", np.random.default_rng(3).integers(18, 98, 800))
    attributes = [*people.SPEC["attributes"], {"name": "age", "kind": "number", "bounds": [18, 98]}]
    rows = people.make_people(800).with_columns(ages)
    return people.world(folder, rows, attributes=attributes, expected={"users": 800})


HIDDEN: dict[str, Any] = {"dependence": 1, "column": "level", "visibility": "hidden", "epsilon_p": 1, "max_leak": 8}

KINDS = {
    "histograms": Kind(people.world, 2 * 3 * 4, ("histograms", "level_estimates")),
    "numbers": Kind(_with_numbers, 3 * 3 * 8, ("histograms", "level_estimates", "means")),
    "hidden": Kind(partial(people.world, levels=HIDDEN), (2 + 1) * 4, ("histograms", "level_shares")),
    "items": Kind(partial(baskets.world, n_users=240), 2 * 8, ("itemsets",)),
    "sampled": Kind(partial(baskets.world, n_users=240, protocol="sampling"), 2 * 8, ("itemsets",)),
    "aggregates": Kind(partial(items.world, n_users=160), 2 * 8, ("aggregates",)),
}
"""Attributes, providers or one × levels × partitions; of hidden levels one more file beside those of the attributes.
Half the partitions of the sampled are asked for single items, half for sets."""


@pytest.fixture(scope="session")
def places(server: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Place]:
    """By kind: to copy, not to change."""

    @cache
    def make(name: str) -> Place:
        folder = tmp_path_factory.mktemp(f"faults-{name}")
        place = Place(KINDS[name], KINDS[name].make(folder), folder / "home", {})
        place.home.mkdir()
        assert place.run("earlier") == 0, place.said()
        return replace(place, earlier=read(place.home))

    return make


@pytest.fixture
def published(places: Callable[[str], Place]) -> Place:
    """Of histograms; to copy, not to change."""
    return places("histograms")


@pytest.fixture
def place(published: Place, tmp_path: Path) -> Place:
    return copy_to(tmp_path / "home", published)


def copy_to(home: Path, published: Place) -> Place:
    """The same home, with its key, elsewhere."""
    shutil.copytree(published.home, home, symlinks=True, dirs_exist_ok=True)
    return replace(published, home=home)
