"""Servers of runs: two that start at once in a new home, and one elsewhere that does not answer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from pldp.flows.sample import write_sample

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
    """An evaluation beside a release: both servers made the home's database, and one of them died, without a word."""
    starting = [start("-c", _START, str(tmp_path)) for _ in range(3)]
    said = [process.communicate(timeout=240)[1] for process in starting]
    assert [process.returncode for process in starting] == [0, 0, 0], said


def test_a_configured_server_that_does_not_answer_is_named(tmp_path: Path) -> None:
    spec, _ = write_sample(tmp_path, 200)
    url, home = "http://127.0.0.1:9/api", tmp_path / "home"
    command = start("-m", "pldp.flows.cli", "release", str(spec), "--home", str(home), PREFECT_API_URL=url)
    said = " ".join(command.communicate(timeout=240)[1].split())
    assert command.returncode == 3
    assert f"The configured Prefect server {url} does not answer." in said
    assert not (home / "ledger.jsonl").exists()
