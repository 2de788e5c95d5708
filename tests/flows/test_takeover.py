"""Another user of the machine tries to run code as the operator while a release runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
from prefect.serializers import PickleSerializer

from tests.flows.conftest import PATIENCE
from tests.people import mode, world

SQUATTER = Path(__file__).with_name("squatter.py")
PLDP = [sys.executable, "-P", "-m", "pldp.flows.cli"]

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user too")


def eventually(found: Callable[[], Any]) -> Any:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if answer := found():
            return answer
        time.sleep(0.05)
    raise AssertionError("nothing came in time")


class Payload:
    """Whoever loads its pickle writes down as whom."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"id -u > {self.marker}",)


@dataclass
class Squatter:
    folder: Path

    @property
    def planted(self) -> Path:
        return self.folder / "planted"

    @property
    def ran(self) -> Path:
        """There once the planted pickle was loaded."""
        return self.folder / "ran"

    def hint(self, command: subprocess.Popen[Any]) -> int:
        """Tell it the port of a command, which it could find out by looking at what listens."""
        port = port_of(command)
        draft = self.folder / "draft"
        draft.write_text(f"{port} {command.pid}")
        draft.rename(self.folder / "hint")
        return port

    def took(self) -> list[dict[str, Any]]:
        """Ports that it got while their owner lived."""
        return [seen for seen in self.seen("took") if seen["alive"]]

    def seen(self, key: str) -> list[dict[str, Any]]:
        path = self.folder / "seen.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [seen for line in lines if key in (seen := json.loads(line))]


@pytest.fixture
def squatter() -> Iterator[Squatter]:
    """At work; its folder is one that it can reach, which those of pytest are not."""
    with tempfile.TemporaryDirectory(prefix="squatter-") as name:
        found = Squatter(Path(name))
        os.chown(name, 65534, 65534)
        found.folder.chmod(0o755)
        about = {"storage_key": str(found.planted), "serializer": {"type": "pickle"}, "prefect_version": "3.8.8"}
        result = PickleSerializer().dumps(Payload(found.ran)).decode()
        found.planted.write_text(json.dumps({"metadata": about, "result": result}))
        process = subprocess.Popen([sys.executable, "-I", str(SQUATTER), name, str(found.planted)])
        try:
            eventually(lambda: found.seen("watching"))
            yield found
            assert process.poll() is None, "the squatter has given up"
        finally:
            process.kill()
            process.wait()


def environment() -> dict[str, str]:
    """Without the server that tests share."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT", "PLDP"))}


def start(*arguments: object, **more: str) -> subprocess.Popen[Any]:
    words = [*PLDP, *map(str, arguments)]
    return subprocess.Popen(words, env=environment() | more, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def server_of(command: subprocess.Popen[Any]) -> psutil.Process | None:
    """The Prefect server that a command has started."""
    children = psutil.Process(command.pid).children()
    return next((child for child in children if any("create_app" in word for word in child.cmdline())), None)


def port_of(command: subprocess.Popen[Any]) -> int:
    """The one port that the command listens on, itself."""
    sockets = psutil.Process(command.pid).net_connections("tcp")
    (port,) = (int(found.laddr.port) for found in sockets if found.status == psutil.CONN_LISTEN)
    return port


def test_a_squatter_gets_nothing(squatter: Squatter, tmp_path: Path) -> None:
    """A proxy that the operator has is not told the password either."""
    command = start("release", world(tmp_path), "--home", tmp_path / "home", HTTP_PROXY="http://127.0.0.1:9")
    server = eventually(lambda: server_of(command))
    squatter.hint(command)
    inherited = server.environ()
    password = inherited["PREFECT_SERVER_API_AUTH_STRING"]
    said, wrong = command.communicate(timeout=PATIENCE)
    assert command.returncode == 0, wrong
    assert not squatter.ran.exists(), f"code ran as user {squatter.ran.read_text()}"
    assert squatter.took() == []
    assert squatter.seen("answered") == []
    statuses = {seen["status"] for seen in squatter.seen("asked")}
    assert 401 in statuses
    assert statuses <= {None, 401, 500}  # not yet, no, not any more
    assert not server.is_running()
    kept = [path for path in (tmp_path / "home").rglob("*") if path.is_file()]
    assert [path for path in kept if password.encode() in path.read_bytes()] == []
    assert password not in said + wrong
    assert not list((tmp_path / "home" / "prefect").rglob("storage/*")), "results are on disk"


def test_the_port_of_a_server_that_died_stays_ours(squatter: Squatter, tmp_path: Path) -> None:
    spec, home = world(tmp_path), tmp_path / "home"
    command = start("release", spec, "--home", home)
    server = eventually(lambda: server_of(command))
    port = squatter.hint(command)
    eventually(lambda: answers(port) == 200)
    server.send_signal(signal.SIGKILL)
    _, wrong = command.communicate(timeout=PATIENCE)
    assert command.returncode == 3
    assert "Prefect's server ended with exit code -9" in " ".join(wrong.split())
    assert "run the same command again" in " ".join(wrong.split())
    assert squatter.took() == []
    assert not squatter.ran.exists()
    command = start("release", spec, "--home", home)
    _, wrong = command.communicate(timeout=PATIENCE)
    assert command.returncode == 0, wrong
    assert len((home / "ledger.jsonl").read_text().splitlines()) == 1


def answers(port: int) -> int | None:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/health", timeout=PATIENCE) as answer:
            return int(answer.status)
    except OSError:
        return None


def test_results_stay_off_the_disk_whatever_the_profile_says(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "prefect").mkdir(parents=True)
    profile = 'active = "mine"\n[profiles.mine]\n' + "".join(
        f'{name} = "true"\n' for name in ("PREFECT_RESULTS_PERSIST_BY_DEFAULT", "PREFECT_TASKS_DEFAULT_PERSIST_RESULT")
    )
    (home / "prefect" / "profiles.toml").write_text(profile)
    command = start("release", world(tmp_path), "--home", home)
    _, wrong = command.communicate(timeout=PATIENCE)
    assert command.returncode == 0, wrong
    assert not list((home / "prefect").rglob("storage/*"))
    assert mode(home / "prefect") == 0o700


def test_a_serve_whose_server_died_ends(squatter: Squatter, tmp_path: Path) -> None:
    """It would fire nothing any more; whoever supervises it starts it again."""
    spec, home = world(tmp_path, schedule="0 0 1 1 *"), tmp_path / "home"
    log = tmp_path / "log"
    with log.open("wb") as handle:
        words = [*PLDP, "serve", str(spec), "--home", str(home)]
        command = subprocess.Popen(words, env=environment() | {"HOME": str(tmp_path)}, stdout=handle, stderr=handle)
    try:
        eventually(lambda: "Serving" in log.read_text())
        squatter.hint(command)
        eventually(lambda: server_of(command)).send_signal(signal.SIGKILL)
        assert command.wait(timeout=PATIENCE) == 3
    finally:
        command.kill()
        command.wait()
    assert "Prefect's server ended with exit code -9" in log.read_text()
    assert not (home / "prefect" / "password").exists()
    assert squatter.took() == []
