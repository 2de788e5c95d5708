"""The inbox on disk: nothing acknowledged is lost or doubled, and nothing tells who, whence or when."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

import polars as pl
import pytest

from pldp.client import Memory, Person, check_message
from pldp.client.message import Accepted
from pldp.client.plan import Plan
from pldp.tasks.collector.closing import close_slot
from pldp.tasks.collector.store import Message, Outcome, Store, database, opened, token_hash
from tests.people import mode
from tests.pldp.client import plans
from tests.tasks.collector.pages import commits, offsets


@pytest.fixture
def plan() -> Plan:
    return plans.collection(plans.histograms())


def message(plan: Plan, meal: str = "soup", level: str | None = None) -> Message:
    level = level or next(iter(next(iter(plan.questions.values())).choices))
    body = Person(plan, Memory()).answer({"meal": meal}, level)
    checked = check_message(plan, body)
    assert isinstance(checked, Accepted)
    return Message(checked.id, json.dumps([[one.box.path, one.row] for one in checked.rows]).encode())


def test_a_message_counts_once_and_its_id_is_not_taken_twice(tmp_path: Path, plan: Plan) -> None:
    one, other = message(plan), message(plan)
    with Store(tmp_path, database(tmp_path, 0)) as store:
        assert store.put([one, one, other, Message(one.id, b"[]")]) == [
            Outcome.STORED, Outcome.REPEATED, Outcome.STORED, Outcome.CONFLICT,
        ]  # fmt: skip
        assert store.put([other]) == [Outcome.REPEATED]
        assert len(list(store.contents())) == 2


def test_a_token_is_spent_once_and_leaves_nothing(tmp_path: Path, plan: Plan) -> None:
    token = secrets.token_urlsafe(24)
    first, second = message(plan), message(plan)
    with Store(tmp_path, database(tmp_path, 0)) as store:
        store.add_tokens([token_hash(token)])
        assert store.put([Message(first.id, first.content)]) == [Outcome.UNKNOWN_TOKEN]
        assert store.put([Message(first.id, first.content, token)]) == [Outcome.STORED]
        assert store.put([Message(first.id, first.content, token)]) == [Outcome.REPEATED]
        assert store.put([Message(second.id, second.content, token)]) == [Outcome.UNKNOWN_TOKEN]
        assert store.tokens() == []
    left = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert token.encode() not in left
    assert token_hash(token) not in left, "what is deleted is overwritten, in the log too"


def test_pages_do_not_tell_the_order(tmp_path: Path, plan: Plan) -> None:
    """Messages come one by one, each with a token; on every page rows lie in the order of their keys."""
    with Store(tmp_path, database(tmp_path, 0)) as store:
        store.add_tokens(token_hash(str(i)) for i in range(300))
        for i in range(60):
            one = message(plan)
            assert store.put([Message(one.id, one.content, str(i))]) == [Outcome.STORED]
            assert commits(Path(f"{store.path}-wal")) == []
        assert not Path(f"{store.path}-shm").exists()
    pages = offsets(database(tmp_path, 0), b"attribute=")
    assert sum(map(len, pages)) == 60
    assert all(cells == sorted(cells, reverse=True) for cells in pages)


def test_without_that_pages_do_tell_the_order(tmp_path: Path) -> None:
    """What the test above looks for is there where rows are written as they come."""
    with Store(tmp_path, database(tmp_path, 0)) as store:
        for _ in range(60):
            store.connection.execute("INSERT INTO messages VALUES (?, ?)", (secrets.token_bytes(16), b"[]"))
        assert len(commits(Path(f"{store.path}-wal"))) == 60
    assert any(cells != sorted(cells, reverse=True) for cells in offsets(database(tmp_path, 0), b"[]"))


def test_messages_join_the_others_by_the_hundred(tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pldp.tasks.collector.store.TOGETHER", 10)
    sent = [message(plan) for _ in range(25)]
    with Store(tmp_path, database(tmp_path, 0)) as store:
        assert [store.put([one])[0] for one in sent] == [Outcome.STORED] * 25
        assert len(store.connection.execute("SELECT key FROM messages").fetchall()) == 20
        assert len(store.connection.execute("SELECT key FROM fresh").fetchall()) == 5
    with Store(tmp_path, database(tmp_path, 0)) as store:
        assert store.put(sent) == [Outcome.REPEATED] * 25
        assert sorted(store.contents()) == sorted(one.content for one in sent)


def test_files_are_the_owner_s_alone(tmp_path: Path, plan: Plan) -> None:
    before = os.umask(0)
    try:
        with Store(tmp_path, database(tmp_path, 0)) as store:
            store.put([message(plan)])
            assert {path.name: mode(path) for path in tmp_path.iterdir()} == dict.fromkeys(
                ("ids.key", "inbox-0.sqlite", "inbox-0.sqlite-wal", "inbox-0.sqlite.lock"), 0o600
            )
    finally:
        os.umask(before)


def test_one_process_holds_a_database(tmp_path: Path) -> None:
    with Store(tmp_path, database(tmp_path, 0)), pytest.raises(BlockingIOError):
        Store(tmp_path, database(tmp_path, 0))


def test_a_closed_slot_holds_reports_alone(tmp_path: Path, plan: Plan) -> None:
    """No id, no order, no database; tokens nobody used go to the next slot, late messages too."""
    sent = [message(plan) for _ in range(50)]
    with Store(tmp_path, database(tmp_path, 0)) as store:
        store.add_tokens(token_hash(str(i)) for i in range(60))
        for i, one in enumerate(sent):
            store.put([Message(one.id, one.content, str(i))], {"report": 1})
    closed = close_slot(tmp_path, "monday", plan)
    assert close_slot(tmp_path, "monday", plan) == closed, "again changes nothing"
    assert opened(tmp_path) == 1
    assert not database(tmp_path, 0).exists()
    assert json.loads((closed / "received.json").read_text()) == {"people": 50, "rejected": {"report": 50}}
    rows = pl.concat(
        [pl.read_parquet(p, hive_partitioning=False) for p in (closed / "attribute=meal").rglob("*.parquet")]
    )
    told = [json.loads(one.content)[0][1][0] for one in sent]
    assert sorted(rows["report"].to_list()) == sorted(told)
    left = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert not any(one.id in left or one.id.hex().encode() in left for one in sent)
    with Store(tmp_path, database(tmp_path, 1)) as store:
        assert store.needs_tokens
        assert len(store.tokens()) == 10


@pytest.mark.parametrize("step", ["pldp.tasks.collector.closing._next", "pldp.tasks.collector.closing._write"])
def test_closing_resumes_where_it_died(step: str, tmp_path: Path, plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    with Store(tmp_path, database(tmp_path, 0)) as store:
        store.put([message(plan) for _ in range(20)])

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(step, dies)
        with pytest.raises(KeyboardInterrupt):
            close_slot(tmp_path, "monday", plan)
    closed = close_slot(tmp_path, "monday", plan)
    assert json.loads((closed / "received.json").read_text())["people"] == 20
    assert [path.name for path in sorted(tmp_path.glob("inbox-*"))] == ["inbox-1.sqlite"]
