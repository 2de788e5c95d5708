"""Collect: what clients perturbed themselves, cut into partitions without a bit changed, or refused by file and row."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pldp.tasks.ingest
from pldp.channels.randomness import Keystream
from pldp.errors import SourceError, SpecError
from pldp.questions.histograms.question import Histograms
from pldp.questions.histograms.reports import supports
from pldp.questions.plan import Plan
from pldp.tasks.collect import collect
from pldp.tasks.count import add_up, count
from pldp.tasks.inbox import Reason
from pldp.tasks.reports import commit_reports, read_reports
from pldp.tasks.run import Run
from pldp.tasks.specfile import SpecFile, load_spec
from tests.people import LEVELS, histograms_of, opened, write_spec

SECTIONS: dict[str, Any] = {"source": {"reports": "inbox"}, "levels": {"dependence": 1}}


def send(inbox: Path, plan: Plan, users: int = 500, files: int = 3) -> None:
    """Clients at every level, each answering every attribute, in a few deliveries."""
    rng = np.random.default_rng(0)
    for question, sheet in plan.sheets:
        assert isinstance(question, Histograms)
        attribute, _ = question.places[sheet.path]
        for delivery in range(files):
            values = rng.integers(0, len(question.attributes[attribute].values), users).astype(np.uint16)
            stream = Keystream.seeded(1, *sheet.labels, delivery)
            reports = question.draw(sheet, {sheet.fields[0]: values}, stream, None)
            commit_reports(inbox / sheet.path / f"day-{delivery}.parquet", reports)


def clients(folder: Path, **how: int) -> tuple[Run, SpecFile]:
    spec = write_spec(folder, **SECTIONS)
    send(folder / "inbox", load_spec(spec).plan, **how)
    return opened(spec, folder / "home")


def all_reports(paths: list[Path]) -> list[int]:
    return sorted(int(report) for path in paths for report in read_reports(path)["report"])


@pytest.mark.parametrize("cells", [1 << 24, 1 << 12])
def test_every_report_arrives_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", cells)
    run, file = clients(tmp_path)
    found = collect.fn(run, file)
    assert found.n_users == 4500
    assert found.partitions == -(-4500 * 8 // cells)
    for _, sheet in run.plan.sheets:
        sent = sorted((tmp_path / "inbox" / sheet.path).glob("*"))
        kept = [run.report_file(sheet, i) for i in range(found.partitions)]
        assert all_reports(kept) == all_reports(sent)
        first, arrived = (read_reports(paths[0])["report"] for paths in (kept, sent))
        assert first.dtype == arrived.dtype
        shorter = min(len(first), len(arrived))
        assert first[:shorter].tolist() != arrived[:shorter].tolist(), "not in the order of arrival"
    plan, tallies = histograms_of(run), add_up(count.fn(run, None, range(found.partitions)))
    assert [support.n.tolist() for support in supports(plan, tallies)] == [[1500] * 3] * 2


def test_a_repeat_changes_nothing(tmp_path: Path) -> None:
    run, file = clients(tmp_path)
    first = collect.fn(run, file)
    kept = {path: path.stat().st_ino for path in run.reports.rglob("*.parquet")}
    assert collect.fn(run, file) == first
    assert {path: path.stat().st_ino for path in run.reports.rglob("*.parquet")} == kept


def test_another_delivery_is_another_release(tmp_path: Path) -> None:
    run, file = clients(tmp_path)
    some = next((tmp_path / "inbox").rglob("*.parquet"))
    some.rename(some.with_name("day-9.parquet"))
    again, _ = opened(file.path, tmp_path / "home")
    assert again.release_id != run.release_id


def aside(file: SpecFile, home: Path) -> dict[str, tuple[int, int]]:
    """What collecting into a home sets aside: files and reports by reason."""
    received = collect.fn(*opened(file.path, home)).received
    assert received is not None
    return {one.reason: (one.files, one.reports) for one in received.set_aside}


def test_a_report_that_the_plan_cannot_make_is_set_aside_alone(tmp_path: Path) -> None:
    run, file = clients(tmp_path)
    path = tmp_path / "inbox" / "attribute=job" / "level=mid" / "day-1.parquet"
    reports = read_reports(path)["report"].copy()
    reports[41] |= 0b1000_0000  # job has six values: bits 6 and 7 are padding
    path.unlink()
    commit_reports(path, {"report": reports})
    run, file = opened(file.path, tmp_path / "home")
    found = collect.fn(run, file)
    assert aside(file, tmp_path / "home-1") == {Reason.IMPOSSIBLE: (0, 1)}
    assert found.n_users == 4500
    tallies = add_up(count.fn(run, None, range(found.partitions)))
    assert [support.n.tolist() for support in supports(histograms_of(run), tallies)] == [
        [1500] * 3 if attribute.name != "job" else [1500, 1499, 1500] for attribute in histograms_of(run).attributes
    ]


@pytest.mark.parametrize(
    "table",
    [
        pa.table({"report": pa.array([1], pa.uint16())}),
        pa.table({"report": pa.array([1], pa.int8())}),
        pa.table({"report": pa.array([b"a"], pa.binary(1))}),
        pa.table({"reports": pa.array([1], pa.uint8())}),
        pa.table({"report": pa.array([1], pa.uint8()), "user": [1]}),
    ],
)
def test_a_file_of_another_shape_is_set_aside(tmp_path: Path, table: pa.Table) -> None:
    _, file = clients(tmp_path)
    odd = tmp_path / "inbox" / "attribute=job" / "level=low" / "odd.parquet"
    pq.write_table(table, odd)
    room = odd.stat().st_size  # for a report per byte
    assert aside(file, tmp_path / "home-2") == {Reason.SHAPE: (1, room)}


def test_nulls_and_truncated_files_are_set_aside(tmp_path: Path) -> None:
    _, file = clients(tmp_path)
    folder = tmp_path / "inbox" / "attribute=sex" / "level=high"
    pq.write_table(pa.table({"report": pa.array([1, None], pa.uint8())}), folder / "null.parquet")
    assert aside(file, tmp_path / "home-3") == {Reason.IMPOSSIBLE: (0, 1)}
    (folder / "null.parquet").write_bytes((folder / "day-0.parquet").read_bytes()[:-20])
    assert set(aside(file, tmp_path / "home-4")) == {Reason.SHAPE}


def test_folders_that_the_spec_does_not_name_are_set_aside(tmp_path: Path) -> None:
    """Partial answers are what is left: fewer people answered that attribute."""
    _, file = clients(tmp_path)
    (tmp_path / "inbox" / "attribute=job" / "level=low").rename(tmp_path / "inbox" / "attribute=job" / "level=lowest")
    again, file = opened(file.path, tmp_path / "home")
    found = collect.fn(again, file)
    assert found.n_users == 4500
    assert found.received is not None
    assert found.received.reports["attribute=job/level=low"] == 0
    assert found.received.reports["attribute=sex/level=low"] == 1500
    assert set(aside(file, tmp_path / "home-5")) == {Reason.PLACE}


def test_a_question_that_nobody_answered_is_left_out_of_what_is_estimated(tmp_path: Path) -> None:
    _, file = clients(tmp_path)
    shutil.rmtree(tmp_path / "inbox" / "attribute=job")
    run, file = opened(file.path, tmp_path / "home")
    assert collect.fn(run, file).n_users == 4500
    assert run.plan.subjects == ("job", "sex")
    assert run.answered.subjects == ("sex",)
    (narrowed,) = run.answered.questions
    assert [sheet.path for sheet in narrowed.sheets()] == [f"attribute=sex/level={level}" for level in LEVELS]


def test_an_empty_inbox_is_refused(tmp_path: Path) -> None:
    run, file = clients(tmp_path, users=0)
    with pytest.raises(SourceError, match="no reports"):
        collect.fn(run, file)


def test_reports_take_neither_ids_nor_level_columns(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="they hold no ids"):
        load_spec(write_spec(tmp_path, **{**SECTIONS, "source": {"reports": "inbox", "user_id": "id"}}))
    with pytest.raises(SpecError, match="the folders name the levels"):
        load_spec(write_spec(tmp_path, **{**SECTIONS, "levels": {"dependence": 1, "column": "level"}}))
    with pytest.raises(SpecError, match="either path"):
        load_spec(write_spec(tmp_path, **{**SECTIONS, "source": {"path": "a.csv", "reports": "inbox"}}))
