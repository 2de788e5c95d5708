"""Starting: what a command imports, and the server that starts before the spec is read."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import polars as pl
import psutil
import pytest
from rich.console import Console

from pldp.errors import HomeError
from pldp.flows import orchestration, server
from pldp.flows.progress import listening, reported, shown
from tests import baskets
from tests.flows.conftest import PATIENCE, Finished
from tests.people import world

HEAVY = (
    "great_expectations",
    "prefect",
    "altair",
    "scipy.stats",
    "scipy.optimize",
    "scipy",
    "polars",
    "duckdb",
    "numpy",
    "pydantic",
    "scipy.linalg",
    "scipy.sparse",
    "pyarrow",
    "pldp.questions.histograms.page",
)
_LOADED = """
import sys
from pldp.flows.cli import main
sys.argv = ["pldp", *sys.argv[1:]]
try:
    main()
finally:
    print("loaded:", *(name for name in {heavy} if name in sys.modules))
"""


_FIRST = """
import os, sys
from contextlib import contextmanager
from pldp.flows import cli, progress

def first(stage, done, total):
    print("first:", stage, done, *(name for name in {heavy} if name in sys.modules), flush=True)
    os._exit(0)

@contextmanager
def shown(console):
    with progress.listening(first):
        yield

progress.shown = shown
sys.argv = ["pldp", *sys.argv[1:]]
cli.main()
"""


def loaded(*words: object) -> set[str]:
    """The heavy libraries that a command imports."""
    command = [sys.executable, "-c", _LOADED.format(heavy=HEAVY), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    return set(done.stdout.splitlines()[-1].removeprefix("loaded:").split())


@pytest.mark.parametrize("words", [["--help"], ["--version"], ["release", "--help"]])
def test_help_loads_nothing(words: list[str]) -> None:
    assert loaded(*words) <= ({"pydantic"} if words != ["--help"] else set())  # Typer reads options with it


def test_a_plan_loads_no_orchestration_and_no_gates(tmp_path: Path) -> None:
    slow = {"great_expectations", "prefect", "altair", "scipy.stats", "scipy.optimize", "scipy.linalg", "scipy.sparse"}
    slow |= {"duckdb", "pyarrow", "pldp.questions.histograms.page"}
    assert loaded("plan", world(tmp_path)).isdisjoint(slow)


def test_a_plan_of_the_sample_loads_no_optimiser(tmp_path: Path) -> None:
    """Its budget is split by the noise of several attributes, which takes a root."""
    loaded("sample", tmp_path)
    assert "scipy.optimize" not in loaded("plan", tmp_path / "sample.yaml")


def test_a_look_at_a_release_loads_only_what_reads_it(finished: Finished) -> None:
    found = loaded("show", finished.done.release_id, "--home", finished.home)
    assert found.isdisjoint({"great_expectations", "prefect", "altair", "scipy", "pldp.questions.histograms.page"})
    assert "duckdb" in found, "this test can fail"


@pytest.mark.parametrize("command", ["release", "evaluate"])
def test_progress_shows_before_anything_heavy_loads(command: str, tmp_path: Path) -> None:
    """A command that takes long says so at once, not after seconds of imports."""
    words = [sys.executable, "-c", _FIRST.format(heavy=HEAVY), command, "spec.yaml", "--home", "home"]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=PATIENCE, cwd=tmp_path)
    assert set(done.stdout.split()) <= {"first:", "read", "0", "pydantic"}  # Typer reads options with it
    assert done.stdout.startswith("first: read 0")


def test_a_bar_of_reading_goes_where_a_spec_is_bad(capsys: pytest.CaptureFixture[str]) -> None:
    for stage, left in (("read", False), ("ingest", True)):
        with pytest.raises(HomeError), shown(Console(stderr=True)), reported(stage):
            raise HomeError("not now")
        said = capsys.readouterr().err
        assert (stage in said) is left
        assert (said == "") is not left


_AS_LARGE = """
import sys
import pldp.tasks.check
from pldp.flows.cli import main
pldp.tasks.check.MOST_BYTES = 0
sys.argv[0] = "pldp"
main()
"""
"""The command, when it leaves the cells of every source to ingest, as it does those of large ones."""


def release(spec: Path, home: Path, *start: str) -> subprocess.CompletedProcess[str]:
    began = start or ("-m", "pldp.flows.cli")
    words = [sys.executable, "-P", *began, "release", str(spec), "--home", str(home)]
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT", "PLDP"))}
    return subprocess.run(words, env=kept, capture_output=True, text=True, check=False, timeout=PATIENCE)


def working_in(folder: Path) -> list[int]:
    """Processes that have this working folder."""
    return [process.pid for process in psutil.process_iter(["cwd"]) if process.info["cwd"] == str(folder)]


def test_a_bad_spec_ends_the_server_of_a_used_home(tmp_path: Path) -> None:
    """It was started before the spec was read, and must be gone with the command."""
    spec, home = world(tmp_path, budget={"total": -1}), tmp_path / "home"
    (home / "prefect").mkdir(parents=True, mode=0o700)
    done = release(spec, home)
    assert done.returncode == 2
    assert "budget" in done.stderr
    assert (home / "prefect" / "run.log").exists(), "no server was started"
    assert (home / "prefect" / "run.log").stat().st_mode & 0o077 == 0
    assert working_in(home / "prefect") == []
    assert sorted(path.name for path in home.iterdir()) == ["prefect"]


def test_a_run_that_fails_ends_with_our_own_words(tmp_path: Path) -> None:
    """Prefect sends what failed to the server, which has ended by then, and tells the operator of that."""
    rows = pl.DataFrame({"user": ["user-1", "user-2"], "item": ["milk", None]})
    sections = {"holds": "one", "itemsets": {"minimum_support": 0.1, "length": 1}, "users": None, "levels": None}
    done = release(baskets.world(tmp_path, 2, rows, **sections), tmp_path / "home", "-c", _AS_LARGE)
    assert done.returncode == 2
    said = " ".join(done.stderr.split())
    assert said.endswith("a user has no value. Give every user one, or declare `missing`. Nothing was perturbed."), said


def test_a_bad_spec_makes_no_home(tmp_path: Path) -> None:
    spec = world(tmp_path, budget={"total": -1})
    done = release(spec, tmp_path / "home")
    assert done.returncode == 2
    assert not (tmp_path / "home").exists()


def test_only_a_used_home_has_an_early_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Path] = []
    monkeypatch.setattr(server, "run_server", started.append)
    server.start_early(tmp_path / "home")
    assert started == []
    assert not (tmp_path / "home").exists()
    (tmp_path / "home" / "prefect").mkdir(parents=True)
    server.start_early(tmp_path / "home")
    assert started == [tmp_path / "home"]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to be another user too")
@pytest.mark.parametrize("owned", [".", "prefect"])
def test_a_home_of_another_user_has_none(owned: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefect would take from there which server to obey. That it is another's is told after the spec was read."""
    home = tmp_path / "home"
    (home / "prefect").mkdir(parents=True)
    os.chown(home / owned, 65534, 65534)
    monkeypatch.setattr(server, "OwnServer", lambda folder: pytest.fail("a server was started"))
    monkeypatch.setattr(server, "_own", None)
    for name in [name for name in os.environ if name.startswith("PREFECT_")]:
        monkeypatch.delenv(name)
    server.start_early(home)


def test_what_is_wrong_with_a_home_is_told_in_its_turn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(home: Path) -> None:
        raise HomeError("not now")

    (tmp_path / "prefect").mkdir()
    monkeypatch.setattr(server, "run_server", refused)
    server.start_early(tmp_path)


def test_gates_are_loaded_while_the_server_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the wait is reported. A module that does not load is left to whoever needs it."""
    order: list[str] = []

    loaded_gates = threading.Event()

    class Starting:
        url, password, has_ended = "http://127.0.0.1:9/api", "pldp:x", False

        def wait(self) -> None:
            assert loaded_gates.wait(PATIENCE)
            order.append("answered")

    def load(module: str) -> None:
        order.append(module)
        loaded_gates.set()
        raise ImportError

    monkeypatch.setattr(orchestration, "run_server", lambda home: Starting())
    monkeypatch.setattr(orchestration, "import_module", load)
    reported: list[tuple[str, int]] = []
    with (
        listening(lambda stage, done, total: reported.append((stage, done))),
        orchestration.orchestrated(tmp_path, loading=["gates"]),
    ):
        order.append("flow")
    assert order == ["gates", "answered", "flow"]
    assert reported == [("start", 0), ("start", 1)]
