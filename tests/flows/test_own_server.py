"""Servers of runs: two that start at once in a new home, the database they get, one elsewhere that does not answer."""

from __future__ import annotations

import os
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

from pldp.flows.own_server import _listen
from pldp.flows.sample import write_sample
from tests.slow import repeated

_START = """
import sys
from pathlib import Path
from pldp.flows.own_server import OwnServer
from pldp.tasks.settings import settle

home = Path(sys.argv[1])
settle(home)
server = OwnServer(home / "prefect")
server.wait()
server.stop()
"""


def start(*command: str, **variables: str) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    return subprocess.Popen(
        [sys.executable, *command], env=kept | variables, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )


def test_two_commands_may_start_at_once_in_a_new_home(tmp_path: Path) -> None:
    """An evaluation beside a release: both servers made the home's database, and one of them died, without a word.

    In an empty cache, so that the first of them migrates. It keeps the migrated database for homes to come: empty.
    """
    cache, home, next_home = tmp_path / "cache", tmp_path / "home", tmp_path / "next"
    home.mkdir()
    next_home.mkdir()
    starting = [start("-c", _START, str(home), XDG_CACHE_HOME=str(cache)) for _ in range(repeated(2, 3))]
    said = [process.communicate(timeout=240)[1] for process in starting]
    assert {process.returncode for process in starting} == {0}, said
    (kept,) = (cache / "pldp").iterdir()
    assert kept.stat().st_mode & 0o777 == 0o600
    rows = filled(kept)
    assert list(rows) == ["alembic_version"]
    connection = sqlite3.connect(kept)
    connection.execute("CREATE TABLE marker (n)")
    connection.close()
    last = start("-c", _START, str(next_home), XDG_CACHE_HOME=str(cache))
    assert last.communicate(timeout=240)[1] == ""
    assert last.returncode == 0
    connection = sqlite3.connect(next_home / "prefect" / "prefect.db")
    assert connection.execute("SELECT count(*) FROM marker").fetchall() == [(0,)], "it was migrated, not copied"
    connection.close()
    assert filled(next_home / "prefect" / "prefect.db")["alembic_version"] == rows["alembic_version"]


def filled(database: Path) -> dict[str, list[object]]:
    """The tables that are not empty."""
    connection = sqlite3.connect(database)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    rows = {name: connection.execute(f'SELECT * FROM "{name}"').fetchall() for name in names}  # noqa: S608 — its own
    connection.close()
    return {name: found for name, found in rows.items() if found}


def test_a_configured_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    spec, _ = write_sample(tmp_path, 200)
    url, home = "http://127.0.0.1:9/api", tmp_path / "home"
    command = start("-m", "pldp.flows.cli", "release", str(spec), "--home", str(home), PREFECT_API_URL=url)
    said = " ".join(command.communicate(timeout=240)[1].split())
    assert command.returncode == 3
    assert f"The configured Prefect server {url} does not answer." in said
    assert not (home / "ledger.jsonl").exists()


def test_the_server_s_connections_send_at_once() -> None:
    """An answer's second part waited 40 ms for the client to confirm the first: a third of a release of the sample."""
    with _listen(None) as listener, socket.create_connection(listener.getsockname()) as _:
        connection, _ = listener.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
