"""A table of a DuckDB file as a source: what is read of it, and what it cannot make us read."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import duckdb
import polars as pl
import pytest

from pldp.errors import Outcome, SourceError, SpecError
from pldp.spec.source import Source as Stated
from pldp.spec.source import TableName
from pldp.tasks.check import check
from pldp.tasks.ingest import ingest
from pldp.tasks.query import connect_memory
from pldp.tasks.source import described
from pldp.tasks.sources.duckdbtable import DuckdbTable
from pldp.tasks.sources.registry import source_at
from pldp.tasks.sources.source import Source
from pldp.tasks.specfile import load_spec
from tests.people import make_people, opened, write_spec

MARK = "zqMARKqz"
MACRO = "CREATE MACRO reading() AS TABLE SELECT content AS id FROM read_text('{secret}')"


def database(path: Path, *statements: str, people: pl.DataFrame | None = None) -> Path:
    with duckdb.connect(str(path)) as connection:
        if people is not None:
            connection.from_arrow(people.to_arrow()).create("people")
        for statement in statements:
            connection.execute(statement)
    return path


def table(path: Path, name: str) -> Source:
    stated = Stated(path=str(path), format="duckdb", table=name, user_id="id")
    return source_at(path, stated, "source", Outcome.NOTHING_RUN)


def read(source: Source, **wanted: str) -> list[tuple[object, ...]]:
    with connect_memory() as connection:
        return source.cells(connection, wanted).fetchall()


def spec_of(folder: Path, **source: object) -> Path:
    stated = {"path": "people.duckdb", "format": "duckdb", "table": "people", "user_id": "id", **source}
    return write_spec(folder, source={key: value for key, value in stated.items() if value is not None})


def test_a_table_is_read_as_the_same_rows_in_a_file_are(tmp_path: Path) -> None:
    people = make_people(500)
    database(tmp_path / "people.duckdb", people=people)
    run, file = opened(spec_of(tmp_path), tmp_path / "home")
    assert ingest.fn(run, file).n_users == 500
    found = check(file)
    assert found.problems == []
    assert found.remarks[0].endswith("people.duckdb, table people: 500 rows, 0 left out.")


def test_a_view_of_its_own_tables(tmp_path: Path) -> None:
    view = "CREATE VIEW archive.asked AS SELECT * FROM people WHERE id <> 'user-0'"
    database(tmp_path / "people.duckdb", "CREATE SCHEMA archive", view, people=make_people(300))
    run, file = opened(spec_of(tmp_path, table="archive.asked"), tmp_path / "home")
    assert ingest.fn(run, file).n_users == 299


@pytest.mark.parametrize(
    "query",
    [
        "SELECT content AS id FROM read_text('{secret}')",
        "SELECT * AS id FROM '{secret}.csv'",
        "SELECT * FROM read_csv('{secret}.csv')",
        "SELECT content AS id FROM read_blob('{secret}')",
        "SELECT file AS id FROM glob('{secret}*')",
        "SELECT (SELECT content FROM read_text('{secret}')) AS id",
        "SELECT id FROM reading()",
    ],
)
def test_a_view_reads_nothing_outside_its_file(query: str, tmp_path: Path) -> None:
    """With a connection of its own it would."""
    (tmp_path / "secret").write_text(MARK)
    (tmp_path / "secret.csv").write_text(f"id\n{MARK}\n")
    text = query.format(secret=tmp_path / "secret").replace("* AS id", "*")
    path = database(tmp_path / "p.duckdb", MACRO.format(secret=tmp_path / "secret"), f"CREATE VIEW people AS {text}")
    with duckdb.connect(str(path), read_only=True) as connection:
        assert connection.table("people").fetchall()
    source = table(path, "people")
    with pytest.raises(SourceError, match="reads outside its file") as refused:
        source.columns()
    assert MARK not in str(refused.value)
    with pytest.raises(SourceError), connect_memory() as connection:
        source.rows(connection).fetchall()


def test_names_are_quoted(tmp_path: Path) -> None:
    odd = 'a"; DROP TABLE people; --.b'
    quoted = '"' + odd.replace('"', '""') + '"'
    path = database(tmp_path / "it's [1].duckdb", f"CREATE TABLE {quoted} AS SELECT 7 AS id")
    assert read(table(path, quoted), user_id="id") == [("7",)]


def test_cells_of_any_type_are_text(tmp_path: Path) -> None:
    cells = "1 AS id, 1.50::DECIMAL(9,2) AS d, DATE '2026-01-31' AS day, [1, 2] AS many, NULL AS no"
    rows = f"CREATE TABLE t AS SELECT {cells}"
    source = table(database(tmp_path / "t.duckdb", rows), "t")
    assert read(source, user_id="id", d="d", day="day", many="many", no="no") == [
        ("1", "1.50", "2026-01-31", "[1, 2]", None)
    ]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: path.unlink(), r"cannot be read \(No such file"),
        (lambda path: path.write_bytes(b"\0" * 100), "cannot be opened as a DuckDB file"),
        (lambda path: path.write_bytes(path.read_bytes()[:5000]), "cannot be"),
        (lambda path: path.with_name("p.duckdb.wal").write_bytes(b"x"), "has a write-ahead log beside it"),
        (lambda path: (path.unlink(), path.mkdir()), "is no regular file"),
    ],
)
def test_files_that_are_not_whole(spoil: object, said: str, tmp_path: Path) -> None:
    path = database(tmp_path / "p.duckdb", "CREATE TABLE people AS SELECT range AS id FROM range(100000)")
    spoil(path)  # type: ignore[operator]
    source = table(path, "people")
    with pytest.raises(SourceError, match=said) as refused, connect_memory() as connection:
        source.rows(connection).fetchall()
    assert source.problem() == refused.value.problems[0]


def test_a_table_that_is_not_there(tmp_path: Path) -> None:
    source = table(database(tmp_path / "p.duckdb", "CREATE TABLE people (id INTEGER)"), "persons")
    with pytest.raises(SourceError, match=r"table persons: there is no such table.*Correct source.table"):
        source.columns()


def test_somebody_has_it_open_for_writing(tmp_path: Path) -> None:
    path = database(tmp_path / "p.duckdb", "CREATE TABLE people (id INTEGER)")
    program = f"import duckdb, time; c = duckdb.connect({str(path)!r}); print('open', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        try:
            with pytest.raises(SourceError, match="somebody has it open for writing"):
                table(path, "people").columns()
        finally:
            holder.kill()


def test_a_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    database(tmp_path / "people.duckdb", people=make_people(300))
    run, file = opened(spec_of(tmp_path), tmp_path / "home")
    time.sleep(0.01)
    database(tmp_path / "people.duckdb", "UPDATE people SET job = 'smith'")
    with pytest.raises(SourceError, match="was changed or replaced while it was read"):
        ingest.fn(run, file)


def test_another_content_is_another_release(tmp_path: Path) -> None:
    database(tmp_path / "people.duckdb", people=make_people(300))
    spec = spec_of(tmp_path)
    first, again = opened(spec, tmp_path / "home")[0], opened(spec, tmp_path / "home")[0]
    assert first.release_id == again.release_id
    database(tmp_path / "people.duckdb", "UPDATE people SET job = 'smith' WHERE id = 'user-1'")
    assert opened(spec, tmp_path / "home")[0].release_id != first.release_id


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"table": None}, "format duckdb needs table"),
        ({"format": None}, "table needs a format that has tables"),
        ({"table": "a.b.c"}, "table must be a name"),
        ({"table": "a."}, "table must be a name"),
        ({"table": 'a"b'}, "table must be a name"),
        ({"table": '"a" "b"'}, "table must be a name"),
    ],
)
def test_specs_that_name_no_table(source: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=said):
        load_spec(spec_of(tmp_path, **source))


@pytest.mark.parametrize(
    ("stated", "schema", "name"),
    [
        ("people", None, "people"),
        ("archive.People", "archive", "People"),
        ('"2026.people"', None, "2026.people"),
        ('"a""b"."c d"', 'a"b', "c d"),
        ("the films; DROP TABLE films", None, "the films; DROP TABLE films"),
    ],
)
def test_names_of_tables(stated: str, schema: str | None, name: str) -> None:
    assert TableName.of(stated) == TableName(schema, name)


def test_cells_are_described_by_their_place(tmp_path: Path) -> None:
    people = make_people(300).with_columns(sex=pl.when(pl.col("id") == "user-7").then(None).otherwise("sex"))
    database(tmp_path / "people.duckdb", people=people)
    run, file = opened(spec_of(tmp_path), tmp_path / "home")
    assert isinstance(described(file)[0].file, DuckdbTable)
    with pytest.raises(
        SourceError, match=r"people.duckdb, table people, readable row 8, column sex: the cell is empty"
    ):
        ingest.fn(run, file)
