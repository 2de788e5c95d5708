"""Schedules: a real server and a real cron, and the rules of slots."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import psutil
import pytest

from tests.flows.conftest import PATIENCE
from tests.flows.decoys import decoys
from tests.people import make_people, mode, world

CANARY = "CANARY-7351"


def eventually(found: Callable[[], Any], alive: Callable[[], bool]) -> Any:
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if answer := found():
            return answer
        assert alive(), "serve has ended"
        time.sleep(0.5)
    raise AssertionError("nothing came in time")


@dataclass
class Serving:
    process: subprocess.Popen[bytes]
    home: Path
    log: Path
    told: Path

    def wait_for(self, found: Callable[[], Any]) -> Any:
        try:
            return eventually(found, lambda: self.process.poll() is None)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.log.read_text()}") from None

    def said(self, *words: str) -> Callable[[], str | None]:
        return lambda: next((line for line in self.log.read_text().splitlines() if all(w in line for w in words)), None)

    def ask(self, path: str, content: dict[str, Any]) -> Any:
        """The server's API, with the password that only the operator can read."""
        url = next(line for line in self.log.read_text().splitlines() if "Prefect's page" in line).split()[2]
        password = base64.b64encode((self.home / "prefect" / "password").read_bytes()).decode()
        request = urllib.request.Request(  # noqa: S310 — loopback
            f"{url}/api/{path}",
            json.dumps(content).encode(),
            {"Content-Type": "application/json", "Authorization": f"Basic {password}"},
        )
        for patience in (1, 2, 4, 8, None):
            try:
                with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
                    return json.load(answer)
            except urllib.error.HTTPError as error:
                # A busy server's own database is locked now and then; it asks to come back.
                if error.code != 503 or patience is None:
                    raise
                time.sleep(patience)
        raise AssertionError("unreachable")

    def runs(self) -> list[dict[str, Any]]:
        return list(self.ask("flow_runs/filter", {"sort": "EXPECTED_START_TIME_ASC"}))

    def trigger(self, deployment: str, scheduled: str | None = None) -> str:
        (found,) = (d for d in self.ask("deployments/filter", {}) if d["name"].startswith(f"{deployment}-"))
        details = {"scheduled_time": scheduled} if scheduled else {}
        state = {"type": "SCHEDULED", "state_details": details}
        return str(self.ask(f"deployments/{found['id']}/create_flow_run", {"state": state})["id"])

    def finished(self, run_id: str) -> Callable[[], dict[str, Any] | None]:
        final = {"COMPLETED", "FAILED", "CRASHED", "CANCELLED"}
        return lambda: next((r for r in self.runs() if r["id"] == run_id and r["state_type"] in final), None)

    def spends(self) -> list[dict[str, Any]]:
        path = self.home / "ledger.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    """`pldp serve` of a good spec every minute and of a broken one in January, with a server of its own.

    It is called in a folder full of decoys, which must not matter to anything.
    """
    folder = tmp_path_factory.mktemp("serving")
    good = world(folder / "good", schedule="* * * * *")
    people = make_people(50).with_columns(id=pl.lit(CANARY))
    broken = world(folder / "broken", people, name="broken", schedule="0 0 1 1 *")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT", "PLDP"))}
    place = decoys(folder / "place")
    command = [
        sys.executable,
        "-P",
        "-m",
        "pldp.flows.cli",
        "serve",
        str(good),
        str(broken),
        "--home",
        str(folder / "home"),
    ]
    (folder / "late").mkdir()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*command, "--on-failure", 'echo "$PLDP_MESSAGE" >> told'],
            env=environment | {"HOME": str(folder), "PYTHONPATH": str(folder / "late")},
            cwd=place,
            stdout=log,
            stderr=log,
        )
    told = place / "told"
    try:
        yield Serving(process, folder / "home", folder / "log", told)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


def test_a_broken_source_is_told_without_its_data(serving: Serving) -> None:
    serving.wait_for(serving.said("Serving", "broken"))
    run = serving.wait_for(serving.finished(serving.trigger("broken")))
    assert run["state_type"] == "FAILED"
    line = serving.wait_for(lambda: serving.told.exists() and serving.told.read_text())
    told = [json.loads(text) for text in (serving.home / "failures.jsonl").read_text().splitlines()]
    (failure,) = [failure for failure in told if failure["run"] == run["name"]]
    assert failure["error"] == "SourceError"
    assert failure["message"] in line
    assert "pldp release" in failure["resume"]
    for text in (line, str(failure), serving.log.read_text(), json.dumps(serving.runs())):
        assert CANARY not in text
    assert "broken" not in {spend["name"] for spend in serving.spends()}


def test_cron_fires_and_its_slot_is_released_once(serving: Serving) -> None:
    serving.wait_for(serving.said("Serving", "good"))
    serving.wait_for(serving.said("slot", "published"))
    # The command says so a moment before the server has noted the run's end.
    ended = serving.wait_for(
        lambda: [r for r in serving.runs() if r["auto_scheduled"] and r["state_type"] == "COMPLETED"]
    )
    run = ended[0]
    slot = run["expected_start_time"][:16] + "Z"
    spent = [spend for spend in serving.spends() if spend["slot"] == slot]
    assert len(spent) == 1
    release_id = spent[0]["release_id"]
    assert json.loads((serving.home / "releases" / release_id / "opened.json").read_text())["slot"] == slot
    with duckdb.connect(str(serving.home / "results.duckdb"), read_only=True) as results:
        query = "SELECT status FROM releases WHERE release_id = ?"
        assert results.execute(query, [release_id]).fetchall() == [("published",)]

    again = serving.wait_for(serving.finished(serving.trigger("people", run["expected_start_time"])))
    assert again["state"]["message"] == f"{release_id} is there already; nothing was drawn"
    assert [spend for spend in serving.spends() if spend["slot"] == slot] == spent


def test_the_server_is_the_operators_alone(serving: Serving) -> None:
    serving.wait_for(serving.said("Serving", "good"))
    assert mode(serving.home / "prefect") == 0o700
    assert mode(serving.home / "prefect" / "password") == 0o600
    url = next(line for line in serving.log.read_text().splitlines() if "Prefect's page" in line).split()[2]
    assert url.startswith("http://127.0.0.1:")
    with pytest.raises(urllib.error.HTTPError, match="401"):
        urllib.request.urlopen(f"{url}/api/flow_runs/count", data=b"{}", timeout=60)  # noqa: S310


def test_the_first_slot_announced_is_the_first_that_fires(serving: Serving) -> None:
    line = serving.wait_for(serving.said("Serving", "good"))
    announced = line.split("next slot ")[1].rstrip(".")
    fired = serving.wait_for(lambda: [r for r in serving.runs() if r["auto_scheduled"] and r["run_count"]])
    assert announced == min(run["expected_start_time"] for run in fired)[:16] + "Z"


def test_a_run_that_cannot_begin_tells_why(serving: Serving) -> None:
    """A module of a foreign name comes before ours, as it did when runs looked into the working folder."""
    serving.wait_for(serving.said("Serving", "broken"))
    late = serving.home.parent / "late" / "pldp"
    late.mkdir()
    (late / "__init__.py").touch()
    try:
        run = serving.wait_for(serving.finished(serving.trigger("broken")))
    finally:
        shutil.rmtree(late)
    assert run["state_type"] == "CRASHED"

    def told() -> list[dict[str, Any]]:
        """Of this run: the good spec's may have met the foreign module too, if its minute came."""
        path = serving.home / "failures.jsonl"
        lines = path.read_text().splitlines() if path.exists() else []
        return [failure for failure in map(json.loads, lines) if failure["run"] == run["name"]]

    assert [failure["error"] for failure in serving.wait_for(told)] == ["NotStarted"]
    line = serving.wait_for(serving.said("Failed", "broken", "could not begin"))
    assert "No module named 'pldp.flows" in line


def test_a_home_is_served_once(serving: Serving) -> None:
    serving.wait_for(serving.said("Serving", "good"))
    spec = serving.home.parent / "good" / "spec.yaml"
    command = [sys.executable, "-m", "pldp.flows.cli", "serve", str(spec), "--home", str(serving.home)]
    second = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert second.returncode == 3
    assert "another `pldp serve`" in second.stderr


def test_it_stops_and_leaves_nothing_running(serving: Serving) -> None:
    """Last of its module: it ends the serve that the others share."""
    children = psutil.Process(serving.process.pid).children(recursive=True)
    assert any("pldp.flows.server_app:create_app" in child.cmdline() for child in children)
    serving.process.send_signal(signal.SIGTERM)
    assert serving.process.wait(timeout=PATIENCE) == 0
    assert not (serving.home / "prefect" / "password").exists()
    assert psutil.wait_procs(children, timeout=PATIENCE)[1] == []
    said = serving.log.read_text()
    assert "Stopped." in said
    assert "leaked" not in said, "what the interpreters of runs say at their end is nothing for an operator"
