"""Closing a slot: whoever else uses the inbox, however much came in."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pldp.client.plan import Plan
from pldp.errors import HomeError
from pldp.tasks.collector import boxes
from pldp.tasks.collector.closing import close_slot
from pldp.tasks.collector.manifest import Manifest
from pldp.tasks.collector.owner import close_as_owner, forget_as_owner
from pldp.tasks.collector.store import Outcome, Store, database
from tests.people import mode
from tests.pldp.client import plans
from tests.tasks.collector.test_store import message

NOBODY = 65534


@pytest.fixture
def plan() -> Plan:
    return plans.collection(plans.histograms())


@pytest.fixture
def reachable() -> Iterator[Path]:
    """A folder that other users may pass through, as pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o711)
        yield Path(name)


def test_a_lock_that_is_not_let_go_is_told(tmp_path: Path, plan: Plan) -> None:
    with Store(tmp_path, database(tmp_path, 0)) as store:
        store.put([message(plan)])
        began = time.monotonic()
        with pytest.raises(HomeError, match="another process holds it and does not let go"):
            close_slot(tmp_path, "monday", plan, patience=0.3)
        assert time.monotonic() - began < 10
    assert Manifest.read(close_slot(tmp_path, "monday", plan)) == Manifest(1, {}), "and goes on where it stopped"


def test_files_of_a_shared_folder_are_shared(tmp_path: Path, plan: Plan) -> None:
    """A folder whose group may write: collector and release are members of it."""
    folder = tmp_path / "inbox"
    folder.mkdir()
    folder.chmod(0o2770)
    with Store(folder, database(folder, 0)) as store:
        store.put([message(plan)])
        assert {mode(path) for path in folder.iterdir()} == {0o660}
    closed = close_slot(folder, "monday", plan)
    assert {mode(path) & 0o777 for path in folder.rglob("*") if path.is_file()} == {0o660}
    assert {mode(path) & 0o777 for path in (closed.parent, *closed.rglob("*")) if path.is_dir()} == {0o770}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_root_closes_the_inbox_of_a_collector_of_nobody(plan: Plan, reachable: Path) -> None:
    """A process of nobody's holds the database, as a collector does; it must see that the slot is closed."""
    folder = reachable / "inbox"
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    folder.chmod(0o700)
    with Store(folder, database(folder, 0)) as store:  # by root, before the collector
        store.put([message(plan)])
    holder = subprocess.Popen(
        ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", sys.executable, "-c", HOLDER, folder],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "holds\n"
    closed = close_as_owner(folder, "monday", plans.signed(plans.document(plans.histograms())))
    out, _ = holder.communicate(timeout=60)
    assert (out, holder.returncode) == ("let go\n", 0)
    assert Manifest.read(closed) == Manifest(1, {})
    assert {(path.stat().st_uid, mode(path) & 0o077) for path in folder.rglob("*")} == {(NOBODY, 0)}


HOLDER = """
import sys, time, pathlib
from pldp.tasks.collector.store import Outcome, Store, database, opened
folder = pathlib.Path(sys.argv[1])
with Store(folder, database(folder, 0)):
    print("holds", flush=True)
    while opened(folder) == 0:
        time.sleep(0.05)
Store(folder, database(folder, 0 + opened(folder)), wait=30).close()
print("let go")
"""


def test_many_messages_take_turns_in_memory(tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """With room for a few rows the files hold the same reports; a box of many rows has several files."""
    monkeypatch.setattr(boxes, "_HELD", 7)
    monkeypatch.setattr(boxes, "_ROWS", 30)
    sent = [message(plan, level="low") for _ in range(100)]
    with Store(tmp_path, database(tmp_path, 0)) as store:
        store.put(sent)
    closed = close_slot(tmp_path, "monday", plan)
    files = sorted((closed / "attribute=meal" / "level=low").iterdir())
    rows = [pl.read_parquet(path, hive_partitioning=False)["report"].to_numpy() for path in files]
    assert [len(part) for part in rows] == [30, 30, 30, 10]
    wanted = [int(one.content.split(b"[")[3].split(b"]")[0]) for one in sent]
    assert np.array_equal(np.sort(np.concatenate(rows)), np.sort(wanted))
    assert not (closed / ".spool").exists()


def test_a_message_counts_once_over_all_slots_of_its_plan(tmp_path: Path, plan: Plan) -> None:
    sent = [message(plan) for _ in range(5)]
    lives = replace(plan, expires=datetime.now(UTC) + timedelta(hours=1))
    for slot in range(3):
        with Store(tmp_path, database(tmp_path, slot)) as store:
            assert store.put(sent[: slot + 1]) == [Outcome.REPEATED] * slot + [Outcome.STORED]
        assert Manifest.read(close_slot(tmp_path, str(slot), lives)) == Manifest(1, {})
        left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
        assert not any(one.id in left or one.id.hex().encode() in left for one in sent)
    over = replace(plan, expires=datetime.now(UTC))
    close_slot(tmp_path, "last", over)
    with Store(tmp_path, database(tmp_path, 4)) as store:
        assert list(store.keys()) == [], "after that nobody is answered, and nothing is kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_root_follows_no_link_of_the_collectors_user(reachable: Path) -> None:
    """It once gave away whatever a link in place of the inbox's files led to, and closed it to others."""
    body = plans.document(plans.histograms())
    theirs = reachable / "theirs"
    theirs.mkdir(mode=0o755)
    (theirs / "file").write_text("of root")
    (theirs / "file").chmod(0o644)
    for name in ("closed", "closing.lock", "inbox-0.sqlite"):
        folder = reachable / f"inbox {name}"
        folder.mkdir()
        os.chown(folder, NOBODY, NOBODY)
        (folder / name).symlink_to(theirs if name == "closed" else theirs / "file")
        with pytest.raises(HomeError, match=f"{name}: is a link, and nothing that lies in an inbox is one"):
            close_as_owner(folder, "monday", plans.signed(body))
        assert {(path.stat().st_uid, mode(path) & 0o777) for path in theirs.iterdir()} == {(0, 0o644)}
        assert (theirs.stat().st_uid, mode(theirs) & 0o777) == (0, 0o755)
        assert [path.read_text() for path in theirs.iterdir()] == ["of root"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_root_works_in_anothers_inbox_as_that_user(
    plan: Plan, reachable: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closed, released and forgotten: all that is there is that user's, who is told nothing of root's environment."""
    monkeypatch.setenv("PGPASSWORD", "not for nobody")
    folder = reachable / "inbox"
    seen: list[dict[str, Any]] = []
    folder.mkdir()
    os.chown(folder, NOBODY, NOBODY)
    with Store(folder, database(folder, 0)) as store:
        store.put([message(plan)])
    run = subprocess.run

    def watched(*words: Any, **named: Any) -> Any:
        seen.append(named)
        return run(*words, **named)

    monkeypatch.setattr(subprocess, "run", watched)
    closed = close_as_owner(folder, "monday", plans.signed(plans.document(plans.histograms())))
    assert Manifest.read(closed) == Manifest(1, {})
    forget_as_owner(folder, closed, "release-1")
    assert [path.name for path in closed.iterdir()] == ["released.json"]
    assert {(path.stat().st_uid, mode(path) & 0o077) for path in folder.rglob("*")} == {(NOBODY, 0)}
    assert len(seen) == 2
    assert not any("PGPASSWORD" in one["env"] for one in seen)
