"""A worker's stages keep one core busy, whatever they use."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from pldp.tasks import pieces, tags
from pldp.tasks.cores import cores, one_core
from pldp.tasks.query import connect, connect_memory, connect_scratch
from pldp.tasks.stage import call, stage


@stage()
def seen_by_a_stage() -> int:
    return cores()


def test_a_worker_has_one_core_and_a_command_two() -> None:
    assert seen_by_a_stage.fn() == 2
    assert call(__name__, "seen_by_a_stage") == 1
    assert cores() == 2


def threads(connection: Any) -> int:
    with connection as database:
        return int(database.execute("SELECT current_setting('threads')").fetchone()[0])


def test_databases_have_as_many_threads_as_there_are_cores(tmp_path: Path) -> None:
    assert [threads(connect(tmp_path / "a")), threads(connect_scratch(tmp_path, 1))] == [2, 2]
    with one_core():
        connections = (connect(tmp_path / "a"), connect_scratch(tmp_path, 1), connect_memory())
        assert [threads(connection) for connection in connections] == [1, 1, 1]


@pytest.mark.parametrize("alone", [True, False])
def test_rows_are_dealt_beside_the_reader_or_by_it(
    alone: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Either way every row is dealt, in the order of the batches."""
    by, deal = [], pieces._deal

    def watched(*arguments: Any) -> None:
        by.append(threading.get_ident())
        deal(*arguments)

    monkeypatch.setattr(pieces, "_deal", watched)
    rows = pa.table({tags.SORT_KEY: pa.array(range(100), pa.uint64()), "answer": pa.array([7] * 100, pa.uint8())})
    batches = rows.to_batches(max_chunksize=9)
    if alone:
        with one_core():
            dealt = pieces.deal_rows(tmp_path / "pieces", rows.schema, batches, 1)
    else:
        dealt = pieces.deal_rows(tmp_path / "pieces", rows.schema, batches, 1)
    written = np.fromfile(tmp_path / "pieces" / "0", dtype=dealt.records)
    assert written[tags.SORT_KEY].tolist() == list(range(100))
    assert len(by) == len(batches)
    assert all((ident == threading.get_ident()) == alone for ident in by)
