"""Files of reports: columns of whole numbers, committed once, read by Polars, DuckDB or anybody's client."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pldp.questions.question import Columns, offsets
from pldp.tasks.drafts import draft_of, link
from pldp.tasks.durable import make_folder


def commit_reports(path: Path, columns: Columns) -> int:
    """Commit a file exclusively; how many reports this call committed. A second writer leaves what is there."""
    frame = pl.DataFrame({name: _series(name, column) for name, column in columns.items()})
    make_folder(path.parent)
    draft = draft_of(path)
    try:
        _write(frame, draft)
        with draft.open("rb") as handle:
            os.fsync(handle.fileno())
        return frame.height if link(draft, path) else 0
    finally:
        draft.unlink(missing_ok=True)


def _write(frame: pl.DataFrame, path: Path) -> None:
    """Noise does not compress, and statistics of it tell nobody anything.

    Arrow's writer takes two thirds of the CPU time of Polars', which starts an engine of its own for every file.
    """
    with pa.OSFile(str(path), "wb") as file:  # closed here, whatever becomes of the writer
        pq.write_table(frame.to_arrow(), file, compression="none", use_dictionary=False, write_statistics=False)


def read_reports(path: Path) -> Columns:
    """The columns of one committed file."""
    return columns_of(pl.read_parquet(path, memory_map=False, hive_partitioning=False, glob=False))


def columns_of(frame: pl.DataFrame) -> dict[str, NDArray[Any]]:
    """A frame's columns as arrays, without a copy where there can be none; lists as their values and bounds."""
    columns: dict[str, NDArray[Any]] = {}
    for series in frame.rechunk().get_columns():
        if isinstance(series.dtype, pl.List):
            array = series.to_arrow()
            bounds = array.offsets.to_numpy().astype(np.int64)
            # From the first bound on: a slice of a longer column starts elsewhere.
            columns[series.name] = array.values.to_numpy()[bounds[0] : bounds[-1]] if len(bounds) else np.empty(0)
            columns[offsets(series.name)] = bounds - bounds[:1].sum()
        else:
            columns[series.name] = series.to_numpy()
    return columns


def _series(name: str, column: NDArray[Any]) -> pl.Series:
    if column.ndim == 1:
        return pl.Series(name, column)
    return pl.Series(name, np.ascontiguousarray(column), dtype=pl.Array(pl.UInt64, column.shape[1]))
