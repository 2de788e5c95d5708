"""One Prefect server for all tests of flows, and the command line as a function."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from flows.cli import main
from flows.release import Released, release
from tests.people import make_people, world

PATIENCE = 180
"""Seconds until something that takes a few is given up."""


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The URL of a server that in-process flows and commands in other processes share."""
    given = os.environ.get("PREFECT_API_URL")
    if given:
        yield given
        return
    from prefect.settings import PREFECT_API_URL
    from prefect.testing.utilities import prefect_test_harness

    with prefect_test_harness(server_startup_timeout=PATIENCE):
        url = str(PREFECT_API_URL.value())
        os.environ["PREFECT_API_URL"] = url
        yield url
        del os.environ["PREFECT_API_URL"]


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
