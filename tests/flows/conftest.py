"""One Prefect server for all tests of flows, the command line as a function, and what releases of any kind must do."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from pldp.flows.cli import main
from pldp.flows.own_server import OwnServer
from pldp.flows.release import Released, release
from tests.people import digests, make_people, world

ROOT = Path(__file__).parents[2]
DATA = ROOT.parent / "shared" / "data"
"""Real data, beside the repository or not there."""
PATIENCE = 180
"""Seconds until something that takes a few is given up."""


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a server that in-process flows and commands in other processes share: one as commands start it.

    Flows in this process tell it how they fare, and no events of every task: commands in processes of their own do.
    """
    configured = os.environ.get("PREFECT_API_URL")
    if configured:
        yield configured
        return
    from prefect.settings import PREFECT_SERVER_EPHEMERAL_ENABLED, temporary_settings

    from pldp.flows.orchestration import alone_with

    own = OwnServer(tmp_path_factory.mktemp("server"))
    shared = {"PREFECT_API_URL": own.url, "PREFECT_API_AUTH_STRING": own.password}
    try:
        own.wait()
        os.environ.update(shared)
        settings = alone_with(own) | {PREFECT_SERVER_EPHEMERAL_ENABLED: False}
        with temporary_settings(settings), pytest.MonkeyPatch.context() as patch:
            patch.setattr("prefect.events.utilities.should_emit_events", lambda: False)
            yield own.url
    finally:
        for name in shared:
            os.environ.pop(name, None)
        own.stop()


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str


Pldp = Callable[..., Said]


@pytest.fixture
def pldp(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Pldp:
    """Run a command as the console script does, in this process."""

    def run(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["pldp", *map(str, arguments)])
        # Prefect is imported already: a server need not start before a flow asks for one.
        monkeypatch.setattr("pldp.flows.server.run_server", lambda home: None)
        capfd.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = int(stop.code or 0)
        said = capfd.readouterr()
        assert "Traceback" not in said.err + said.out
        return Said(code, said.out, said.err)

    return run


@dataclass(frozen=True)
class Finished:
    spec: Path
    home: Path
    done: Released


@pytest.fixture(scope="session")
def finished(server: str, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """A release for tests that only look."""
    folder = tmp_path_factory.mktemp("finished")
    before = os.umask(0o022)
    spec = world(folder, make_people(3000), retention={"vault": "keep"})
    done = release(spec, folder / "home")
    os.umask(before)
    return Finished(spec, folder / "home", done)


def ended(spec: Path, status: str = "published") -> tuple[Path, str]:
    """A release that ended so, and has its page: its home, beside the spec, and its id."""
    home = spec.parent / "home"
    done = release(spec, home)
    assert done.status == status
    assert done.page_problem is None
    return home, done.release_id


def resumes(home: Path, release_id: str) -> None:
    """The same spec again is the same release, and draws nothing."""
    before = digests(home / "reports")
    again = release(home.parent / "spec.yaml", home)
    assert (again.release_id, again.resumed) == (release_id, True)
    assert digests(home / "reports") == before


def broken_off(spec: Path, stage: str, monkeypatch: pytest.MonkeyPatch) -> tuple[int, int]:
    """A release that breaks off at a stage and is run again keeps what was drawn, and spends once.

    How many report files there were when it broke off, and in the end.
    """
    home = spec.parent / "home"

    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(stage, broken)
        with pytest.raises(KeyboardInterrupt):
            release(spec, home)
    before = digests(home / "reports")
    done = release(spec, home)
    assert done.status == "published"
    assert not done.resumed
    after = digests(home / "reports")
    assert {name: after[name] for name in before} == before
    assert len((home / "ledger.jsonl").read_text().splitlines()) == 1
    return len(before), len(after)
