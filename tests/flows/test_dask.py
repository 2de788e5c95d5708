"""Releases on a Dask cluster: the same results, and nothing lost or counted twice when something dies."""

from __future__ import annotations

import json
import re
import signal
import stat
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import psutil
import pytest
from prefect import flow

import pldp.flows.cluster
from pldp.errors import HomeError
from pldp.flows.cluster import Cluster
from pldp.flows.evaluate import evaluate
from pldp.flows.pipeline import Outcome, conclude
from pldp.flows.release import release
from pldp.flows.runner import running_on
from pldp.spec.runner import Runner
from pldp.tasks.ingest import complete
from tests.faults.dying import SMALL_PARTITIONS, Point, start
from tests.flows.clusters import Running, Trigger, cluster, committed
from tests.flows.conftest import PATIENCE, Pldp
from tests.flows.searcher import files_under, find
from tests.flows.test_privacy import MARK
from tests.people import LEVELS, make_people, opened, world

pytestmark = pytest.mark.usefixtures("server", "small")

FILES = 2 * 3 * 4
"""Report files: attributes × levels × partitions."""


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pldp.tasks.ingest.PARTITION_CELLS", SMALL_PARTITIONS)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with cluster(tmp_path_factory.mktemp("cluster"), 2) as found:
        yield found


def gates(home: Path) -> dict[str, bool]:
    with duckdb.connect(str(home / "results.duckdb"), read_only=True) as results:
        return dict(results.execute("SELECT gate, passed FROM latest_validations").fetchall())


def check_published(home: Path, before: dict[str, str]) -> None:
    """Published, every partition counted once, and what was committed earlier is what was counted."""
    assert gates(home)["partitions_once"]
    assert all(gates(home).values())
    (counted,) = home.glob("releases/*/counted.json")
    assert json.loads(counted.read_text()) == {
        f"attribute={attribute}/level={level}": [0, 1, 2, 3] for attribute in ("job", "sex") for level in LEVELS
    }
    after = committed(home / "reports")
    assert len(after) == FILES
    assert before.items() <= after.items(), "committed reports were drawn again"


def listening(processes: list[psutil.Process]) -> set[str]:
    """Where anybody could connect to them."""
    found = [connection for process in processes for connection in process.net_connections(kind="tcp")]
    return {connection.laddr.ip for connection in found if connection.status == psutil.CONN_LISTEN}


def workers_of(process: psutil.Process) -> list[psutil.Process]:
    """Processes of a local cluster; Python's own tracker of them lives as long as its parent."""
    try:
        found = [(child, child.cmdline()) for child in process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []
    return [child for child, words in found if any("spawn_main" in word for word in words)]


def test_a_local_cluster_starts_publishes_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Looked at when all is counted: loopback only, the operator's folders alone, and no raw value in them."""
    marked = make_people(2000).with_columns(id=pl.format(f"{MARK.decode()}{{}}", "id"))
    spec, home = world(tmp_path, marked, runner={"dask": "local", "workers": 2}), tmp_path / "home"
    me = psutil.Process()
    others, before = listening([me]), set(workers_of(me))
    seen: dict[str, Any] = {}
    close = Cluster.close

    def look(own: Cluster) -> None:
        if threading.current_thread() is threading.main_thread():  # which waits for the end that another thread began
            return close(own)
        seen["address"] = own.join().scheduler.address
        seen["workers"] = [worker for worker in workers_of(me) if worker not in before]
        seen["listening"] = listening([me, *seen["workers"]]) - others
        folder = own.run.vault.with_name("workers")
        seen["modes"] = {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in [folder, *folder.rglob("*")]}
        seen["found"] = find([MARK], files_under(folder))
        seen["threads"] = own.join().run(pl.thread_pool_size)
        return close(own)

    monkeypatch.setattr(Cluster, "close", look)
    assert release(spec, home).status == "published"
    check_published(home, {})
    assert seen["address"].startswith("tls://127.0.0.1:")
    assert len(seen["workers"]) == 2
    assert seen["listening"] <= {"127.0.0.1"}
    assert seen["modes"] == {0}
    assert seen["found"] == []
    assert set(seen["threads"].values()) == {1}
    _, alive = psutil.wait_procs(seen["workers"], timeout=PATIENCE)
    assert alive == []
    assert [path.name for path in (home / "vault").iterdir()] == ["key"]
    assert json.loads(next(home.glob("releases/*/spec.json")).read_text()).keys().isdisjoint({"runner"}), (
        "where it ran is no part of what it is"
    )


def test_the_same_reports_make_the_same_estimates(running: Running, tmp_path: Path) -> None:
    """Secure reports, drawn on threads, concluded on threads and on the cluster: equal to the bit."""
    run, file = opened(world(tmp_path, retention={"vault": "keep"}), tmp_path / "home")
    assert release(file.path, tmp_path / "home").status == "published"
    ingested = complete(run.vault)
    assert ingested is not None

    @flow(persist_result=False)
    def again(dask: str | None) -> Outcome:
        with running_on(Runner(dask=dask), run):
            return conclude(run, ingested, None)

    here, there = again(None), again(running.address)
    ((mine,), (other,)) = here.results, there.results
    for ours, theirs in zip(mine.supports, other.supports, strict=True):
        assert np.array_equal(ours.counts, theirs.counts)
    for ours, theirs in zip(mine.histograms, other.histograms, strict=True):
        assert ours.unbiased.frequency.tobytes() == theirs.unbiased.frequency.tobytes()
    assert here.tables.keys() == there.tables.keys() >= {"histograms", "level_estimates", "budgets"}
    for name, table in here.tables.items():
        assert table.equals(there.tables[name]), name


def test_a_seeded_evaluation_draws_and_finds_the_same(running: Running, tmp_path: Path, seed: int) -> None:
    spec = world(tmp_path)
    elsewhere = world(tmp_path / "dask", runner={"dask": running.address})
    here = evaluate(spec, tmp_path / "home", repeat=0, seed=seed)
    there = evaluate(elsewhere, tmp_path / "dask" / "home", repeat=0, seed=seed)
    assert committed(here.folder / "reports") == committed(there.folder / "reports")
    assert here.tables["cells"].equals(there.tables["cells"])


def test_a_killed_worker_costs_only_what_it_had_in_flight(running: Running, tmp_path: Path) -> None:
    home, note = tmp_path / "home", tmp_path / "note"
    running.arm(Trigger("die", note, home / "reports"))
    assert release(world(tmp_path), home, runner={"dask": running.address}).status == "published"
    before = json.loads(note.read_text())
    assert 2 <= len(before) < FILES
    check_published(home, before)


def test_an_error_in_a_worker_comes_back_without_the_row(
    running: Running, tmp_path: Path, pldp: Pldp, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    running.arm(Trigger("fail", tmp_path / "note", home / "reports"))
    said = pldp("release", world(tmp_path), "--home", home, "--runner", running.address)
    assert said.code == 3
    assert "Stage perturb_together failed (ValueError)" in said.err
    assert "run the same command again to resume" in said.err
    assert MARK.decode() not in said.err + said.out
    running.rest()
    assert find([MARK], files_under(home)) == []
    before = committed(home / "reports")
    assert pldp("release", tmp_path / "spec.yaml", "--home", home, "--runner", "threads").code == 0
    check_published(home, before)


def test_a_lost_scheduler_is_told_and_the_release_resumes(tmp_path: Path, pldp: Pldp) -> None:
    home, note = tmp_path / "home", tmp_path / "note"
    with cluster(tmp_path, 1) as own:
        own.arm(Trigger("kill the scheduler", note, home / "reports", own.pid))
        said = pldp("release", world(tmp_path), "--home", home, "--runner", own.address)
    assert said.code == 3
    assert f"Stage perturb failed (the Dask scheduler at {own.address} was lost)." in said.err
    assert "nothing of this one was published; run the same command again to resume" in said.err
    assert "and nothing is drawn or spent twice." in said.err
    before = json.loads(note.read_text())
    assert before
    assert pldp("release", tmp_path / "spec.yaml", "--home", home).code == 0
    check_published(home, before)


def test_a_scheduler_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pldp.flows.cluster, "CONNECT_SECONDS", 0.5)
    with pytest.raises(
        HomeError, match=r"at tcp://127\.0\.0\.1:1 does not answer .*run the same command again to resume"
    ):
        release(world(tmp_path), tmp_path / "home", runner={"dask": "tcp://127.0.0.1:1"})


def test_a_cluster_that_ended_before_it_began_does_not_start(tmp_path: Path) -> None:
    """What begins it runs beside whatever fails meanwhile; nobody would stop its workers."""
    run, _ = opened(world(tmp_path), tmp_path / "home")
    ended = Cluster(Runner(dask="local", workers=1), run)
    ended.close()
    with pytest.raises(ValueError, match="does not start again"):
        ended.join()


def test_workers_of_another_version_are_refused(
    running: Running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pldp.flows.cluster, "__version__", "0.0.1")
    with pytest.raises(HomeError, match=r"worker tcp://\S+ has pldp .*, not 0\.0\.1"):
        release(world(tmp_path), tmp_path / "home", runner={"dask": running.address})
    assert committed(tmp_path / "home" / "reports") == {}
    assert not (tmp_path / "home" / "ledger.jsonl").exists(), "nothing was spent"


@pytest.mark.parametrize("unseen", ["people.parquet", "people/*.parquet", "home"])
def test_workers_that_do_not_see_what_they_share_are_refused(running: Running, tmp_path: Path, unseen: str) -> None:
    """They read the source themselves, and write to the home."""
    run, _ = opened(world(tmp_path), tmp_path / "home")
    elsewhere = replace(run.inputs[0], path=str(tmp_path / "elsewhere" / unseen))
    other = replace(run, root=elsewhere.path) if unseen == "home" else replace(run, inputs=(elsewhere,))
    with pytest.raises(
        HomeError, match=rf"worker tcp://\S+ does not see {re.escape(elsewhere.path)}.* every worker sees"
    ):
        Cluster(Runner(dask=running.address), other).join()
    sees = Cluster(Runner(dask=running.address), run)
    sees.join()
    sees.close()


@pytest.mark.parametrize(
    ("options", "rule"),
    [
        (["--runner", "ray"], "runner.dask must be local, or the address of a scheduler"),
        (["--runner", "dask", "--workers", "0"], "runner.workers: input should be greater than or equal to 1 (got 0)"),
        (["--workers", "2"], "workers goes with dask: local"),
        (["--memory", "1 MB"], "runner.memory must be a size of at least 512 MB"),
    ],
)
def test_a_runner_that_breaks_a_rule(options: list[str], rule: str, tmp_path: Path, pldp: Pldp) -> None:
    said = pldp("release", world(tmp_path), "--home", tmp_path / "home", *options)
    assert said.code == 2
    assert rule in said.err
    assert "Nothing was run." in said.err


def test_a_killed_client_leaves_no_workers_and_resumes(tmp_path: Path, pldp: Pldp) -> None:
    """SIGKILL once a few calls are done: its workers go by themselves, and threads finish the release."""
    spec, home = world(tmp_path), tmp_path / "home"
    home.mkdir()
    point = Point("pldp.flows.runner:report", "after", 3, given="perturb")
    options = ("--home", home, "--runner", "dask", "--workers", "1")
    process = start(home / "said", "release", spec, *options, point=point)
    workers: set[psutil.Process] = set()
    while process.is_alive():
        workers |= set(workers_of(psutil.Process(process.pid)))
        time.sleep(0.05)
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL, (home / "said").read_text()
    assert workers
    _, alive = psutil.wait_procs(list(workers), timeout=PATIENCE)
    assert alive == []
    before = committed(home / "reports")
    assert len(before) > 0
    assert pldp("release", spec, "--home", home).code == 0
    check_published(home, before)
    assert [path.name for path in (home / "vault").iterdir()] == ["key"]


def test_a_terminated_client_leaves_nothing_in_the_vault(tmp_path: Path) -> None:
    """SIGTERM in the middle: workers stop, and their folder goes."""
    spec, home = world(tmp_path), tmp_path / "home"
    home.mkdir()
    process = start(home / "said", "release", spec, "--home", home, "--runner", "dask", "--workers", "1")
    until = time.monotonic() + PATIENCE
    while not list(home.glob("vault/*/workers/*")) and time.monotonic() < until:
        time.sleep(0.02)
    workers = workers_of(psutil.Process(process.pid))
    process.terminate()
    process.join(PATIENCE)
    assert process.exitcode not in (None, 0)
    _, alive = psutil.wait_procs(workers, timeout=PATIENCE)
    assert alive == []
    assert list(home.glob("vault/*/workers")) == []
