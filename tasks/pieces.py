"""Pieces: what the one pass over the source writes, and how they become partitions.

A row goes to the bucket of its key, in the order in which the source is read. A bucket is small enough to be sorted in
memory; sorted by its keys, which then are dropped, it is cut into partitions, and its pieces are deleted. So rows of a
partition stand in an order that says nothing of the source's, and nothing is stored twice.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pldp.tasks.partitions import write_partition
from pldp.tasks.run import Run

SORT_KEY, UNSTATED, WEIGHT = "sort_key", "unstated_", "weight_"
"""Columns of pieces: the key; why a choice is not stated, which is counted and dropped; a weight."""

BUCKETS = 64
FEW_ROWS, BUCKET_ROWS = 1 << 20, 1 << 21
"""More rows than few are dealt to so many buckets, in little memory each; more than they hold, to more of them."""

AT_ONCE = 2
"""Buckets that are sorted at a time."""

SHOWN_KEYS = 1000
"""Keys of two rows that are looked at again: hardly ever is one of them of two users."""


@dataclass(frozen=True)
class Layout:
    """How rows are dealt: to buckets, each of which is cut into as many partitions."""

    buckets: int
    cuts: int

    @classmethod
    def of(cls, partitions: int, rows: int) -> Layout:
        """At least so many partitions for so many rows."""
        buckets = min(partitions, BUCKETS) if rows <= FEW_ROWS else max(BUCKETS, -(-rows // BUCKET_ROWS))
        return cls(buckets, -(-partitions // buckets))

    @property
    def partitions(self) -> int:
        return self.buckets * self.cuts


@dataclass(frozen=True)
class Sorted:
    """What was seen of a bucket, or of all."""

    rows: int
    unplaced: bool
    """Whether a cell has no position."""
    twice: tuple[int, ...]
    """Keys that stand in two rows, the first few."""
    unstated: tuple[tuple[int, ...], ...]
    """For every column of choices, how many cells have which reason."""


def pieces_of(run: Run) -> Path:
    return run.vault.with_name("pieces")


def rows_of(pieces: Path, bucket: int) -> int:
    """How many rows a bucket's pieces hold, by what they say of themselves."""
    return sum(int(pq.read_metadata(path).num_rows) for path in _files(pieces, bucket))


def sort_pieces(run: Run, layout: Layout, reasons: int) -> Sorted:
    """Write the partitions of all buckets and delete their pieces; what was seen on the way.

    A bucket with a cell without a position is not written: the source is going to be refused. `reasons` is how many
    reasons there are why a choice is not stated.
    """
    pieces = pieces_of(run)
    schema = next(pq.read_schema(path) for i in range(layout.buckets) for path in _files(pieces, i))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        seen = list(pool.map(lambda i: _sort(run, schema, layout, i, reasons), range(layout.buckets)))
    shutil.rmtree(pieces)
    by_bucket = [one.unstated for one in seen]
    return Sorted(
        rows=sum(one.rows for one in seen),
        unplaced=any(one.unplaced for one in seen),
        twice=tuple(key for one in seen for key in one.twice)[:SHOWN_KEYS],
        unstated=tuple(tuple(map(sum, zip(*column, strict=True))) for column in zip(*by_bucket, strict=True)),
    )


def _sort(run: Run, schema: pa.Schema, layout: Layout, bucket: int, reasons: int) -> Sorted:
    pieces = pieces_of(run)
    table = pa.concat_tables([schema.empty_table(), *(_read(path) for path in _files(pieces, bucket))])
    keys = table.column(SORT_KEY).to_numpy()
    order = np.argsort(keys)
    keys = keys[order]
    kept = [name for name in schema.names if name != SORT_KEY and not name.startswith(UNSTATED)]
    unplaced = any(table.column(name).null_count for name in kept)
    if not unplaced:
        _cut(run, table.select(kept), order, layout, bucket)
    for path in _files(pieces, bucket):
        path.unlink()
    why = [table.column(name).to_numpy() for name in schema.names if name.startswith(UNSTATED)]
    return Sorted(
        rows=len(keys),
        unplaced=unplaced,
        twice=tuple(keys[1:][keys[1:] == keys[:-1]][:SHOWN_KEYS].tolist()),
        unstated=tuple(tuple(np.bincount(column, minlength=reasons).tolist()) for column in why),
    )


def _cut(run: Run, table: pa.Table, order: NDArray[np.intp], layout: Layout, bucket: int) -> None:
    """One column at a time, so that little is held twice."""
    columns = {name: table.column(name).to_numpy()[order] for name in table.column_names}
    for i, own in enumerate(_slices(len(order), layout.cuts)):
        cut = pa.table({name: column[own] for name, column in columns.items()}, schema=table.schema)
        write_partition(run.partition_file(bucket * layout.cuts + i), cut.to_batches(), table.schema)


def _slices(rows: int, cuts: int) -> Iterator[slice]:
    for i in range(cuts):
        yield slice(rows * i // cuts, rows * (i + 1) // cuts)


def _files(pieces: Path, bucket: int) -> Sequence[Path]:
    return sorted((pieces / f"bucket={bucket}").glob("*.parquet"))


def _read(path: Path) -> pa.Table:
    with pq.ParquetFile(path) as file:
        return file.read(use_threads=False)
