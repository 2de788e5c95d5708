"""Shares of an ingest: parts of a source to pieces, and buckets of pieces to partitions, by whoever has a hand free.

A share is named by numbers: whoever takes it describes the source again, cuts it alike, and finds the keys in the
vault. On a cluster the workers read the source and write to the vault, which lie on storage that all of them see.
"""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from pathlib import Path
from typing import TypeVar

import duckdb
import pyarrow as pa

from pldp.errors import Outcome, SourceError
from pldp.tasks.buckets import RecordTypes, Together, settle, settle_all
from pldp.tasks.cores import cores
from pldp.tasks.durable import Syncs, delete_folder
from pldp.tasks.holdings import FileRows, Holdings
from pldp.tasks.leftout import Reasons, rejected
from pldp.tasks.people import People
from pldp.tasks.pieces import Dealt, Keys, Layout, deal_rows, narrow, pieces_of
from pldp.tasks.query import FULL, connect_scratch, says_full
from pldp.tasks.run import Run
from pldp.tasks.source import described
from pldp.tasks.sources.source import Source, cut
from pldp.tasks.specfile import SpecFile
from pldp.tasks.stage import is_shared, spread, stage
from pldp.tasks.tags import Tags

T = TypeVar("T")
SHARES = 16
"""Shares of a table, or of its buckets, at most: fixed, so that what is written depends on no number of workers."""
ROWS_READ = 1 << 17
"""Rows of the source that are held at a time, where these are narrow."""


@dataclass(frozen=True)
class Share:
    """A part of a table: the number of its file among those that are dealt, and of the part among so many."""

    file: int
    name: str
    part: int = 0
    of: int = 1


@dataclass(frozen=True)
class Read:
    """What came of a share, or of all shares of a table: rows that were dealt, and those that do not parse."""

    dealt: Dealt
    rejected: int
    reasons: Reasons

    def __add__(self, other: Read) -> Read:
        counts: dict[str, int] = {}
        for why, n in (*self.reasons, *other.reasons):
            counts[why] = counts.get(why, 0) + n
        return Read(self.dealt + other.dealt, self.rejected + other.rejected, tuple(sorted(counts.items())))


def shares_of(files: Sequence[People | FileRows]) -> list[Share]:
    """Files by parts: one a core, many on a cluster. Rows that are told apart by their places are read by one."""
    shares, most = [], SHARES if is_shared() else cores()
    for number, one in enumerate(files):
        one.file.columns()  # of many files, all of them are compared here, and not by everybody
        of = 1 if one.ordered else len(one.file.parts(most))
        shares += [Share(number, one.name, part, of) for part in range(of)]
    return shares


def by_table(shares: Sequence[Share], results: Sequence[T]) -> dict[str, T]:
    """What shares came to, added up."""
    names = dict.fromkeys(share.name for share in shares)
    pairs = list(zip(shares, results, strict=True))
    return {name: reduce(add, [one for share, one in pairs if share.name == name]) for name in names}


def keep_keys(run: Run, keys: Keys) -> None:
    """In the vault, with the pieces: parameters of calls are no place for secrets."""
    pieces_of(run).mkdir(mode=0o700)
    _keys(run).write_text(json.dumps(vars(keys)))


def _keys(run: Run) -> Path:
    return pieces_of(run) / ".keys"


def _taken(run: Run, file: SpecFile, share: Share) -> People | FileRows:
    one = [one for table in described(file, truth=run.evaluation) for one in table.dealt][share.file]
    return one if share.of == 1 else replace(one, file=one.file.parts(share.of)[share.part])


@stage()
def count_share(run: Run, file: SpecFile, share: Share) -> int:
    """How many rows the database must find; refuses a part of which it would lose some."""
    one = _taken(run, file, share)
    return one.file.count_with(one.columns)


@stage()
def deal_share(run: Run, file: SpecFile, share: Share, layout: Layout, twins: bool) -> Read:
    """Write the pieces of a part, in one pass. What somebody left who died over it is dealt anew."""
    one, keys = _taken(run, file, share), Keys(**json.loads(_keys(run).read_text()))
    folder = pieces_of(run) / one.name / str(share.part)
    delete_folder(folder)
    with connect_scratch(run.vault.parent, len(one.columns), ordered=one.ordered) as scratch:
        with _guarded(one.file):
            reader = one.pieces(scratch, keys).to_arrow_reader(narrow(ROWS_READ, len(one.columns)))
        tags = Tags(keys.order)
        schema = tags.schema(reader.schema, twins=twins)
        batches = (tags.tagged(batch, schema) for batch in _guarded_batches(one.file, reader))
        dealt = deal_rows(folder, schema, batches, layout.buckets)
        return Read(dealt, *rejected(scratch, one.file))


@stage()
def settle_share(
    run: Run, file: SpecFile, records: RecordTypes, layout: Layout, buckets: Sequence[int]
) -> list[Together]:
    """Write the partitions of some buckets; their pieces stay, for whoever takes the share of somebody who died."""
    tables = described(file)
    with Syncs() as syncs:
        return [settle(run, tables, records, layout, bucket, syncs, roll_of(tables), keep=True) for bucket in buckets]


def partitions_of(run: Run, file: SpecFile, records: RecordTypes, layout: Layout) -> list[Together]:
    """Write the partitions of all buckets, here or on the cluster."""
    if not is_shared():
        tables = described(file)
        return settle_all(run, tables, records, layout, roll_of(tables))
    calls = [(settle_share, run, file, records, layout, buckets) for buckets in cut(range(layout.buckets), SHARES)]
    together = [one for settled in spread("ingest", calls) for one in settled]
    parts = [part for name in records for part in (pieces_of(run) / name).iterdir()]
    spread("ingest", [(delete_share, run, part.parent.name, part.name) for part in parts])
    return together


@stage()
def delete_share(run: Run, name: str, part: str) -> None:
    """Delete the pieces of a part, which nobody needs now: by those who wrote them, as it takes as long as they are
    large. The command deletes what is left."""
    delete_folder(pieces_of(run) / name / part)


def roll_of(tables: Sequence[People | Holdings]) -> str | None:
    """The table of people beside others, which says who takes part: an empty set of items is a value, and nobody's
    absence tells of it."""
    if sum(len(table.dealt) for table in tables) == 1:
        return None
    return next((table.name for table in tables if isinstance(table, People)), None)


def _guarded_batches(file: Source, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    while True:
        with _guarded(file):
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                return
        yield batch


@contextmanager
def _guarded(file: Source) -> Iterator[None]:
    """The database's own message quotes rows, so it is not even kept as a cause."""
    try:
        yield
        return
    except (duckdb.Error, pa.ArrowException, OSError) as error:  # what reads batches wraps the database's
        if says_full(error):  # the vault's fault, not the source's
            raise OSError(errno.ENOSPC, FULL) from None
        too_long = "Out of Memory" in str(error)
    if too_long:
        raise SourceError(
            "has cells too long to be read in little memory",
            Outcome.NOTHING_PERTURBED,
            file=file.name,
            remedy="Shorten those of the columns that the spec names, or cut the file into smaller row groups.",
        )
    raise file.unreadable()
