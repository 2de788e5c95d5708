"""Rows in the order of their keys, in memory that does not grow with them.

A database that sorts in little memory holds a piece of every run it merges, and so needs more the more rows there are.
Keys are hashes, so here rows are dealt to files by the first bits of theirs, and each file is sorted on its own.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pldp.tasks.partitions import SORT_KEY, TWIN

_BITS = 9
"""Of the key: files hold a 512th of the rows."""

_FIRST_BITS = np.uint64(64 - _BITS)


def in_key_order(batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int, folder: Path) -> Iterator[pa.Table]:
    """The same rows by sort_key, then twin; those without a key are among the first. `folder` is for this call alone.

    About `rows` are held at a time; if there are no more, none goes to a file.
    """
    held: list[pa.RecordBatch] = []
    folder.mkdir(mode=0o700)
    try:
        for batch in batches:
            held.append(batch)
            if sum(map(len, held)) > rows:
                _deal(pa.Table.from_batches(held, schema), folder)
                held.clear()
        rest = pa.Table.from_batches(held, schema)
        if next(folder.iterdir(), None) is None:
            yield _sorted(rest)
        else:
            _deal(rest, folder)
        held.clear()
        for path in sorted(folder.iterdir()):
            yield _sorted(_read(path, schema))
            path.unlink()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _deal(rows: pa.Table, folder: Path) -> None:
    """Append rows to the files of their keys' first bits; a file is open only as long as that takes."""
    slices = (_keys(rows, SORT_KEY) >> _FIRST_BITS).astype(np.uint16)
    order = np.argsort(slices, kind="stable")
    (dealt,) = rows.take(pa.array(order)).combine_chunks().to_batches() or (None,)
    if dealt is None:
        return
    bounds = np.searchsorted(slices[order], np.arange((1 << _BITS) + 1, dtype=np.uint16))
    for number in np.flatnonzero(np.diff(bounds)):
        with (folder / f"{number:03d}").open("ab") as handle:
            start, stop = int(bounds[number]), int(bounds[number + 1])
            handle.write(dealt.slice(start, stop - start).serialize())


def _read(path: Path, schema: pa.Schema) -> pa.Table:
    found = []
    with pa.OSFile(str(path)) as handle:
        while handle.tell() < handle.size():
            found.append(pa.ipc.read_record_batch(pa.ipc.read_message(handle), schema))
    return pa.Table.from_batches(found, schema)


def _sorted(rows: pa.Table) -> pa.Table:
    key = _keys(rows, SORT_KEY)
    order = np.argsort(key)
    placed = key[order]
    if (placed[1:] == placed[:-1]).any():  # the same key is not the same user
        order = np.lexsort((_keys(rows, TWIN), key))
    return rows.take(pa.array(order))


def _keys(rows: pa.Table, name: str) -> NDArray[np.uint64]:
    return rows.column(name).fill_null(0).to_numpy()
