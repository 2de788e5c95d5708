"""Shares of an ingest: what several workers write is what one process does."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pldp.errors import Outcome, SourceError
from pldp.tasks.home import Home
from pldp.tasks.ingest import ingest
from pldp.tasks.pieces import Dealt
from pldp.tasks.run import Run, open_run
from pldp.tasks.shares import SHARES, Read
from pldp.tasks.sources.parquetfile import ParquetFile
from pldp.tasks.specfile import load_spec
from pldp.tasks.stage import call, sharing
from tests import baskets, items, people

N = 2000


class Workers:
    """Calls by name, their arguments sent as bytes, and some of them done twice: as by workers, one of whom dies."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.sent = b""

    def __call__(self, name: str, calls: Sequence[tuple[Any, ...]]) -> list[Any]:
        found = []
        for number, (stage, *arguments) in enumerate(calls):
            sent = pickle.dumps(arguments)
            self.sent += sent
            self.calls.append(stage.name)
            for _ in range(1 + (number % 3 == 1)):
                result = call(stage.fn.__module__, stage.fn.__name__, *pickle.loads(sent))  # noqa: S301
            found.append(pickle.loads(pickle.dumps(result)))  # noqa: S301
        return found


def filled(spec: Path, home: Path, workers: Workers | None) -> tuple[Run, pl.DataFrame]:
    """A seeded evaluation's vault: with the same seed the same keys."""
    file = load_spec(spec, evaluation=True)
    run = open_run(Home(home).prepare(), file, "evaluation", evaluation=True, seed=1)
    with ExitStack() as stack:
        if workers is not None:
            stack.enter_context(sharing(workers))
        found = ingest.fn(run, file)
    assert found.partitions == len(list(run.partition_file(0).parent.iterdir()))
    assert not run.vault.with_name("pieces").exists()
    return run, pl.concat(pl.read_parquet(run.partition_file(i)) for i in range(found.partitions))


def one_parquet(folder: Path) -> Path:
    spec = people.world(folder)
    people.make_people(N).write_parquet(folder / "people.parquet", row_group_size=100)
    return spec


def many_csv(folder: Path) -> Path:
    (folder / "people").mkdir()
    for i in range(20):
        rows = people.make_people(N).gather_every(20, i).write_csv()
        (folder / "people" / f"{i}.csv").write_text(rows + ("torn\n" if i == 7 else ""))
    return people.write_spec(folder, source={"path": "people", "user_id": "id"})


def held(folder: Path) -> Path:
    spec = baskets.world(folder, N)
    baskets.make_rows(N).write_parquet(folder / "rows.parquet", row_group_size=500)
    return spec


def visits(folder: Path) -> Path:
    spec = items.world(folder, N)
    rows = items.make_items(N)
    rows.write_parquet(folder / "items.parquet", row_group_size=500)
    return spec


@pytest.mark.parametrize(("furnish", "shares"), [(one_parquet, 16), (many_csv, 16), (held, 2), (visits, 2)])
def test_the_vault_is_the_same_whoever_fills_it(furnish: Callable[[Path], Path], shares: int, tmp_path: Path) -> None:
    spec, workers = furnish(tmp_path), Workers()
    alone = filled(spec, tmp_path / "alone", None)[1]
    run, shared = filled(spec, tmp_path / "shared", workers)
    assert shared.equals(alone)
    assert workers.calls.count("deal_share") >= shares
    assert workers.calls.count("settle_share") >= 1
    key = run.stream("key").copy(4).tobytes().hex()
    assert key.encode() not in workers.sent, "secrets are read from the vault"
    assert b"user-1999" not in workers.sent


def test_one_csv_file_and_rows_without_ids_are_read_by_one(tmp_path: Path) -> None:
    people.make_people(N).write_csv(tmp_path / "people.csv")
    workers = Workers()
    filled(people.write_spec(tmp_path, source={"path": "people.csv", "user_id": "id"}), tmp_path / "home", workers)
    assert workers.calls.count("deal_share") == 1
    people.make_people(N).write_parquet(tmp_path / "people.parquet", row_group_size=100)
    spec = people.write_spec(tmp_path, source={"path": "people.parquet", "one_row_per_user": True})
    filled(spec, tmp_path / "home", workers)
    assert workers.calls.count("deal_share") == 2


def test_a_bad_cell_in_one_share_is_told_by_its_place(tmp_path: Path) -> None:
    spec = one_parquet(tmp_path)
    bad = pl.when(pl.col("id") == "user-1234").then(None).otherwise("sex")
    people.make_people(N).with_columns(sex=bad).write_parquet(tmp_path / "people.parquet", row_group_size=100)
    with pytest.raises(SourceError, match=r"people\.parquet, readable row 1235, column sex: the cell is empty"):
        filled(spec, tmp_path / "home", Workers())


def test_a_user_in_two_shares(tmp_path: Path) -> None:
    spec = one_parquet(tmp_path)
    again = pl.when(pl.col("id") == "user-1999").then(pl.lit("user-0")).otherwise("id")
    people.make_people(N).with_columns(id=again).write_parquet(tmp_path / "people.parquet", row_group_size=100)
    with pytest.raises(SourceError, match="a user id stands in more than one row"):
        filled(spec, tmp_path / "home", Workers())


def test_row_groups_are_cut_into_parts_that_hold_every_row_once(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    pl.DataFrame({"id": range(1050)}).write_parquet(path, row_group_size=100)
    file = ParquetFile("source", Outcome.NOTHING_RUN, path)
    for most in (1, 2, 3, SHARES):
        parts = file.parts(most)
        assert len(parts) == min(most, 11)
        read = [ids(part) for part in parts]
        assert [one for rows in read for one in rows] == [str(i) for i in range(1050)]
        assert [part.count(()) for part in parts] == [len(rows) for rows in read]
    pl.DataFrame({"file_row_number": [1, 2]}).write_parquet(path, row_group_size=1)
    assert file.parts(4) == (file,)


def ids(part: Any) -> list[Any]:
    from pldp.tasks.query import connect_memory

    with connect_memory() as database:
        return [one for (one,) in part.cells(database, {"id": "id"}).fetchall()]


def test_shares_add_up() -> None:
    import numpy as np

    kind = np.dtype([("sort_key", "u8")])
    one = Read(Dealt(kind, 3, 1, False, ((1, 2, 0),)), 1, (("a", 1),))
    other = Read(Dealt(kind, 4, 0, True, ((4, 0, 0),)), 2, (("a", 1), ("b", 1)))
    assert one + other == Read(Dealt(kind, 7, 1, True, ((5, 2, 0),)), 3, (("a", 2), ("b", 1)))
