"""Analysts who hold the results open, read-only or read-write: they block nobody, and nobody sees half a release."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.conftest import Place, read
from tests.faults.dying import SMALL_PARTITIONS
from tests.flows.conftest import PATIENCE, Pldp
from tests.tasks.published import publish_by_hand

HOLD = """
import sys, duckdb
results = duckdb.connect(sys.argv[1], read_only=sys.argv[2] == "read-only")
if sys.argv[2] == "write":
    results.execute("CREATE TABLE mine AS SELECT 1 AS i")
print("open", flush=True)
sys.stdin.readline()
if sys.argv[2] == "write":
    results.execute("INSERT INTO mine VALUES (2)")
print(results.execute("SELECT count(*) FROM releases").fetchone()[0], flush=True)
"""


@contextmanager
def holding(home: Path, how: str) -> Iterator[subprocess.Popen[str]]:
    analyst = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(home / "results.duckdb"), how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert analyst.stdout is not None
    if analyst.stdout.readline() != "open\n":
        analyst.wait(PATIENCE)
        pytest.skip("only who may write everywhere can open a read-only file to write")
    yield analyst
    analyst.kill()
    analyst.wait(PATIENCE)


@pytest.mark.parametrize(
    ("how", "ending"),
    [
        ("read-write", "closed"),
        pytest.param("read-only", "closed", marks=pytest.mark.slow),
    ],
)
def test_results_held_open(how: str, ending: str, place: Place, pldp: Pldp, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the analyst does to the file, the next is published, and everybody who opens it sees the right data."""
    monkeypatch.setattr("pldp.tasks.ingest.PARTITION_CELLS", SMALL_PARTITIONS)
    with holding(place.home, how) as analyst:
        said = pldp("release", place.spec, "--home", place.home, "--slot", "held")
        assert said.code == 0, said.err
        assert place.check_whole() == 2
        if ending == "closed":
            out, _ = analyst.communicate("\n", timeout=PATIENCE)
            assert out == "1\n", "an open file stays as it was"
    place.check_done(place.opened("held"))


def test_results_that_somebody_writes_to(place: Place, pldp: Pldp, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log beside the results stops a release before it draws, until it is moved away; then all is as it was."""
    monkeypatch.setattr("pldp.tasks.ingest.PARTITION_CELLS", SMALL_PARTITIONS)
    with holding(place.home, "write"):
        said = pldp("release", place.spec, "--home", place.home, "--slot", "held")
        assert said.code == 3
        assert "results-1.duckdb.wal: a write-ahead log stands beside the published results" in said.err
    (place.home / "results-1.duckdb.wal").unlink()
    assert place.spent(place.opened("held")) == 0
    assert read(place.home) == place.earlier
    assert pldp("release", place.spec, "--home", place.home, "--slot", "held").code == 0
    place.check_done(place.opened("held"))


def test_a_finished_release_is_found_while_its_results_are_locked(place: Place, pldp: Pldp) -> None:
    with holding(place.home, "read-write"):
        said = pldp("release", place.spec, "--home", place.home, "--slot", "earlier")
        assert said.code == 0, said.err
        assert "is there already; nothing was drawn" in said.out
    assert read(place.home) == place.earlier


READ = """
import sys, duckdb
seen = set()
while sys.argv[2] not in seen:
    with duckdb.connect(sys.argv[1], read_only=True) as results:
        found = results.execute(
            "SELECT (SELECT count(*) FROM releases), "
            + ", ".join(f"(SELECT count(*) FROM {table})" for table in sys.argv[3:])
            + ", (SELECT count(*) FROM latest_histograms)"
        ).fetchone()
    if str(found[0]) not in seen:
        seen.add(str(found[0]))
        print(*found, flush=True)
"""


@pytest.mark.parametrize("publications", [6, pytest.param(20, marks=pytest.mark.slow)])
def test_a_reader_during_many_publications_never_sees_half(publications: int, tmp_path: Path) -> None:
    home, _ = publish_by_hand(tmp_path, "first")
    tables = ("histograms", "level_estimates", "budgets", "validations")
    reader = subprocess.Popen(
        [sys.executable, "-c", READ, str(home / "results.duckdb"), str(publications), *tables],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert reader.stdout is not None
    lines = [reader.stdout.readline()]
    for slot in range(2, publications + 1):
        publish_by_hand(tmp_path, f"slot-{slot}")
    rest, _ = reader.communicate(timeout=PATIENCE)
    assert reader.returncode == 0
    seen = [[int(number) for number in line.split()] for line in (lines + rest.splitlines())]
    one = seen[0][1:]
    assert seen[0][0] == 1
    assert seen[-1][0] == publications
    for releases, *rows, latest in seen:
        assert [*rows, latest] == [*(releases * n for n in one[:-1]), one[-1]]


def test_old_files_go_with_what_was_left_beside_them(tmp_path: Path) -> None:
    home, _ = publish_by_hand(tmp_path, "first")
    publish_by_hand(tmp_path, "second")
    (home / "results-1.duckdb.wal").write_bytes(b"left by somebody who wrote and died")
    for slot in range(3):
        publish_by_hand(tmp_path, f"slot-{slot}")
    assert sorted(path.name for path in home.glob("results-*")) == [f"results-{n}.duckdb" for n in (3, 4, 5)]
