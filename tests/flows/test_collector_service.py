"""The collector's answers, in this process: what ends taking messages, what is counted, and what health tells."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from pldp.client import Memory, Person
from pldp.client.plan import Plan
from pldp.errors import SourceError
from pldp.flows import collector_service
from pldp.flows.collecting import longest_message, settled
from pldp.flows.collector import Collector, application
from pldp.flows.collector_writer import Limits
from pldp.questions.received import share_of
from pldp.tasks.check import check
from pldp.tasks.collector.closing import close_slot
from pldp.tasks.collector.manifest import Manifest
from pldp.tasks.collector.store import Store, database
from pldp.tasks.sent import sent_of
from pldp.tasks.specfile import load_spec
from tests.flows.collected import answer, fill, inbox
from tests.pldp.client import plans
from tests.pldp.client.test_message import CASES


@pytest.fixture
def plan() -> Plan:
    return plans.collection(plans.histograms())


def message(plan: Plan, **answers: str) -> bytes:
    level = next(iter(next(iter(plan.questions.values())).choices))
    return Person(plan, Memory()).answer(answers or {"meal": "soup"}, level)


@contextmanager
def collector(folder: Path, plan: Plan, **limits: float) -> Iterator[TestClient]:
    with TestClient(application(Collector(folder, plan, b"", Limits(**limits)))) as client:  # type: ignore[arg-type]
        yield client


def test_an_expired_plan_is_answered_no_more(tmp_path: Path, plan: Plan) -> None:
    soon = replace(plan, expires=datetime.now(UTC) + timedelta(hours=1))
    with collector(tmp_path, soon) as client:
        assert client.post("/reports", content=message(plan)).status_code == 202
        health = client.get("/health")
        assert health.status_code == 200
        assert health.json() == {"status": "ok", "store": "open", "expires": f"{soon.expires:%Y-%m-%dT%H:%M:%SZ}"}
    over = replace(plan, expires=datetime.now(UTC) - timedelta(seconds=1))
    with collector(tmp_path, over) as client:
        answer = client.post("/reports", content=message(plan))
        assert (answer.status_code, answer.json()) == (410, {"status": "expired"})
        health = client.get("/health")
        assert (health.status_code, health.json()["status"], health.json()["store"]) == (503, "expired", "open")
    received = Manifest.read(close_slot(tmp_path, "monday", over))
    assert received == Manifest(1, {}), "and who came late is nobody's rejected message"


def test_health_tells_of_an_inbox_that_takes_nothing(tmp_path: Path, plan: Plan) -> None:
    with collector(tmp_path, plan, disk=1) as client:
        health = client.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "full")
        assert client.post("/reports", content=message(plan)).status_code == 503
    (tmp_path / "closed" / "monday").mkdir(parents=True)
    (tmp_path / "closed" / "monday" / "reports.parquet").write_bytes(bytes(1 << 20))
    with collector(tmp_path, plan, disk=1 << 20) as client:
        assert client.post("/reports", content=message(plan)).status_code == 503, "closed slots take room too"
    with Store(tmp_path, database(tmp_path, 0)), collector(tmp_path, plan) as client:
        health = client.get("/health")
        assert (health.status_code, health.json()["status"]) == (503, "unavailable")


def test_health_tells_of_a_disk_that_is_full_until_there_is_room(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Far below --disk: the file system itself takes nothing more."""

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    with collector(tmp_path, plan) as client:
        with monkeypatch.context() as disk:
            disk.setattr(os, "fsync", full)
            disk.setattr(Store, "put", full)
            assert client.post("/reports", content=message(plan)).status_code == 503
            for _ in range(2):  # however often it is asked
                health = client.get("/health")
                assert (health.status_code, health.json()["status"]) == (503, "full")
        assert client.get("/health").status_code == 200, "before anybody sends again"
        assert client.post("/reports", content=message(plan)).status_code == 202
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("tmp")]


def test_what_came_in_before_the_end_is_released_after_it(tmp_path: Path) -> None:
    file, own = inbox(tmp_path, days=-1)
    fill(tmp_path / "inbox", own, 3)
    closed = settled(file, "monday")
    assert closed is not None
    assert Manifest.read(closed) == Manifest(3, {})


def test_rejected_messages_count_as_unusable_and_people_as_users(tmp_path: Path) -> None:
    """Of 90 messages 60 are junk, and of the 30 people none answers both questions."""
    file, own = inbox(tmp_path)
    with collector(tmp_path / "inbox", own) as client:
        codes = [client.post("/reports", content=b"junk").status_code for _ in range(60)]
        codes += [client.post("/reports", content=answer(own, i, job="nurse")).status_code for i in range(10)]
        codes += [client.post("/reports", content=answer(own, i, sex="male")).status_code for i in range(20)]
    assert codes == [422] * 60 + [202] * 30
    closed = load_spec(file.path, settled(file, "monday"))
    sent = sent_of(closed)
    assert sent.n_users == 30
    assert share_of(sent.set_aside, sum(sent.sizes)) == Fraction(2, 3)
    (problem,) = check(closed).gates
    assert "0.667 of what clients sent would be set aside" in str(problem)


def test_counts_of_rejected_messages_are_on_disk_within_seconds(tmp_path: Path, plan: Plan) -> None:
    """Nobody sends anything that is kept, and the process may be killed at any moment."""
    with collector(tmp_path, plan, rate=8) as client:
        codes = [client.post("/reports", content=b"junk").status_code for _ in range(12)]
        assert codes.count(422) >= 8
        assert set(codes) == {422, 429}
        inner, until = client.app.routes[0].endpoint.__self__.writer, time.monotonic() + 20  # type: ignore[attr-defined]
        while inner.rejected and time.monotonic() < until:
            time.sleep(0.1)
        assert inner._store.rejected() == {"format": codes.count(422)}, "without those that were too many at a time"


@pytest.mark.parametrize("case", CASES)
def test_no_message_is_longer_than_the_longest(case: str) -> None:
    made, answers, choice = CASES[case]
    plan = plans.collection(made)
    bodies = [Person(plan, Memory()).answer(answers, choice, token="t" * 128) for _ in range(20)]
    longest = longest_message(plan)
    assert max(map(len, bodies)) <= longest < 4 * max(map(len, bodies)) + 200


def test_a_plan_of_long_messages_is_served_by_a_collector_that_takes_them(
    tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Limits] = []

    def made(folder: Path, plan: Plan, envelope: bytes, limits: Limits) -> Collector:
        taken.append(limits)
        raise KeyboardInterrupt

    monkeypatch.setattr(collector_service, "Collector", made)
    (tmp_path / "plan").write_bytes(plans.signed(plans.document(plans.histograms())))
    for least in (10, 1 << 16):
        with pytest.raises(KeyboardInterrupt):
            collector_service.serve(tmp_path / "plan", tmp_path / "inbox", "127.0.0.1", 0, Limits(body=least))
    longest = longest_message(plan)
    assert [limits.body for limits in taken] == [longest, 1 << 16]


def test_an_inbox_that_everybody_may_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan").write_bytes(plans.signed(plans.document(plans.histograms())))
    folder = tmp_path / "inbox"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(SourceError, match=r"may be written by every user .* Nothing was collected"):
        collector_service.serve(tmp_path / "plan", folder, "127.0.0.1", 0, Limits())
    assert not list(folder.iterdir())
