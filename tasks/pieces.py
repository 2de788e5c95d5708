"""Pieces: what the one pass over a source writes, dealt to buckets by a keyed hash of the user id.

A row goes to the bucket of its key, in the order in which the source is read: its numbers, one after another, are
appended to the bucket's file. Every table of a source has pieces of its own, and so may every part of a table that
another process reads: what lies in a bucket does not depend on who wrote it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from pldp.tasks.cores import cores
from pldp.tasks.run import Run
from pldp.tasks.tags import SORT_KEY, TWIN

COUNTED = "counted_"
"""How columns of pieces begin that are counted and dropped, such as why a choice is not stated."""
KEYS = (SORT_KEY, TWIN)
REASONS = 3
"""Values of a column that is counted: 0 where there is nothing to tell."""

FEW_ROWS, FEW_BUCKETS = 1 << 20, 64
"""Up to so many rows a bucket is a partition, as long as these are not more open files than that."""
BUCKETS, MANY_BUCKETS = 16, 256
BUCKET_ROWS, FULL_ROWS = 5 << 17, 1 << 21
"""More rows than few are dealt to so many buckets, and to more where these would hold more than so many rows each: what
is sorted at a time is held in memory. From many buckets on they are filled further."""

NARROW = 8
"""Columns that these numbers of rows are meant for: what is held are bytes, so of wide rows fewer are taken."""
WIDE_BUCKETS = 384
"""The most buckets for rows being wide: every bucket is an open file of each part that is read."""

Records = NDArray[Any]
"""Rows of a piece: the key, then the vault's columns."""


@dataclass(frozen=True)
class Keys:
    """Secrets of one ingest, forgotten with it: they order rows, and draw levels where the spec has them drawn."""

    order: str
    levels: str | None = None


@dataclass(frozen=True)
class Layout:
    """How rows are dealt: to buckets, each of which is cut into as many partitions."""

    buckets: int
    cuts: int

    @classmethod
    def of(cls, partitions: int, rows: int, phases: int = 1, columns: int = NARROW) -> Layout:
        """At least so many partitions for so many rows of so many columns, a multiple of the phases."""
        if rows <= narrow(FEW_ROWS, columns):
            buckets = min(partitions, FEW_BUCKETS)
        else:
            full = min(-(-rows // narrow(FULL_ROWS, columns)), WIDE_BUCKETS)
            some = min(-(-rows // narrow(BUCKET_ROWS, columns)), MANY_BUCKETS)
            buckets = max(BUCKETS, some, full, -(-rows // FULL_ROWS))
        return cls(buckets, 1).holding(partitions, phases)

    def holding(self, partitions: int, phases: int = 1) -> Layout:
        """The same buckets, cut into at least so many partitions."""
        cuts = -(-partitions // self.buckets)
        while self.buckets * cuts % phases:
            cuts += 1
        return Layout(self.buckets, cuts)

    @property
    def partitions(self) -> int:
        return self.buckets * self.cuts

    def slices(self, rows: int) -> Iterator[slice]:
        """A bucket's rows, cut."""
        for i in range(self.cuts):
            yield slice(rows * i // self.cuts, rows * (i + 1) // self.cuts)


@dataclass(frozen=True)
class Dealt:
    """What was seen of a table in the one pass over it."""

    records: np.dtype[Any]
    rows: int
    nameless: int
    """Rows of no user, which are in no piece."""
    unplaced: bool
    """Whether a cell of a user has no position."""
    counted: tuple[tuple[int, ...], ...]
    """For every column that is counted, how many users' rows have which value."""

    def __add__(self, other: Dealt) -> Dealt:
        """Of two parts of a table."""
        counted = (tuple(map(sum, zip(*both, strict=True))) for both in zip(self.counted, other.counted, strict=True))
        return Dealt(
            self.records,
            self.rows + other.rows,
            self.nameless + other.nameless,
            self.unplaced or other.unplaced,
            tuple(counted),
        )


def narrow(rows: int, columns: int) -> int:
    """So many rows of a narrow table, or as many bytes of one with more columns."""
    return rows * NARROW // max(columns, NARROW)


def pieces_of(run: Run) -> Path:
    """The folder that pieces of a run's tables lie in."""
    return run.vault.with_name("pieces")


def deal_rows(folder: Path, schema: pa.Schema, batches: Iterable[pa.RecordBatch], buckets: int) -> Dealt:
    """Append every row of a user to the piece of its bucket; `batches` have the columns of `schema`, the key first.

    A cell without a position counts as the first: the source is going to be refused. One batch is dealt while the next
    is read, where there is a core for it. Nothing else is needed than a folder and rows: any process may deal a part of
    a source.
    """
    folder.mkdir(mode=0o700, parents=True)
    counted = [name for name in schema.names if name.startswith(COUNTED)]
    records = np.dtype([(f.name, f.type.to_pandas_dtype()) for f in schema if f.name not in counted])
    rows = nameless = 0
    unplaced = False
    seen = np.zeros((len(counted), REASONS), dtype=np.int64)
    with ExitStack() as stack:
        files = [stack.enter_context((folder / str(bucket)).open("wb")) for bucket in range(buckets)]
        pool = stack.enter_context(ThreadPoolExecutor(1)) if cores() > 1 else None
        dealing: Future[None] | None = None
        for batch in batches:
            keys = batch.column(SORT_KEY)
            named = batch if not keys.null_count else batch.filter(pc.is_valid(keys))
            rows, nameless = rows + len(named), nameless + keys.null_count
            unplaced = unplaced or any(column.null_count for column in named.columns)
            for counts, name in zip(seen, counted, strict=True):
                counts += np.bincount(named.column(name), minlength=REASONS)
            if pool is None:
                _deal(named, records, files)
                continue
            if dealing is not None:
                dealing.result()
            dealing = pool.submit(_deal, named, records, files)
        if dealing is not None:
            dealing.result()
    return Dealt(records, rows, nameless, unplaced, tuple(tuple(map(int, counts)) for counts in seen))


def _deal(batch: pa.RecordBatch, records: np.dtype[Any], files: Sequence[IO[bytes]]) -> None:
    rows = np.empty(len(batch), dtype=records)
    for name in records.names or ():
        column = batch.column(name)
        rows[name] = (column.fill_null(0) if column.null_count else column).to_numpy()
    # Sorting whole numbers of 16 bits takes one step per row, and keeps those of a bucket together.
    bucket = (rows[SORT_KEY] % np.uint64(len(files))).astype(np.uint16)
    rows = np.take(rows, np.argsort(bucket, kind="stable"))  # indexing records is ten times slower
    ends = np.cumsum(np.bincount(bucket, minlength=len(files)))
    for file, start, end in zip(files, [0, *ends[:-1]], ends, strict=True):
        file.write(rows[start:end].data)


def read_piece(folder: Path, records: np.dtype[Any], bucket: int) -> Records:
    """A table's rows of a bucket, whoever dealt them."""
    parts = sorted(folder.iterdir(), key=lambda part: int(part.name))
    return np.concatenate([np.fromfile(part / str(bucket), dtype=records) for part in parts])


def delete_piece(folder: Path, bucket: int) -> None:
    """Delete one bucket of every part of a source that was dealt, once it is settled into partitions."""
    for part in folder.iterdir():
        (part / str(bucket)).unlink()
