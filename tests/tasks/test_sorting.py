"""Sorting by keys: every row once, in order, whatever of it goes through files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from pldp.tasks.sorting import in_key_order


def drawn(rows: int, seed: int) -> pa.Table:
    """Skewed keys, many of them alike, some missing; a number tells the rows apart."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(0, 2**64, rows, dtype=np.uint64) >> rng.integers(0, 64, rows, dtype=np.uint64)
    twins = rng.integers(0, 2**64, rows, dtype=np.uint64) >> rng.integers(60, 64, rows, dtype=np.uint64)
    missing = rng.random(rows) < 0.1
    columns = {"sort_key": pa.array(keys, mask=missing), "twin": pa.array(twins, mask=missing)}
    return pa.table({**columns, "number": np.arange(rows, dtype=np.uint32), "value_0": rng.integers(0, 9, rows)})


@pytest.mark.parametrize(("rows", "size", "held"), [(0, 5, 100), (7, 5, 100), (5000, 300, 10**6), (5000, 300, 700)])
def test_every_row_once_in_the_order_of_keys(rows: int, size: int, held: int, tmp_path: Path, seed: int) -> None:
    table = drawn(rows, seed)
    folder = tmp_path / "sorting"
    found = list(in_key_order(table.to_batches(max_chunksize=size), table.schema, held, folder))
    assert (len(found) > 1) == (rows > held), "files only where there is no room"
    whole = pa.concat_tables(found)
    expected = sorted(
        table.to_pylist(), key=lambda row: (row["sort_key"] or 0, row["twin"] or 0, row["sort_key"] is not None)
    )
    keys = [(row["sort_key"] or 0, row["twin"] or 0) for row in whole.to_pylist()]
    assert keys == [(row["sort_key"] or 0, row["twin"] or 0) for row in expected]
    assert whole.schema == table.schema
    assert whole.sort_by("number").equals(table), "rows stay whole"
    assert not folder.exists()


def test_a_source_that_breaks_off_leaves_no_file(tmp_path: Path, seed: int) -> None:
    table = drawn(1000, seed)

    def broken() -> Iterator[pa.RecordBatch]:
        yield from table.to_batches(max_chunksize=300)
        raise ValueError("broken off")

    with pytest.raises(ValueError, match="broken off"):
        list(in_key_order(broken(), table.schema, 400, tmp_path / "sorting"))
    assert list(tmp_path.iterdir()) == []
