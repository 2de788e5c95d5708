"""A home that an earlier version wrote: every reader reads it, and the next release is published into it.

homes/before-one-pipeline.tar.xz was written by the command line at commit b838170, without vault, reports and pages:
`pldp release spec.yaml --slot past` of four specs of that commit's tests, with histograms, numbers and a binned number
(survey), hidden levels (secret), aggregates towards providers (films), and item sets (baskets).
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from pldp.questions.tables import PUBLISHED
from pldp.tables.declaration import Table
from pldp.tasks.contents import compare_contents
from pldp.tasks.home import Home
from pldp.tasks.query import identifier
from pldp.tasks.results import list_releases, read_release
from pldp.tasks.tables import schema
from tests.flows.conftest import Pldp
from tests.tasks.published import publish_by_hand

ARCHIVE = Path(__file__).parent / "homes" / "before-one-pipeline.tar.xz"
TABLES = {
    "survey": "releases histograms level_estimates means quantiles bins budgets validations",
    "secret": "releases histograms level_shares budgets validations",
    "films": "releases aggregates budgets validations",
    "baskets": "releases itemsets rules budgets validations",
}
"""What the release of each name has rows in."""

LATER = {"estimates", "spends", "doubts"}
"""Tables that this version has and that one had not."""

REWORDED = {("itemsets", "probability_frequent")}
"""Columns whose comment was wrong, and says now what they hold."""

FIRST = ("releases", "histograms", "level_estimates", "budgets", "validations")
"""The tables of the first version."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path / "home", filter="data")
    return tmp_path / "home"


@pytest.fixture
def first(home: Path) -> Path:
    """The same home as if the first version had written it: without tables, columns, views and macros that followed."""
    path = (home / "results.duckdb").resolve()
    path.chmod(0o600)
    with duckdb.connect(str(path)) as results:
        results.execute("DROP MACRO TABLE group_estimate")
        for table in reversed(PUBLISHED):
            results.execute(f"DROP VIEW IF EXISTS {table.latest}")
        for table in PUBLISHED:
            if table.name not in FIRST:
                results.execute(f"DROP TABLE IF EXISTS {table.name}")
                continue
            for column in table.columns:
                if column.since:
                    results.execute(f"ALTER TABLE {table.name} DROP COLUMN IF EXISTS {column.name}")
    return home


def ask(home: Path, query: str) -> list[Any]:
    with duckdb.connect(str((home / "results.duckdb").resolve()), read_only=True) as results:
        return results.execute(query).fetchall()


def stored(home: Path, table: Table, name: str) -> list[Any]:
    """Rows as the file itself has them, release apart; null in columns that followed."""
    there = {row[0] for row in ask(home, f"SELECT column_name FROM duckdb_columns() WHERE table_name = '{table.name}'")}  # noqa: S608
    columns = ", ".join(identifier(column.name) if column.name in there else "NULL" for column in table.content)
    query = f"SELECT {columns} FROM {table.name} WHERE release_id LIKE '{name}-%' ORDER BY rowid"  # noqa: S608
    return ask(home, query)


def test_the_file_is_not_of_this_version(home: Path) -> None:
    """Else the tests below show nothing."""
    there = {row[0] for row in ask(home, "SELECT table_name FROM duckdb_tables()")}
    assert {table.name for table in PUBLISHED} - there == LATER
    assert ask(home, "SELECT DISTINCT comment FROM duckdb_tables()") == [(None,)]


@pytest.mark.parametrize(
    "table", [table for table in PUBLISHED if table.name not in LATER], ids=lambda table: table.name
)
def test_what_analysts_know_is_what_it_was(table: Table, home: Path) -> None:
    """Names, types, order, comments and where null may stand; later columns follow those of before."""
    columns = "column_name, data_type, is_nullable, comment"
    before = ask(home, f"SELECT {columns} FROM duckdb_columns() WHERE table_name = '{table.name}'")  # noqa: S608
    now = [(column.name, column.type.value, column.nullable, column.comment) for column in table.columns]
    assert before
    same = [i for i, column in enumerate(before) if (table.name, column[0]) not in REWORDED]
    assert [now[i] for i in same] == [before[i] for i in same]
    assert [column[:3] for column in now[: len(before)]] == [column[:3] for column in before]


@pytest.mark.parametrize("name", TABLES)
def test_a_release_is_read_as_it_was_published(name: str, home: Path) -> None:
    found = read_release(home, name)
    assert found.valid
    assert found.statement is not None
    assert {table for table, rows in found.tables.items() if rows.height} == set(TABLES[name].split())
    for table in PUBLISHED:
        assert dict(found.tables[table.name].schema) == schema(table.content)
        if table.name not in LATER:
            assert found.tables[table.name].rows() == stored(home, table, name)
        keys = [tuple(map(str, row)) for row in found.tables[table.name].select(table.key).rows()]
        assert len(set(keys)) == len(keys), "the declared key tells rows apart"
    contents = compare_contents(Home(home), found.release_id)
    assert contents.recorded
    assert contents.problems == ()


@pytest.mark.parametrize("name", TABLES)
def test_every_command_reads_it(name: str, home: Path, pldp: Pldp, tmp_path: Path) -> None:
    at = ("--home", home)
    shown = pldp("show", name, *at)
    assert (shown.code, "published" in shown.out) == (0, True)
    content = json.loads(pldp("show", name, "--json", *at).out)
    assert [row["gate"] for row in content["validations"]] == read_release(home, name).validations["gate"].to_list()
    assert all(content[table] == [] for table in LATER)
    assert (pldp("validate", name, *at).code, pldp("releases", *at).code) == (0, 0)
    page = pldp("page", name, *at)
    assert page.code == 0
    assert name in Path(page.out.strip()).read_text()
    assert pldp("export", name, tmp_path / "out", *at).code == 0
    for table in PUBLISHED:
        exported = pl.read_parquet(tmp_path / "out" / f"{table.name}.parquet")
        assert dict(exported.schema) == schema(table.columns)
        assert (exported.height > 0) == (table.name in TABLES[name].split())
    asked = pldp("query", f"SELECT count(*) AS n FROM latest_budgets WHERE name = '{name}'", "--json", *at)  # noqa: S608
    assert json.loads(asked.out) == [{"n": read_release(home, name).tables["budgets"].height}]


def test_groups_of_values_are_there(home: Path, pldp: Pldp) -> None:
    said = pldp("group", "survey", "job", "farmer", "nurse", "--json", "--home", home)
    assert said.code == 0
    assert 0 < json.loads(said.out)["frequency"] < 1


@pytest.mark.parametrize("name", ["survey", "secret"])
def test_results_of_the_first_version_are_read(name: str, first: Path, pldp: Pldp, tmp_path: Path) -> None:
    at = ("--home", first)
    found = read_release(first, name)
    assert {table for table, rows in found.tables.items() if rows.height} <= set(FIRST)
    assert found.tables["budgets"]["provider"].null_count() == found.tables["budgets"].height
    for command in (("show", name), ("page", name), ("export", name, tmp_path / "out"), ("releases",)):
        assert pldp(*command, *at).code == 0
    assert pl.read_parquet(tmp_path / "out" / "means.parquet").is_empty()


def unchanged(home: Path) -> None:
    """The releases of the earlier version are what they were, in the new file too."""
    for name in TABLES:
        contents = compare_contents(Home(home), read_release(home, name).release_id)
        assert contents.recorded
        assert contents.problems == ()


def added(home: Path) -> None:
    """Results of the first version lost rows here, and so their hashes; what is left of them is there."""
    assert {row[0] for row in ask(home, "SELECT DISTINCT name FROM latest_histograms")} == {
        "survey",
        "secret",
        "people",
    }
    columns = "unbiased_standard_error IS NULL, name = 'people'"
    assert len(ask(home, f"SELECT DISTINCT {columns} FROM latest_histograms")) == 2  # noqa: S608


@pytest.mark.parametrize(("version", "check"), [("home", unchanged), ("first", added)])
def test_a_new_release_is_published_into_it(
    version: str, check: Callable[[Path], None], request: pytest.FixtureRequest, pldp: Pldp, tmp_path: Path
) -> None:
    old: Path = request.getfixturevalue(version)
    before = list_releases(old)["release_id"].to_list()
    file = (old / "results.duckdb").resolve()
    bytes_before = file.read_bytes()
    home, release_id = publish_by_hand(tmp_path)
    assert home == old
    assert (old / "results.duckdb").resolve().name == "results-5.duckdb"
    assert file.read_bytes() == bytes_before, "whoever has the earlier file open keeps it"
    assert set(list_releases(home)["release_id"]) == {release_id, *before}
    for table in PUBLISHED:
        described = ask(home, f"SELECT column_name, column_type FROM (DESCRIBE {table.name})")  # noqa: S608
        assert described == [(column.name, column.type.value) for column in table.columns]
        assert ask(home, f"SELECT comment FROM duckdb_tables() WHERE table_name = '{table.name}'") != [(None,)]  # noqa: S608
        ask(home, f"FROM {table.latest}")
    assert pldp("validate", release_id, "--home", home).code == 0
    assert ask(home, f"SELECT count(*) FROM group_estimate('{release_id}', 'job', ['farmer'])") == [(1,)]  # noqa: S608
    check(home)
