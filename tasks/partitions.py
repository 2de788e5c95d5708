"""Partitions: the vault's rows as files, one a partition, and all that a worker reads of the vault.

Any process that sees the folder can read one, while the vault's database lets in a single machine. Rows hold positions
and follow the keyed hash of the user id; the hash itself stays behind.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from pldp.spec.runner import Runner
from pldp.tasks.run import Run

BYTES_A_CELL = 16
"""Above the most that perturbing or counting holds a cell: 10 with hashes of two values, below 2 from 100 values on."""

IDLE_WORKER, IDLE = 384 * 10**6, 720 * 10**6
"""Bytes of a worker, and of a process that does everything, when they have loaded their libraries and done nothing."""

LEAST_CELLS, MOST_CELLS = 1 << 20, 1 << 27


def cells_within(runner: Runner, default: int) -> int:
    """Cells of a partition, by the memory that the runner's processes may hold; the default where nothing is said."""
    if runner.memory is None:
        return default
    idle, at_once = (IDLE_WORKER, 1) if runner.dask is not None else (IDLE, os.cpu_count() or 1)
    return min(max((runner.memory - idle) // at_once // BYTES_A_CELL, LEAST_CELLS), MOST_CELLS)


def write_partition(path: Path, batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> int:
    """Write a partition's rows; how many they are. They are not on disk yet: see Syncs."""
    path.parent.mkdir(exist_ok=True, mode=0o700)
    rows = 0
    # Nothing is packed: the file is read a few times and deleted, and packing takes as long as sorting.
    plain: dict[str, Any] = {"compression": "none", "write_statistics": False, "use_dictionary": False}
    with path.open("wb") as handle, pq.ParquetWriter(handle, schema, **plain) as writer:
        for batch in batches:
            writer.write_batch(batch)
            rows += len(batch)
    return rows


def rows_in(run: Run, partitions: int) -> int:
    """How many rows the files hold together."""
    return sum(int(pq.read_metadata(run.partition_file(i)).num_rows) for i in range(partitions))


def read_partition(run: Run, partition: int, columns: Sequence[str]) -> pl.DataFrame:
    """Columns of one partition, in the order of the keys."""
    path = run.partition_file(partition)
    return pl.read_parquet(path, columns=list(columns), memory_map=False, hive_partitioning=False, glob=False)
