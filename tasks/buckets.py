"""Buckets to partitions: rows of one user are brought together, whichever tables they stand in.

A bucket is small enough to be held in memory. Its people are put in the order of their keys, which then are dropped;
what they hold is gathered; the bucket is cut into partitions, and its pieces are deleted. So rows of a partition stand
in an order that says nothing of the source's, a person's answers to all questions stand in one row, and nothing is
stored twice.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import reduce
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pldp.errors import Problem
from pldp.tasks.durable import Syncs
from pldp.tasks.partitions import write_partition
from pldp.tasks.pieces import Layout, Records, delete_piece, pieces_of, read_piece
from pldp.tasks.run import Run
from pldp.tasks.tags import SORT_KEY, TWIN

AT_ONCE = 2
"""Buckets that are brought together at a time."""

SHOWN_KEYS = 1000
"""Keys of two rows that are looked at again: hardly ever is one of them of two users."""

RecordTypes = Mapping[str, np.dtype[Any]]
"""What a row of a table's pieces is, by the name of the table."""


@dataclass(frozen=True)
class Seen:
    """What was seen of a table when its rows came together, in a bucket or in all."""

    problems: frozenset[Problem] = frozenset()
    """Rules that what a user has in several rows breaks."""
    twice: tuple[int, ...] = ()
    """Keys that stand in two rows of a table that has one per user, the first few."""

    def __add__(self, other: Seen) -> Seen:
        return Seen(self.problems | other.problems, (*self.twice, *other.twice)[:SHOWN_KEYS])


@dataclass(frozen=True)
class Bucket:
    """Everything of some users: every table's rows, and whose they are."""

    rows: Mapping[str, Records]
    users: Mapping[str, NDArray[np.int64]]
    """Whose row it is: 0 … n_users − 1, in the order of the keys."""
    n_users: int
    strangers: Mapping[str, int] = field(default_factory=dict)
    """Rows of each table that are of nobody in the table that says who takes part; they are left out."""

    def one_each(self, name: str) -> tuple[Records, tuple[int, ...]]:
        """Of a table with one row per user: the rows in the order of the users, and keys that stand in two."""
        rows, users = self.rows[name], self.users[name]
        if TWIN in (rows.dtype.names or ()):
            order = np.argsort(users, kind="stable")
        else:  # as many users as rows
            order = np.empty(len(rows), dtype=np.int64)
            order[users] = np.arange(len(rows))
        ordered = np.take(rows, order)  # indexing records is ten times slower
        keys = ordered[SORT_KEY].copy()
        return ordered, tuple(keys[1:][keys[1:] == keys[:-1]][:SHOWN_KEYS].tolist())


class Settling(Protocol):
    """A table, or two that belong together, whose rows were dealt."""

    def settle(self, bucket: Bucket) -> tuple[Mapping[str, pa.Array], Seen]:
        """Its columns of the vault, one entry per user of the bucket, and what was seen; none where it has problems."""


@dataclass(frozen=True)
class Together:
    """All buckets: how many users, and what was seen of every table."""

    n_users: int
    seen: tuple[Seen, ...]
    strangers: Mapping[str, int] = field(default_factory=dict)
    """How many rows of each table are of nobody who takes part."""


def settle_all(
    run: Run, tables: Sequence[Settling], records: RecordTypes, layout: Layout, roll: str | None = None
) -> list[Together]:
    """Write the partitions of all buckets and delete their pieces one by one."""
    with Syncs() as syncs, ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda i: settle(run, tables, records, layout, i, syncs, roll), range(layout.buckets)))


def bring_together(run: Run, parts: Sequence[Together]) -> Together:
    """All buckets, once their partitions are written; what is left of pieces goes."""
    shutil.rmtree(pieces_of(run))
    by_table = zip(*(one.seen for one in parts), strict=True)
    seen = tuple(reduce(Seen.__add__, each) for each in by_table)
    strangers: Counter[str] = Counter()
    for one in parts:
        strangers.update(one.strangers)
    return Together(sum(one.n_users for one in parts), seen, +strangers)


def users_in(run: Run, records: RecordTypes, layout: Layout) -> int:
    """About how many users there are, by those of the first bucket: a hash deals alike to all."""
    keys = [read_piece(pieces_of(run) / name, kind, 0)[SORT_KEY] for name, kind in records.items()]
    return layout.buckets * len(np.unique(np.concatenate(keys)))


def settle(
    run: Run,
    tables: Sequence[Settling],
    records: RecordTypes,
    layout: Layout,
    number: int,
    syncs: Syncs,
    roll: str | None = None,
    *,
    keep: bool = False,
) -> Together:
    """Write the partitions of a bucket and delete its pieces, unless they are to be kept.

    A bucket with a problem is not written: the source is going to be refused. `roll` names the table that says who
    takes part, where one does: rows of others are left out and counted. Otherwise everybody who is named takes part.
    """
    pieces = pieces_of(run)
    bucket = gather({name: read_piece(pieces / name, kind, number) for name, kind in records.items()}, roll)
    settled = [table.settle(bucket) for table in tables]
    if not any(seen.problems for _, seen in settled):
        whole = pa.table({name: column for columns, _ in settled for name, column in columns.items()})
        for i, partition in enumerate(layout.slices(bucket.n_users)):
            cut = whole.slice(partition.start, partition.stop - partition.start)
            path = run.partition_file(number * layout.cuts + i)
            write_partition(path, cut.to_batches(), whole.schema)
            syncs.add(path)
    for name in () if keep else records:
        delete_piece(pieces / name, number)
    return Together(bucket.n_users, tuple(seen for _, seen in settled), bucket.strangers)


def gather(rows: Mapping[str, Records], roll: str | None = None) -> Bucket:
    """Say whose every row is. Without the other half of the hash every row is somebody else's: of a table with one row
    per user, in which a key that stands twice is looked at again."""
    keys = np.concatenate([table[SORT_KEY] for table in rows.values()])
    order = np.argsort(keys)
    ranks = np.arange(len(keys))
    if all(TWIN in (table.dtype.names or ()) for table in rows.values()):
        twins = np.concatenate([table[TWIN] for table in rows.values()])
        same_key = np.diff(keys[order].view(np.int64)) == 0
        if np.any(same_key & (np.diff(twins[order].view(np.int64)) != 0)):
            order = np.lexsort((twins, keys))  # two users of one key, whose rows may lie mixed
            same_key = np.diff(keys[order].view(np.int64)) == 0
        differs = ~same_key | (np.diff(twins[order].view(np.int64)) != 0)
        ranks = np.cumsum(np.append(0, differs))[: len(keys)]
    users = np.empty(len(keys), dtype=np.int64)
    users[order] = ranks
    bounds = np.cumsum([0, *(len(table) for table in rows.values())])
    whose = {name: users[bounds[i] : bounds[i + 1]] for i, name in enumerate(rows)}
    bucket = Bucket(rows, whose, int(ranks[-1]) + 1 if keys.size else 0)
    return bucket if roll is None else _of_the_roll(bucket, roll)


def _of_the_roll(bucket: Bucket, roll: str) -> Bucket:
    """Those who stand in one table, and their rows of all."""
    takes_part = np.zeros(bucket.n_users, dtype=bool)
    takes_part[bucket.users[roll]] = True
    places = np.cumsum(takes_part) - 1
    listed = {name: takes_part[users] for name, users in bucket.users.items()}
    return Bucket(
        {name: rows[listed[name]] for name, rows in bucket.rows.items()},
        {name: places[users[listed[name]]] for name, users in bucket.users.items()},
        int(takes_part.sum()),
        {name: int(len(kept) - kept.sum()) for name, kept in listed.items()},
    )
