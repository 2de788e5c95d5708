"""The one way to SQL."""

from __future__ import annotations

import sqlite3
import threading
from pathlib import Path

import duckdb
import pytest

from pldp.tasks.query import connect, connect_memory, identifier, statement, text


def test_statements_come_from_files_with_their_lists_filled_in() -> None:
    assert "{domain}" in statement("10_cell_domain")
    filled = statement("10_cell_domain", domain="d")
    assert filled.endswith("TYPE d AS ENUM (SELECT unnest($values::VARCHAR[]))\n"), "values are bound, not filled in"
    with duckdb.connect() as connection:
        connection.execute(filled, {"values": ["it's", "b"]})
        assert connection.execute("SELECT enum_range(NULL::d)").fetchone() == (["it's", "b"],)


@pytest.mark.parametrize("name", ["plain", 'quo"te', "a'b", "x; DROP TABLE y", "ü × ö", '""'])
def test_names_and_texts_are_quoted(name: str) -> None:
    with duckdb.connect() as connection:
        column = connection.execute(f"SELECT 1 AS {identifier(name)}").description[0][0]
        value = connection.execute(f"SELECT {text(name)}").fetchone()
    assert column == name
    assert value == (name,)


def test_a_connection_is_closed_and_spills_beside_its_database(tmp_path: Path) -> None:
    path = tmp_path / "vault.duckdb"
    with connect(path) as connection:
        (spill,) = connection.execute("SELECT current_setting('temp_directory')").fetchone() or ("",)
        (threads,) = connection.execute("SELECT current_setting('threads')").fetchone() or (0,)
        connection.execute("CREATE TABLE t (a INTEGER)")
    assert Path(spill) == tmp_path / "spill"
    assert threads == 2
    assert [entry.name for entry in tmp_path.iterdir()] == ["vault.duckdb"], "no write-ahead log, no spill is left"
    with pytest.raises(RuntimeError, match="inside"), connect(path):
        raise RuntimeError("inside")
    with connect(path, read_only=True) as connection, pytest.raises(duckdb.InvalidInputException, match="read-only"):
        connection.execute("INSERT INTO t VALUES (1)")


def test_readers_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "t.duckdb"
    with connect(path) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS a")
    found = []

    def look() -> None:
        with connect(path, read_only=True) as reader:
            found.append(reader.execute("FROM t").fetchone())

    with connect(path, read_only=True):
        readers = [threading.Thread(target=look) for _ in range(4)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
    assert found == [(1,)] * 4


def test_no_file_makes_the_database_fetch_or_load_an_extension(tmp_path: Path) -> None:
    """A SQLite file, attached as it is, sends DuckDB to the network for code to read it with."""
    path = tmp_path / "catalogue.duckdb"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE films (item)")
    other.close()
    for connection in (connect(tmp_path / "a.duckdb"), connect_memory()):
        with connection as database:
            with pytest.raises(duckdb.IOException, match="not a valid DuckDB database file"):
                database.execute(statement("10_ingest_attach", path=text(str(path))))
            with pytest.raises(duckdb.Error) as refused:
                database.execute(f"ATTACH {text(str(path))} AS other (READ_ONLY)")
            assert "download" not in str(refused.value)
