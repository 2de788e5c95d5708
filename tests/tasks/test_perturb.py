"""Perturb: drawn once, packed, in an order that tells nothing."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import pldp.tasks.ingest
from pldp.tasks.ingest import Ingested, ingest
from pldp.tasks.partitions import read_partition
from pldp.tasks.perturb import Commits, perturb, perturb_together
from pldp.tasks.reports import commit_reports, read_reports
from pldp.tasks.run import Run
from tests.people import JOBS, digests, histograms_of, make_people, mode, opened, world
from tests.tasks.sheets import columns_at, file_at, rows_at


def ingested(folder: Path, slot: str = "manual", **sections: Any) -> tuple[Run, Ingested]:
    run, file = opened(world(folder, **sections), folder / "home", slot)
    return run, ingest.fn(run, file)


def draw(run: Run, partitions: int) -> int:
    return sum(perturb.fn(run, 0, choice, range(partitions)) for choice in run.plan.choices(0))


def test_one_report_a_user_attribute_and_level(tmp_path: Path) -> None:
    run, found = ingested(tmp_path)
    assert draw(run, found.partitions) == 2000 * 2
    sizes = dict(make_people(2000)["level"].value_counts().iter_rows())
    plan = histograms_of(run)
    for attribute in plan.attributes:
        for level in plan.levels:
            reports = columns_at(run, f"attribute={attribute.name}/level={level}")
            assert list(reports) == ["report"]
            assert reports["report"].dtype == np.uint8, "up to eight values take a byte"
            assert reports["report"].shape == (sizes[level],)


def test_what_is_committed_is_not_drawn_again(tmp_path: Path) -> None:
    run, found = ingested(tmp_path)
    draw(run, found.partitions)
    before = digests(run.reports)
    lost = file_at(run, "attribute=sex/level=mid")
    lost.unlink()
    assert draw(run, found.partitions) == (make_people(2000)["level"] == "mid").sum()
    after = digests(run.reports)
    redrawn = str(lost.relative_to(run.reports))
    assert {name for name in before if before[name] != after[name]} == {redrawn}


def test_all_choices_are_drawn_of_a_partition_that_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, found = ingested(tmp_path)
    reads: list[int] = []

    def read(run: Run, partition: int, columns: Sequence[str]) -> pl.DataFrame:
        reads.append(partition)
        return read_partition(run, partition, columns)

    monkeypatch.setattr("pldp.tasks.perturb.read_partition", read)
    assert perturb_together.fn(run, 0, range(found.partitions)) == 2000 * 2
    assert reads == list(range(found.partitions))
    assert draw(run, found.partitions) == 0, "the same files"


def test_what_is_committed_is_what_was_drawn_then(tmp_path: Path) -> None:
    """A kernel may work on in the memory of reports that are still on their way to the disk."""
    memory = np.arange(50_000, dtype=np.uint32)
    with Commits() as commits:
        for place in range(4):
            commits.add(tmp_path / str(place), {"report": memory})
            memory += 1
    assert commits.reports == 4 * memory.size
    for place in range(4):
        assert read_reports(tmp_path / str(place))["report"][0] == place


def test_a_commit_that_fails_fails_the_draw(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(OSError, match="file"), Commits() as commits:
        commits.add(tmp_path / "file" / "0", {"report": np.zeros(3, dtype=np.uint8)})


def test_two_workers_at_once_commit_one_draw(tmp_path: Path) -> None:
    run, found = ingested(tmp_path)
    with ThreadPoolExecutor(4) as pool:
        drawn = sum(pool.map(lambda _: draw(run, found.partitions), range(4)))
    assert drawn == 2000 * 2
    assert len(digests(run.reports)) == 6, "no drafts, no second copies"


def test_partitions_together_hold_everybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", 1 << 11)
    run, found = ingested(tmp_path)
    assert found.partitions == 8
    assert draw(run, found.partitions) == 2000 * 2
    sizes = [
        sum(len(rows_at(run, f"attribute=job/level={level}", i)) for level in histograms_of(run).levels)
        for i in range(found.partitions)
    ]
    assert sum(sizes) == 2000
    # Keys are uniform: 250 a partition, five standard deviations are 74.
    assert all(abs(size - 250) < 74 for size in sizes)


def test_a_weak_budget_shows_whose_report_is_whose(tmp_path: Path) -> None:
    """At ε = 500 hardly a bit is flipped, so reports show the values: the right ones, in another order each time."""
    people = pl.DataFrame({"id": range(600), "job": list(JOBS) * 100, "level": ["low"] * 600})
    attributes = [{"name": "job", "values": list(JOBS)}]
    spec = world(tmp_path, people, attributes=attributes, budget={"total": 500}, mechanism="brr")
    orders = []
    for slot in ("a", "b"):
        run, file = opened(spec, tmp_path / "home", slot)
        draw(run, ingest.fn(run, file).partitions)
        orders.append(columns_at(run, "attribute=job/level=low")["report"].tolist())
    source = [1 << JOBS.index(job) for job in people["job"]]
    assert sorted(orders[0]) == sorted(orders[1]) == sorted(source)
    assert orders[0] != orders[1]
    assert source not in orders


def test_two_releases_of_the_same_rows_draw_differently(tmp_path: Path) -> None:
    drawn = []
    for slot in ("a", "b"):
        run, found = ingested(tmp_path, slot)
        draw(run, found.partitions)
        drawn.append(set(digests(run.reports).values()))
    assert drawn[0].isdisjoint(drawn[1])


def test_a_level_nobody_chose_has_empty_files(tmp_path: Path) -> None:
    people = make_people(300).with_columns(level=pl.lit("low"))
    run, found = ingested(tmp_path, people=people)
    assert draw(run, found.partitions) == 600
    assert rows_at(run, "attribute=job/level=high").shape == (0, 1)


def test_attributes_follow_their_own_level_columns(tmp_path: Path) -> None:
    people = make_people(1000).with_columns(job_level=pl.lit("low"), sex_level=pl.col("level"))
    levels = {"dependence": 1, "column": {"job": "job_level", "sex": "sex_level"}}
    run, found = ingested(tmp_path, people=people, levels=levels)
    draw(run, found.partitions)
    sizes = dict(people["level"].value_counts().iter_rows())
    for level in histograms_of(run).levels:
        assert len(rows_at(run, f"attribute=job/level={level}")) == (1000 if level == "low" else 0)
        assert len(rows_at(run, f"attribute=sex/level={level}")) == sizes[level]


def test_files_hold_reports_only(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b.parquet"
    reports = {"level": np.arange(12, dtype=np.uint8), "report": np.arange(12, dtype=np.uint32) << 20}
    assert commit_reports(path, reports) == 12
    assert commit_reports(path, {name: column[::-1] for name, column in reports.items()}) == 0
    kept = read_reports(path)
    assert list(kept) == ["level", "report"]
    for name, column in reports.items():
        assert kept[name].dtype == column.dtype
        assert np.array_equal(kept[name], column)
    schema = pq.read_schema(path)
    assert schema.names == ["level", "report"]
    assert schema.metadata is None
    assert not any(schema.field(name).metadata for name in schema.names)
    assert mode(path.parent) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["b.parquet"]


@pytest.mark.parametrize("n", [0, 1, 100_000])
def test_files_of_any_length(n: int, tmp_path: Path) -> None:
    """Single numbers, and lists of them."""
    rng = np.random.default_rng(n)
    reports = {"report": rng.integers(0, 1 << 16, n, dtype=np.uint16)}
    lists = {"report": rng.integers(0, 1 << 63, (n, 17), dtype=np.uint64)}
    for name, columns in (("r", reports), ("l", lists)):
        assert commit_reports(tmp_path / f"{name}.parquet", columns) == n
        kept = read_reports(tmp_path / f"{name}.parquet")
        assert kept["report"].dtype == columns["report"].dtype
        assert np.array_equal(kept["report"], columns["report"])
