"""The statements: one a file, numbered by stage, the grain on top; and what the published views show."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pldp.questions.tables import PUBLISHED
from pldp.tasks.query import statement
from pldp.tasks.schema import prepare_tables

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "sql").glob("*.sql"))
TABLES = [table.name for table in PUBLISHED]
CODE = [
    path
    for folder in ("pldp", "tasks", "flows", "expectations", "papers")
    for path in sorted((ROOT / folder).rglob("*.py"))
]


def without_comments(text: str) -> str:
    return re.sub(r"--.*", "", text)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_is_one_numbered_statement_with_its_grain_on_top(path: Path) -> None:
    assert re.fullmatch(r"\d\d_[a-z]+_[a-z_]+\.sql", path.name)
    text = path.read_text()
    assert re.match(r"-- grain: \S", text)
    body = without_comments(text).strip()
    assert body
    assert ";" not in body, "one statement a file"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_statement_is_used(path: Path) -> None:
    text = "\n".join(code.read_text() for code in CODE)
    assert f'"{path.stem}"' in text


def strings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.parametrize("path", CODE, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_no_statement_stands_in_python(path: Path) -> None:
    verbs = r"\s*(SELECT\s|INSERT INTO|CREATE (OR REPLACE )?(TABLE|VIEW|TYPE|MACRO)|UPDATE \w+ SET|DELETE FROM|COPY )"
    found = [text for text in strings(path) if re.match(verbs, text)]
    assert [text for text in found if "(?:" not in text] == []  # a pattern that recognises one is none


def columns(results: duckdb.DuckDBPyConnection, table: str) -> dict[str, str]:
    query = "SELECT column_name, data_type FROM duckdb_columns() WHERE table_name = ? ORDER BY column_index"
    return dict(results.execute(query, [table]).fetchall())


def insert(results: duckdb.DuckDBPyConnection, table: str, **known: Any) -> None:
    """A row with what matters; the rest is any value of its type."""
    fillers = {"VARCHAR": "x", "DOUBLE": 0.5, "BIGINT": 7, "BOOLEAN": True, "TIMESTAMP": datetime(2026, 1, 1)}
    fillers["VARCHAR[]"] = ["x", "y"]
    row = {name: known.get(name, fillers[kind]) for name, kind in columns(results, table).items()}
    marks = ", ".join("?" for _ in row)
    results.execute(f"INSERT INTO {table} VALUES ({marks})", list(row.values()))  # noqa: S608


def test_statements_can_be_run_again(results: duckdb.DuckDBPyConnection) -> None:
    """Publishing builds on a copy of the last file, which has the tables and views already."""
    insert(results, "releases", release_id="a")
    prepare_tables(results)
    assert results.execute("SELECT count(*) FROM releases").fetchone() == (1,)


def test_a_release_is_there_once(results: duckdb.DuckDBPyConnection) -> None:
    insert(results, "releases", release_id="a")
    with pytest.raises(duckdb.ConstraintException):
        insert(results, "releases", release_id="a")


def fill(results: duckdb.DuckDBPyConnection) -> None:
    """Two names; `x` has an old and a new release and then a refused one, `y` only a refused one."""
    rows = [
        ("x-old", "x", "published", 1),
        ("x-new", "x", "published", 2),
        ("x-refused", "x", "refused", 3),
        ("y-refused", "y", "refused", 4),
        ("z-only", "z", "published", 1),
    ]
    for release_id, name, status, day in rows:
        created = datetime(2026, 1, day)
        insert(results, "releases", release_id=release_id, name=name, status=status, created_at=created)
        insert(results, "validations", release_id=release_id, passed=status == "published")
        if status == "published":
            for table in set(TABLES) - {"releases", "validations"}:
                for attribute in ("a", "b"):
                    insert(results, table, release_id=release_id, attribute=attribute)


@pytest.fixture(scope="module")
def filled() -> Iterator[duckdb.DuckDBPyConnection]:
    """To look at, not to change."""
    with duckdb.connect() as connection:
        prepare_tables(connection)
        fill(connection)
        yield connection


def test_latest_releases(filled: duckdb.DuckDBPyConnection) -> None:
    found = filled.execute("SELECT name, release_id FROM latest_releases ORDER BY ALL").fetchall()
    assert found == [("x", "x-new"), ("z", "z-only")], "the newest published one of each name; refused ones never"
    view = [row[0] for row in filled.execute("SELECT column_name FROM (DESCRIBE latest_releases)").fetchall()]
    assert view == list(columns(filled, "releases"))


@pytest.mark.parametrize("table", TABLES[1:])
def test_latest_views(table: str, filled: duckdb.DuckDBPyConnection) -> None:
    query = f"SELECT name, release_id, count(*) FROM latest_{table} GROUP BY ALL ORDER BY ALL"  # noqa: S608
    found = filled.execute(query).fetchall()
    rows = 1 if table == "validations" else 2
    assert found == [("x", "x-new", rows), ("z", "z-only", rows)]
    view = [row[0] for row in filled.execute(f"SELECT column_name FROM (DESCRIBE latest_{table})").fetchall()]  # noqa: S608
    assert view == ["name", *columns(filled, table)]


def test_releases_of_one_moment_have_one_latest(results: duckdb.DuckDBPyConnection) -> None:
    for release_id in ("b", "a"):
        insert(results, "releases", release_id=release_id, name="x", status="published")
    assert results.execute("SELECT release_id FROM latest_releases").fetchall() == [("b",)]


def test_the_previous_histogram_of_a_name(filled: duckdb.DuckDBPyConnection) -> None:
    found = filled.execute(statement("40_combine_previous"), {"name": "x"}).fetchall()
    assert found == [("a", "x", 0.5), ("b", "x", 0.5)]
    assert filled.execute(statement("40_combine_previous"), {"name": "y"}).fetchall() == []


@pytest.mark.parametrize("table", TABLES)
def test_showing_one_release(table: str, filled: duckdb.DuckDBPyConnection) -> None:
    expected = list(columns(filled, table))
    shown = filled.execute(statement("80_show_rows", table=table), {"release_id": "x-old"})
    assert [column[0] for column in shown.description] == expected
    assert len(shown.fetchall()) == (1 if table in {"releases", "validations"} else 2)


def test_showing_all_releases_newest_first(filled: duckdb.DuckDBPyConnection) -> None:
    found = [row[0] for row in filled.execute(statement("81_show_all")).fetchall()]
    assert found == ["y-refused", "x-refused", "x-new", "x-old", "z-only"]


def test_whether_a_release_is_there(filled: duckdb.DuckDBPyConnection) -> None:
    present = statement("71_publish_present")
    assert filled.execute(present, {"release_id": "x-refused"}).fetchall() == [("refused",)]
    assert filled.execute(present, {"release_id": "nobody"}).fetchall() == []


def test_rows_are_added_by_name(results: duckdb.DuckDBPyConnection) -> None:
    fill(results)
    results.execute("CREATE TEMP TABLE rows AS SELECT columns(*) FROM (SELECT * FROM budgets LIMIT 1)")
    results.execute("CREATE OR REPLACE TEMP TABLE rows AS SELECT n_users, * EXCLUDE (n_users, level_leak) FROM rows")
    before = results.execute("SELECT count(*) FROM budgets").fetchone()
    results.execute(statement("70_publish_rows", table="budgets"))
    assert before is not None
    assert results.execute("SELECT count(*), max(n_users) FROM budgets").fetchone() == (before[0] + 1, 7)


@pytest.fixture
def vault() -> Iterator[duckdb.DuckDBPyConnection]:
    """Six users in a vault, not in the order of their keys: one attribute, two levels, the last user twice."""
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE people (sort_key UBIGINT, twin UBIGINT, value_0 USMALLINT, level_0 UTINYINT)")
        rows = [(2**63 - 1, 4, 1, 0), (5, 2, 1, 1), (2**63, 3, 1, 0), (5, 1, 0, 0), (2**64 - 1, 9, 0, 1)]
        connection.executemany("INSERT INTO people VALUES (?, ?, ?, ?)", [*rows, rows[-1]])
        yield connection


def test_a_vault_is_complete_once_it_says_so(vault: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.CatalogException):
        vault.execute(statement("19_ingest_found"))
    vault.execute(statement("19_ingest_done"), {"n_users": 6, "partitions": 2})
    assert vault.execute(statement("19_ingest_found")).fetchone() == (6, 2)


def test_quarantine_of_users_without_an_id(vault: duckdb.DuckDBPyConnection) -> None:
    vault.execute(statement("12_ingest_quarantine"))
    vault.execute(statement("13_ingest_quarantine"), {"file": "source", "reason": "NO USER ID", "n": 2, "of": 8})
    assert vault.execute(statement("19_ingest_quarantine")).fetchall() == [("source", "NO USER ID", 2, 8)]
