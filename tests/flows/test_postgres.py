"""A table of a PostgreSQL server as a source, against a real server on this machine."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pldp.errors import Outcome, SourceError, SpecError
from pldp.flows.evaluate import evaluate
from pldp.flows.release import release
from pldp.tasks.check import check
from pldp.tasks.home import Home
from pldp.tasks.ingest import ingest
from pldp.tasks.landing import land
from pldp.tasks.query import connect_memory
from pldp.tasks.run import open_run
from pldp.tasks.sources.postgres import Exported, PostgresTable
from pldp.tasks.sources.registry import source_at
from pldp.tasks.specfile import load_spec
from tests import baskets
from tests.people import make_people, write_spec

PASSWORD = "zqCANARYqz"  # noqa: S105
PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))


@dataclass(frozen=True)
class Server:
    folder: Path
    port: int

    def run(self, program: str, *arguments: object) -> None:
        """A server does not run as root."""
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
        command = [*user, str(PROGRAMS[-1].with_name(program)), *map(str, arguments)]
        subprocess.run(command, check=True, capture_output=True, cwd="/")

    def stop(self, mode: str = "immediate") -> None:
        self.run("pg_ctl", "-D", self.folder / "data", "-m", mode, "stop")

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder} -c fsync=off"
        self.run("pg_ctl", "-D", self.folder / "data", "-w", "-l", self.folder / "log", "-o", options, "start")

    def execute(self, *queries: str) -> None:
        from adbc_driver_postgresql import dbapi  # type: ignore[import-untyped]

        with dbapi.connect("postgresql://") as connection, connection.cursor() as cursor:
            for query in queries:
                cursor.execute(query)
            connection.commit()

    def write(self, table: str, rows: pl.DataFrame) -> None:
        from adbc_driver_postgresql import dbapi

        with dbapi.connect("postgresql://") as connection, connection.cursor() as cursor:
            cursor.adbc_ingest(table, rows.to_arrow(), mode="create")
            connection.commit()


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if not PROGRAMS:
        pytest.skip("no PostgreSQL server is installed")
    pytest.importorskip("adbc_driver_postgresql")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder = Path("/tmp") / f"pldp-postgres-{os.getpid()}"  # noqa: S108  # short enough for a socket, open to its user
    folder.mkdir(mode=0o755)
    (folder / "password").write_text(PASSWORD)
    server = Server(folder, port)
    with pytest.MonkeyPatch.context() as environment:
        try:
            if os.geteuid() == 0:
                shutil.chown(folder, "postgres", "postgres")
                shutil.chown(folder / "password", "postgres", "postgres")
            server.run(
                "initdb", "-D", folder / "data", "-A", "scram-sha-256", "--pwfile", folder / "password", "-U", "owner"
            )
            server.start()
        except (LookupError, subprocess.CalledProcessError, OSError) as error:
            pytest.skip(f"no PostgreSQL server can be started here ({type(error).__name__})")
        login = {"HOST": "127.0.0.1", "PORT": str(port), "USER": "owner", "PASSWORD": PASSWORD, "DATABASE": "postgres"}
        for name, value in login.items():
            environment.setenv(f"PG{name}", value)
        yield server
        server.stop()
    shutil.rmtree(folder)


@pytest.fixture
def people(postgres: Server) -> Iterator[Server]:
    postgres.execute("DROP TABLE IF EXISTS people")
    postgres.write("people", make_people(2000))
    yield postgres
    postgres.execute("DROP TABLE IF EXISTS people")


def spec_of(folder: Path, table: str = "people", **source: Any) -> Path:
    return write_spec(folder, source={"format": "postgres", "table": table, "user_id": "id", **source})


def source_of(table: str, **stated: Any) -> PostgresTable:
    from pldp.spec.source import Source

    section = Source(format="postgres", table=table, user_id="id", **stated)
    found = source_at(Path(), section, "source", Outcome.NOTHING_RUN)
    assert isinstance(found, PostgresTable)
    return found


def on_disk(home: Path) -> bytes:
    return b"\n".join(
        os.fsencode(path) + b"\n" + (path.read_bytes() if path.is_file() else b"") for path in home.rglob("*")
    )


def test_a_release_leaves_neither_password_nor_rows(
    people: Server, tmp_path: Path, server: object, capfd: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    done = release(spec_of(tmp_path), home)
    assert done.status == "published"
    assert list((home / "exports").iterdir()) == []
    left = on_disk(home)
    assert PASSWORD.encode() not in left
    assert b"user-1999" not in left
    said = capfd.readouterr()
    assert PASSWORD not in said.out + said.err
    again = release(spec_of(tmp_path), home)
    assert (again.release_id, again.resumed) == (done.release_id, True)
    people.execute("UPDATE people SET job = 'smith' WHERE id = 'user-7'")
    assert release(spec_of(tmp_path), home, slot="later").release_id != done.release_id


def test_an_evaluation(people: Server, tmp_path: Path, server: object) -> None:
    done = evaluate(spec_of(tmp_path), tmp_path / "home", repeat=1, seed=1)
    assert done.n_users == 2000
    assert list((tmp_path / "home" / "exports").iterdir()) == []


def test_what_a_slot_has_read_is_what_it_is_resumed_from(people: Server, tmp_path: Path) -> None:
    home, file = Home(tmp_path / "home").prepare(), load_spec(spec_of(tmp_path))
    first = land(home, file, "manual")
    run = open_run(home, first, "manual")
    people.execute("DELETE FROM people WHERE id <> 'user-1'")
    again = land(home, file, "manual")
    assert again.landed == first.landed
    assert open_run(home, again, "manual").release_id == run.release_id
    assert ingest.fn(run, again).n_users == 2000
    other = land(home, file, "other")  # nothing was spent on the first
    assert first.landed is not None
    assert not first.landed.exists()
    assert other.landed is not None
    assert pl.read_parquet(other.landed).height == 1


def test_only_what_the_spec_names_is_fetched(people: Server, tmp_path: Path) -> None:
    people.execute("ALTER TABLE people ADD COLUMN note text DEFAULT 'zqNOTEqz'")
    landed = land(Home(tmp_path / "home").prepare(), load_spec(spec_of(tmp_path)), "manual").landed
    assert landed is not None
    assert set(pl.read_parquet(landed).columns) == {"id", "job", "sex", "level"}
    assert landed.parent.stat().st_mode & 0o777 == 0o700


def test_a_table_of_what_people_hold(postgres: Server, tmp_path: Path) -> None:
    postgres.write("bought", baskets.make_rows(300))
    source = {"format": "postgres", "table": "bought"}
    file = load_spec(baskets.world(tmp_path, 300, source=source))
    assert check(file).problems == []
    home = Home(tmp_path / "home").prepare()
    landed = land(home, file, "manual")
    assert ingest.fn(open_run(home, landed, "manual"), landed).n_users == 300
    postgres.execute("DROP TABLE bought")


def test_check_reads_the_table(people: Server, tmp_path: Path) -> None:
    found = check(load_spec(spec_of(tmp_path)))
    assert found.problems == []
    assert found.remarks[0] == "PostgreSQL table people: 2,000 rows, 0 left out."
    people.execute("UPDATE people SET sex = 'zqBADqz' WHERE id = 'user-3'", "ALTER TABLE people DROP COLUMN job")
    problems = check(load_spec(spec_of(tmp_path))).problems
    assert str(problems[0]) == "PostgreSQL table people: there is no column 'job', which the spec names."
    assert any("column sex: 1 cell holds a value that is not declared" in str(problem) for problem in problems)
    assert "zqBADqz" not in "".join(map(str, problems))


def test_a_bad_cell_is_told_by_the_tables_name(people: Server, tmp_path: Path) -> None:
    people.execute("UPDATE people SET sex = 'zqBADqz' WHERE id = 'user-3'")
    home = Home(tmp_path / "home").prepare()
    file = land(home, load_spec(spec_of(tmp_path)), "manual")
    with pytest.raises(
        SourceError, match=r"^PostgreSQL table people, readable row \d+, column sex: the cell"
    ) as refused:
        ingest.fn(open_run(home, file, "manual"), file)
    assert "zqBADqz" not in str(refused.value)


def test_cells_of_any_type_are_text(postgres: Server) -> None:
    postgres.execute(
        'CREATE SCHEMA "Odd schema"',
        """CREATE TABLE "Odd schema"."a.b""; DROP TABLE x; --" AS SELECT 1::bigint AS id, 1.50::numeric AS n,
        1e400::numeric AS large, DATE '2026-01-31' AS day, ARRAY[1, 2] AS many, NULL::int AS nothing, true AS yes,
        '{"a": 1}'::jsonb AS json, 'x'::char(3) AS padded""",
    )
    source = source_of('"Odd schema"."a.b""; DROP TABLE x; --"')
    names = ("id", "n", "large", "day", "many", "nothing", "yes", "json")
    assert set(names) < set(source.columns())
    with connect_memory() as database:
        (row,) = source.cells(database, {name: name for name in names}).fetchall()
    assert row == ("1", "1.50", "1" + "0" * 400, "2026-01-31", "{1,2}", None, "true", '{"a": 1}')


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"PGPASSWORD": "zqWRONGqz"}, "refuses the login"),
        ({"PGPORT": "1"}, "cannot be reached"),
        ({"PGHOST": "zqHOSTqz.invalid"}, "cannot be reached"),
        ({"PGDATABASE": "zqNONEqz"}, "cannot be reached"),
    ],
)
def test_servers_that_let_nobody_in(
    environment: dict[str, str], said: str, people: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    (problem,) = check(load_spec(spec_of(tmp_path))).problems
    assert said in str(problem)
    assert "zq" not in str(problem)
    monkeypatch.undo()


def test_an_address_in_a_variable(people: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CENSUS", f"postgresql://owner:{PASSWORD}@127.0.0.1:{people.port}/postgres")
    monkeypatch.delenv("PGPASSWORD")
    spec = spec_of(tmp_path, connection="CENSUS")
    assert check(load_spec(spec)).problems == []
    monkeypatch.setenv("CENSUS", f"postgresql://owner:{PASSWORD}@127.0.0.1:port/postgres")
    (problem,) = check(load_spec(spec)).problems
    assert "Check CENSUS in the environment" in str(problem)
    assert PASSWORD not in str(problem)
    monkeypatch.delenv("CENSUS")
    (problem,) = check(load_spec(spec)).problems
    assert "the environment has no variable CENSUS, which source.connection names" in str(problem)


def test_tables_that_cannot_be_read(people: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for table, said in (("nobody", "there is no such table"), ("no.people", "there is no such")):
        (problem,) = check(load_spec(spec_of(tmp_path, table))).problems
        assert f"PostgreSQL table {table}: {said}" in str(problem)
    people.execute(f"CREATE ROLE guest LOGIN PASSWORD '{PASSWORD}'")
    monkeypatch.setenv("PGUSER", "guest")
    (problem,) = check(load_spec(spec_of(tmp_path))).problems
    assert "this login may not read the table" in str(problem)


def test_a_server_that_is_gone_midway_leaves_nothing(people: Server, tmp_path: Path) -> None:
    people.execute(
        "CREATE TABLE many AS SELECT i::text AS id, repeat('x', 200) AS job FROM generate_series(1, 600000) i"
    )
    source, path = source_of("many"), tmp_path / "rows.parquet"
    batches = source._batches(("id", "job"))
    next(batches)
    people.stop()
    try:
        with pytest.raises(SourceError, match="the server broke off"):
            list(batches)
        with pytest.raises(SourceError, match="cannot be reached"):
            source.export(path, ("id", "job"))
        assert not path.exists()
    finally:
        people.start()


def test_one_snapshot_that_others_cannot_change(people: Server, tmp_path: Path) -> None:
    batches = source_of("many")._batches(("id", "job"))
    n = next(batches).num_rows
    writer = threading.Thread(target=people.execute, args=("DELETE FROM many",))
    writer.start()
    writer.join()
    assert n + sum(batch.num_rows for batch in batches) == 600_000
    people.execute("DROP TABLE many")


def test_nothing_can_be_written(people: Server) -> None:
    with pytest.raises(SourceError), source_of("people")._reading("DELETE FROM people") as reader:
        reader.read_all()
    assert source_of("people").count(()) == 2000


def test_a_file_takes_the_place_of_the_server(tmp_path: Path) -> None:
    make_people(100).write_csv(tmp_path / "people.csv")
    file = load_spec(spec_of(tmp_path, connection="CENSUS"), tmp_path / "people.csv")
    assert (file.spec.source.format, file.spec.source.table, file.spec.source.connection) == (None, None, None)
    assert check(file).problems == []


def test_an_export_is_named_after_its_table(tmp_path: Path) -> None:
    make_people(10).write_parquet(tmp_path / "rows.parquet")
    from pldp.spec.source import Source

    section = Source(format="postgres", table="a.b", user_id="id")
    found = source_at(tmp_path / "rows.parquet", section, "source", Outcome.NOTHING_RUN)
    assert isinstance(found, Exported)
    assert found.place(3) == ("PostgreSQL table a.b", 3)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ({"path": "x.csv"}, "takes no path"),
        ({"reports": "sent"}, "needs either path"),
        ({"connection": "postgresql://owner:zq@host/db"}, "connection"),
        ({"format": "csv"}, "table needs a format"),
    ],
)
def test_specs_that_say_too_much(source: dict[str, str], said: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=said):
        load_spec(spec_of(tmp_path, **source))
