"""A clock that goes backwards: the newest release stays the one that was opened last."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from pathlib import Path

import pytest

from pldp.tasks import run
from tests.faults.conftest import read
from tests.tasks.published import FAILED, publish_by_hand


def set_clock(monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    class Clock(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Clock:
            return cls.fromisoformat(moment).replace(tzinfo=tz)

    monkeypatch.setattr(run, "datetime", Clock)


def test_the_newest_stays_the_newest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb

    from pldp.tasks.results import list_releases, read_release

    ids = []
    for slot, moment in (("a", "2026-05-02"), ("b", "2026-05-01"), ("c", "2020-01-01"), ("d", "2026-05-02")):
        set_clock(monkeypatch, moment)
        home, release_id = publish_by_hand(tmp_path, slot)
        ids.append(release_id)
        with duckdb.connect(str(home / "results.duckdb"), read_only=True) as results:
            for view in ("releases", "histograms", "budgets", "level_estimates", "validations"):
                found = results.execute(f"SELECT DISTINCT release_id FROM latest_{view}").fetchall()  # noqa: S608
                assert found == [(release_id,)]
        assert read_release(home, "people").release_id == release_id
    assert list_releases(home)["release_id"].to_list() == ids[::-1]
    times = {row[0]: row[3] for row in read(home)["releases"]}
    assert [times[key] for key in ids] == sorted(set(times.values()))
    assert {moment.date().isoformat() for moment in times.values()} == {"2026-05-02"}


def test_a_clock_that_goes_on_is_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody is moved by the releases of another name, and a refused or unfinished one counts as opened."""
    from tests.people import opened

    set_clock(monkeypatch, "2026-05-09")
    publish_by_hand(tmp_path, "z", name="people-too")
    set_clock(monkeypatch, "2026-05-01")
    publish_by_hand(tmp_path, "a")
    set_clock(monkeypatch, "2026-05-03")
    publish_by_hand(tmp_path, "b", FAILED)
    opened(tmp_path / "spec.yaml", tmp_path / "home", "unfinished")
    set_clock(monkeypatch, "2026-05-02")
    home, release_id = publish_by_hand(tmp_path, "c")
    times = [(row[1], row[3]) for row in sorted(read(home)["releases"], key=lambda row: row[3])]
    assert [(name, moment.date().day, moment.microsecond) for name, moment in times] == [
        ("people", 1, 0),
        ("people", 3, 0),
        ("people", 3, 2),
        ("people-too", 9, 0),
    ]
    (newest,) = [row for row in read(home)["releases"] if row[0] == release_id]
    assert newest[3] == datetime(2026, 5, 3, 0, 0, 0, 2, tzinfo=UTC).replace(tzinfo=None)


def test_a_resumed_release_keeps_its_moment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.people import opened, world

    spec = world(tmp_path)
    found, _ = opened(spec, tmp_path / "home")
    before = (found.folder / "opened.json").read_bytes()
    set_clock(monkeypatch, "2001-01-01")
    again, _ = opened(spec, tmp_path / "home")
    assert again == found
    assert (found.folder / "opened.json").read_bytes() == before
