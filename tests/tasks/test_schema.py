"""The declared tables in DuckDB: what is made, brought up to date, and read."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import duckdb
import polars as pl
import pytest

from pldp.questions.tables import PUBLISHED
from pldp.tables.common import RELEASES, VALIDATIONS
from pldp.tables.declaration import Table
from pldp.tasks.schema import insert_rows, prepare_tables, read_rows, rows_of, stored_tables
from pldp.tasks.tables import frame, of_release, schema


@pytest.fixture
def results() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        prepare_tables(connection)
        yield connection


def described(connection: duckdb.DuckDBPyConnection, table: str) -> list[tuple[str, str, bool, str | None]]:
    query = """
        SELECT column_name, data_type, is_nullable, comment FROM duckdb_columns()
        WHERE table_name = ? ORDER BY column_index
    """
    return connection.execute(query, [table]).fetchall()


@pytest.mark.parametrize("table", PUBLISHED, ids=lambda table: table.name)
def test_the_database_has_what_is_declared(table: Table, results: duckdb.DuckDBPyConnection) -> None:
    assert described(results, table.name) == [
        (column.name, column.type.value, column.nullable, column.comment) for column in table.columns
    ]
    comment = results.execute("SELECT comment FROM duckdb_tables() WHERE table_name = ?", [table.name]).fetchone()
    assert comment == (f"one row per {table.grain}",)
    named = [] if table is RELEASES else ["name"]
    view = results.execute("SELECT column_name FROM duckdb_columns() WHERE table_name = ?", [table.latest]).fetchall()
    assert [row[0] for row in view] == [*named, *(column.name for column in table.columns)]


def test_only_the_release_is_a_primary_key(results: duckdb.DuckDBPyConnection) -> None:
    query = """
        SELECT table_name, constraint_column_names FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY'
    """
    assert results.execute(query).fetchall() == [("releases", ["release_id"])]


@pytest.mark.parametrize("table", [table for table in PUBLISHED if any(c.since for c in table.columns)])
def test_results_of_earlier_versions_get_what_came_later(table: Table) -> None:
    """Columns, comments, and views that show them; rows that were there have null."""
    with duckdb.connect() as connection:
        before = [column for column in table.columns if not column.since]
        columns = ", ".join(f"{column.name} {column.type.value}" for column in before)
        connection.execute(f"CREATE TABLE {table.name} ({columns})")
        fillers: dict[str, Any] = {"VARCHAR": "x", "VARCHAR[]": ["x"], "DOUBLE": 0.5, "BIGINT": 7, "BOOLEAN": True}
        fillers["TIMESTAMP"] = datetime(2026, 1, 1)
        marks = ", ".join("?" for _ in before)
        row = [fillers[column.type.value] for column in before]
        connection.execute(f"INSERT INTO {table.name} VALUES ({marks})", row)  # noqa: S608
        prepare_tables(connection)
        names = [column.name for column in table.columns]
        assert [line[0] for line in described(connection, table.name)] == names
        assert [line[3] for line in described(connection, table.name)] == [column.comment for column in table.columns]
        kept = connection.execute(f"FROM {table.name}").fetchall()
        assert kept == [(*row, *(None for _ in range(len(names) - len(before))))]


def test_views_of_earlier_versions_show_what_came_later() -> None:
    """A view made before its table got a column is made again."""
    with duckdb.connect() as connection:
        prepare_tables(connection)
        connection.execute("DROP VIEW latest_histograms")
        connection.execute("CREATE VIEW latest_histograms AS SELECT 1 AS a")
        prepare_tables(connection)
        assert len(described(connection, "latest_histograms")) == 19


def test_rows_are_read_in_the_order_of_their_publication(results: duckdb.DuckDBPyConnection) -> None:
    gates = [f"gate {i}" for i in (5, 3, 9, 1, 7)]
    rest = {"sentence": "It holds.", "passed": True, "observed": 0.5, "bound": 1.0, "false_alarm": 0.0}
    rows = frame(VALIDATIONS, {"gate": gates, **rest})
    for release_id in ("a-1", "b-1"):
        insert_rows(results, VALIDATIONS, of_release(rows, release_id))
    assert [row[1] for row in rows_of(results, "validations", "b-1").fetchall()] == gates
    found = read_rows(results, "b-1")
    assert list(found) == [table.name for table in PUBLISHED]
    assert found["validations"].drop("release_id").equals(rows)
    for table in PUBLISHED:
        assert dict(found[table.name].schema) == schema(table.columns)
    assert {name for name, frame in found.items() if frame.height} == {"validations"}


def test_rows_that_do_not_fit_are_refused(results: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(duckdb.Error):
        insert_rows(results, VALIDATIONS, pl.DataFrame({"release_id": ["a-1"], "strange": [1]}))
    with pytest.raises(duckdb.ConstraintException):
        insert_rows(results, VALIDATIONS, pl.DataFrame({"release_id": ["a-1"], "gate": ["no verdict"]}))


def test_tables_that_are_not_there_are_empty_and_others_are_found() -> None:
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE validations (gate VARCHAR, release_id VARCHAR)")
        connection.execute("CREATE TABLE of_a_later_version (release_id VARCHAR)")
        connection.execute("CREATE TABLE other (a VARCHAR)")
        connection.execute("INSERT INTO validations VALUES ('g', 'a-1')")
        assert stored_tables(connection) == ["of_a_later_version", "validations"]
        found = read_rows(connection, "a-1")
    assert found["validations"].rows() == [("a-1", "g", None, None, None, None, None, None)]
    assert all(frame.is_empty() for name, frame in found.items() if name != "validations")
