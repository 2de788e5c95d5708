"""Partitions: every row once, in the order of the keys, in files that say nothing of the keys."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import pldp.tasks.buckets
import pldp.tasks.ingest
from pldp.errors import StageFailed
from pldp.spec.runner import Runner
from pldp.tasks.ingest import Ingested, ingest
from pldp.tasks.partitions import (
    BYTES_A_CELL,
    IDLE,
    IDLE_WORKER,
    LEAST_CELLS,
    MOST_CELLS,
    cells_within,
    read_partition,
    write_partition,
)
from tests.people import JOBS, LEVELS, SEXES, make_people, mode, opened, world


def test_the_files_hold_everybodys_positions_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", 3000)
    run, file = opened(world(tmp_path), tmp_path / "home")
    assert ingest.fn(run, file) == Ingested(2000, 6)
    names = ["value_0", "value_1", "level_0"]
    found = [read_partition(run, partition, names) for partition in range(6)]
    rows = sorted(zip(*(np.concatenate([part[name] for part in found]).tolist() for name in names), strict=True))
    people = make_people(2000).select("job", "sex", "level")
    assert rows == sorted((JOBS.index(a), SEXES.index(b), LEVELS.index(c)) for a, b, c in people.iter_rows())
    for partition in range(6):
        path = run.partition_file(partition)
        assert pq.read_schema(path).names == names
        assert mode(path) == 0o600
    assert mode(path.parent) == 0o700


def test_partitions_that_do_not_hold_everybody_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A scan that ends early says nothing by itself."""
    run, file = opened(world(tmp_path), tmp_path / "home")
    monkeypatch.setattr(
        pldp.tasks.buckets, "write_partition", lambda path, rows, schema: write_partition(path, [], schema)
    )
    with pytest.raises(StageFailed, match="Stage ingest failed"):
        ingest.fn(run, file)
    assert not run.vault.exists()


def test_partitions_are_fixed_by_ingest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A rerun with other settings takes the partitions that are there: reports of them may be drawn."""
    run, file = opened(world(tmp_path), tmp_path / "home")
    first = ingest.fn(run, file)
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", 1000)
    assert ingest.fn(run, file) == first


def test_a_rerun_after_a_kill_amid_partitions_deals_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, file = opened(world(tmp_path), tmp_path / "home")
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", 3000)
    stray = run.partition_file(77)
    stray.parent.mkdir()
    stray.write_bytes(b"half")
    assert ingest.fn(run, file).partitions == 6
    assert sorted(path.name for path in stray.parent.iterdir()) == [f"{i:05d}.parquet" for i in range(6)]


def test_partitions_are_sized_by_the_memory_that_is_stated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert cells_within(Runner(), 1234) == 1234
    one = cells_within(Runner.model_validate({"dask": "local", "memory": "2 GB"}), 1234)
    assert one == (2 * 10**9 - IDLE_WORKER) // BYTES_A_CELL
    assert cells_within(Runner.model_validate({"memory": "2 GB"}), 1234) == (2 * 10**9 - IDLE) // 4 // BYTES_A_CELL
    assert cells_within(Runner.model_validate({"dask": "local", "memory": "512 MB"}), 1) >= LEAST_CELLS
    assert cells_within(Runner.model_validate({"memory": "9 TB"}), 1) == MOST_CELLS
