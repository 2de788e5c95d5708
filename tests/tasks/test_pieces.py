"""Pieces to partitions: every row once, in the order of its key, and what is refused later is seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pldp.tasks.ingest
import pldp.tasks.pieces
from pldp.errors import Outcome, SourceError
from pldp.spec.source import Source as Stated
from pldp.tasks.buckets import Seen, Together, bring_together, gather, settle_all, users_in
from pldp.tasks.ingest import ingest
from pldp.tasks.partitions import read_partition, rows_in
from pldp.tasks.people import People
from pldp.tasks.pieces import COUNTED, REASONS, Dealt, Layout, deal_rows, pieces_of
from pldp.tasks.run import Run
from pldp.tasks.sources.registry import source_at
from pldp.tasks.tags import SORT_KEY, TWIN
from tests.people import opened, world

NAME = "people-0"
STATED = Stated(path="people.csv", user_id="id")
PEOPLE = People(
    source=STATED,
    user="id",
    cells=(),
    fields=(),
    file=source_at(Path("people.csv"), STATED, "source", Outcome.NOTHING_RUN),
    name=NAME,
)


def sorted_pieces(run: Run, layout: Layout, seen: Dealt) -> Together:
    return bring_together(run, settle_all(run, [PEOPLE], {NAME: seen.records}, layout))


def dealt(folder: Path, frame: pl.DataFrame, buckets: int) -> tuple[Run, Dealt]:
    """A run whose pieces hold this frame, read in batches of a few rows."""
    folder.mkdir(exist_ok=True)
    run = Run(str(folder), "people-0", evaluation=False)
    pieces_of(run).parent.mkdir(parents=True)
    table = frame.to_arrow()
    return run, deal_rows(pieces_of(run) / NAME / "0", table.schema, table.to_batches(max_chunksize=77), buckets)


def frame_of(rows: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    keys = rng.permutation(np.unique(rng.integers(0, 2**64, rows, dtype=np.uint64)))
    columns = {SORT_KEY: keys, "value_0": np.arange(len(keys), dtype=np.uint16), "level_0": keys.astype(np.uint8)}
    return pl.DataFrame({**columns, f"{COUNTED}0": rng.integers(0, REASONS, len(keys), dtype=np.uint8)})


@pytest.mark.parametrize(
    ("rows", "buckets", "cuts"), [(1, 1, 1), (1, 4, 3), (500, 7, 1), (500, 1, 7), (500, 7, 3), (20, 90, 2)]
)
def test_every_row_once_in_the_order_of_its_key(rows: int, buckets: int, cuts: int, tmp_path: Path, seed: int) -> None:
    frame = frame_of(rows, seed)
    (run, seen), layout = dealt(tmp_path, frame, buckets), Layout(buckets, cuts)
    counts = tuple(int((frame[f"{COUNTED}0"] == reason).sum()) for reason in range(REASONS))
    assert seen == Dealt(seen.records, rows, nameless=0, unplaced=False, counted=(counts,))
    assert seen.records.names == (SORT_KEY, "value_0", "level_0")
    assert (
        sum(piece.stat().st_size for piece in (pieces_of(run) / NAME / "0").iterdir()) == rows * seen.records.itemsize
    )
    assert sorted_pieces(run, layout, seen) == Together(rows, (Seen(),))
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
    run, seen = dealt(tmp_path / "twice", pl.concat([frame, frame[77:78]]), 3)
    assert not seen.unplaced
    assert sorted_pieces(run, Layout(3, 1), seen).seen[0].twice == (key,)
    for column in ("value_0", "level_0"):
        unplaced = frame.with_columns(pl.when(pl.col(SORT_KEY) == key).then(None).otherwise(column).alias(column))
        assert dealt(tmp_path / column, unplaced, 3)[1].unplaced


def test_rows_of_no_user_are_counted_and_in_no_piece(tmp_path: Path, seed: int) -> None:
    frame = frame_of(300, seed)
    nobody = pl.col("value_0") % 3 == 0
    holes = frame.with_columns(
        pl.when(nobody).then(None).otherwise(SORT_KEY).alias(SORT_KEY),
        value_0=pl.when(nobody).then(None).otherwise("value_0"),
    )
    run, seen = dealt(tmp_path, holes, 4)
    assert (seen.rows, seen.nameless, seen.unplaced) == (200, 100, False), "a cell of nobody needs no position"
    kept = frame.filter(~nobody)
    assert sum(seen.counted[0]) == 200
    assert sorted_pieces(run, Layout(4, 1), seen) == Together(200, (Seen(),))
    values = np.concatenate([read_partition(run, i, ["value_0"])["value_0"] for i in range(4)])
    assert sorted(values.tolist()) == kept["value_0"].sort().to_list()


def test_two_users_of_one_key_are_two_users(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A key says that rows may be of one user; the ids, looked at in the source again, decide."""
    people = pl.DataFrame({"id": ["a", "b"], "job": ["x", "y"], "level": ["low", "low"]})
    attributes = [{"name": "job", "values": ["x", "y"]}]

    def collide(*arguments: Any) -> Together:
        return Together(bring_together(*arguments).n_users, (Seen(twice=(1, 2)),))

    monkeypatch.setattr(pldp.tasks.ingest, "bring_together", collide)
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
    assert Layout.of(2, 10_000_000) == Layout(16, 1), "a bucket's rows are held while they are sorted"
    assert Layout.of(2, 30_000_000) == Layout(46, 1)
    assert Layout.of(112, 100_000_000) == Layout(153, 1)
    for rows in ((1 << 20) + 1, 10_000_000, 67_000_000, 100_000_000, 160_000_000):
        assert rows / Layout.of(1, rows).buckets <= pldp.tasks.pieces.BUCKET_ROWS
    for rows in (200_000_000, 10**9):
        assert rows / Layout.of(1, rows).buckets <= pldp.tasks.pieces.FULL_ROWS
    wide = 10 * pldp.tasks.pieces.NARROW
    for rows in (200_000, 1_000_000, 15_000_000):
        held = wide * rows / Layout.of(1, rows, columns=wide).buckets
        assert held <= pldp.tasks.pieces.NARROW * pldp.tasks.pieces.FULL_ROWS, "memory does not grow with the columns"
    assert Layout.of(1, 100_000, columns=wide) == Layout(1, 1)
    assert Layout.of(1, 10**8, columns=wide).buckets == pldp.tasks.pieces.WIDE_BUCKETS, "every bucket is an open file"
    assert Layout.of(1, 10**9, columns=wide) == Layout.of(1, 10**9)
    many = Layout.of(4470, 10**9)
    assert many.partitions >= 4470
    assert 10**9 / many.buckets <= pldp.tasks.pieces.FULL_ROWS, "memory does not grow with the rows"


def test_a_source_of_many_pieces_with_rows_without_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", 50)
    monkeypatch.setattr(pldp.tasks.pieces, "FEW_BUCKETS", 3)
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


def rows_with(keys: list[int], twins: list[int]) -> Any:
    return np.array(list(zip(keys, twins, strict=True)), dtype=[(SORT_KEY, "u8"), (TWIN, "u8")])


def test_rows_of_one_user_meet_across_tables_and_two_users_of_one_key_do_not() -> None:
    """The key orders; both halves of the hash say who it is, whatever the order of the rows."""
    high = 2**64 - 1
    held = rows_with([7, 3, 7, 7, 7], [high, 5, 2, high, 2])
    users = rows_with([high, 7, 3], [0, 2, 5])
    bucket = gather({"held": held, "users": users})
    assert bucket.n_users == 4
    assert bucket.users["held"].tolist() == [2, 0, 1, 2, 1]
    assert bucket.users["users"].tolist() == [3, 1, 0]
    assert gather({"held": held[:2]}).users["held"].tolist() == [1, 0]
    assert gather({"held": held[:0]}).n_users == 0
    rows, twice = gather({"held": held}).one_each("held")
    assert rows[TWIN].tolist() == [5, 2, 2, high, high]
    assert twice == (7, 7, 7)


def test_users_are_counted_by_the_first_bucket(tmp_path: Path, seed: int) -> None:
    """Exactly of one bucket; of several within five standard deviations of a hash that deals alike."""
    frame = pl.concat([frame_of(4000, seed)] * 3)
    for buckets, away in ((1, 0.0), (8, 5 * (4000 * 7) ** 0.5)):
        run, seen = dealt(tmp_path / str(buckets), frame, buckets)
        assert users_in(run, {NAME: seen.records}, Layout(buckets, 1)) == pytest.approx(4000, abs=away)


def test_partitions_are_a_multiple_of_the_phases() -> None:
    assert Layout.of(1, 10, phases=2) == Layout(1, 2)
    assert Layout(65, 1).holding(3, phases=2) == Layout(65, 2)
    assert Layout(64, 1).holding(3, phases=2) == Layout(64, 1)
