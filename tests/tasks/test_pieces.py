"""Pieces to partitions: every row once, in the order of its key, and what is refused later is seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import pldp.tasks.ingest
import pldp.tasks.pieces
from pldp.errors import SourceError
from pldp.tasks.ingest import ingest
from pldp.tasks.partitions import read_partition, rows_in
from pldp.tasks.pieces import SORT_KEY, Layout, Sorted, pieces_of, rows_of, sort_pieces
from pldp.tasks.run import Run
from tests.people import opened, world

REASONS = 3


def dealt(folder: Path, frame: pl.DataFrame, buckets: int) -> Run:
    """A run whose pieces hold this frame, in two files per bucket, as the database writes them."""
    run = Run(str(folder), "people-0", evaluation=False)
    for bucket in range(buckets):
        place = pieces_of(run) / f"bucket={bucket}"
        place.mkdir(parents=True)
        own = frame.filter(pl.col(SORT_KEY) % buckets == bucket)
        if len(own):
            own[: len(own) // 2].write_parquet(place / "data_0.parquet")
            own[len(own) // 2 :].write_parquet(place / "data_1.parquet")
    return run


def frame_of(rows: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    keys = rng.permutation(np.unique(rng.integers(0, 2**64, rows, dtype=np.uint64)))
    columns = {SORT_KEY: keys, "value_0": np.arange(len(keys), dtype=np.uint16), "level_0": keys.astype(np.uint8)}
    return pl.DataFrame({**columns, "unstated_0": rng.integers(0, REASONS, len(keys), dtype=np.uint8)})


@pytest.mark.parametrize(
    ("rows", "buckets", "cuts"), [(1, 1, 1), (1, 4, 3), (500, 7, 1), (500, 1, 7), (500, 7, 3), (20, 90, 2)]
)
def test_every_row_once_in_the_order_of_its_key(rows: int, buckets: int, cuts: int, tmp_path: Path, seed: int) -> None:
    frame = frame_of(rows, seed)
    run, layout = dealt(tmp_path, frame, buckets), Layout(buckets, cuts)
    assert sum(rows_of(pieces_of(run), i) for i in range(buckets)) == rows
    counts = tuple(int((frame["unstated_0"] == reason).sum()) for reason in range(REASONS))
    assert sort_pieces(run, layout, REASONS) == Sorted(rows, False, (), (counts,))
    assert rows_in(run, layout.partitions) == rows
    for bucket in range(buckets):
        own = frame.filter(pl.col(SORT_KEY) % buckets == bucket).sort(SORT_KEY)
        parts = [read_partition(run, bucket * cuts + i, ["value_0", "level_0"]) for i in range(cuts)]
        sizes = [part["value_0"].len() for part in parts]
        assert max(sizes) - min(sizes) <= 1
        for name in ("value_0", "level_0"):
            assert np.concatenate([part[name] for part in parts]).tolist() == own[name].to_list()
    assert not pieces_of(run).exists(), "nothing is stored twice"


def test_keys_of_two_rows_and_cells_without_a_position_are_seen(tmp_path: Path, seed: int) -> None:
    frame = frame_of(300, seed)
    key = int(frame[SORT_KEY][77])
    run = dealt(tmp_path / "twice", pl.concat([frame, frame[77:78]]), 3)
    assert sort_pieces(run, Layout(3, 1), REASONS).twice == (key,)
    unplaced = frame.with_columns(value_0=pl.when(pl.col(SORT_KEY) == key).then(None).otherwise(pl.col("value_0")))
    run = dealt(tmp_path / "unplaced", unplaced, 3)
    seen = sort_pieces(run, Layout(3, 1), REASONS)
    assert seen.unplaced
    assert not run.partition_file(key % 3).exists()


def test_two_users_of_one_key_are_two_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key says that rows may be of one user; the ids, looked at in the source again, decide."""
    people = pl.DataFrame({"id": ["a", "b"], "job": ["x", "y"], "level": ["low", "low"]})
    attributes = [{"name": "job", "values": ["x", "y"]}]
    collide = pldp.tasks.ingest._deal

    def told(*arguments: object) -> Sorted:
        found = collide(*arguments)  # type: ignore[arg-type]
        return Sorted(found.rows, found.unplaced, (1, 2), found.unstated)

    monkeypatch.setattr(pldp.tasks.ingest, "_deal", told)
    run, file = opened(world(tmp_path, people, attributes=attributes), tmp_path / "home")
    assert ingest.fn(run, file).n_users == 2
    monkeypatch.undo()
    twice = pl.concat([people, people[:1]])
    run, file = opened(world(tmp_path, twice, attributes=attributes), tmp_path / "home")
    with pytest.raises(SourceError, match="more than one row"):
        ingest.fn(run, file)


def test_layouts_have_room_for_all_and_few_files_at_once() -> None:
    assert Layout.of(1, 10) == Layout(1, 1)
    assert Layout.of(6, 10) == Layout(6, 1)
    assert Layout.of(64, 10) == Layout(64, 1)
    assert Layout.of(65, 10) == Layout(64, 2)
    assert Layout.of(2, 10_000_000) == Layout(64, 1), "a bucket's rows are held while they are sorted"
    assert Layout.of(447, 100_000_000).partitions >= 447
    many = Layout.of(4470, 10**9)
    assert many.partitions >= 4470
    assert 10**9 / many.buckets <= pldp.tasks.pieces.BUCKET_ROWS, "memory does not grow with the rows"


def test_a_source_of_many_pieces_with_rows_without_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", 50)
    monkeypatch.setattr(pldp.tasks.pieces, "BUCKETS", 3)
    ids = [None if i % 10 == 0 else f"u{i}" for i in range(1000)]
    frame = pl.DataFrame({"id": ids, "job": ["x", "y"] * 500, "level": ["low"] * 1000})
    spec = world(
        tmp_path,
        frame,
        attributes=[{"name": "job", "values": ["x", "y"]}],
        source={"path": "people.parquet", "user_id": "id", "max_left_out": 1},
    )
    run, file = opened(spec, tmp_path / "home")
    found = ingest.fn(run, file)
    assert found.n_users == 900
    assert found.partitions == 3 * 14, "by the rows, of which users are a part"
    values = np.concatenate([read_partition(run, i, ["value_0"])["value_0"] for i in range(found.partitions)])
    assert np.bincount(values).tolist() == [400, 500]
