"""Drawn once, kept before it is sent, never drawn again."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from pldp.client import Dice, Folder, Memory, Person, Refused
from tests.pldp.client.plans import aggregates, collection, histograms, items, numbers

ANSWERS = {"meal": "soup", "age": 42, "town": "town-3"}
PLAN = collection(histograms())


def never(count: int) -> bytes:
    raise AssertionError("something was drawn")


def test_the_same_answer_gives_the_same_message(tmp_path: Path) -> None:
    message = Person(PLAN, Folder(tmp_path / "kept")).answer(ANSWERS, "high")
    again = Person(PLAN, Folder(tmp_path / "kept"), Dice(never))
    assert again.answer(ANSWERS, "high") == again.message() == message
    assert json.loads(again.message("t" * 22) or b"") == json.loads(message) | {"token": "t" * 22}
    assert Person(PLAN, Memory()).message() is None


@pytest.mark.parametrize(
    ("answers", "choice"),
    [
        (ANSWERS | {"meal": "pasta"}, "high"),
        (ANSWERS | {"age": 29}, "high"),
        (ANSWERS, "low"),
        (ANSWERS, {"meal": "high", "age": "high", "both": "high", "town": "low"}),
        ({"meal": "soup"}, "high"),
    ],
)
def test_a_changed_answer_or_choice_is_refused_and_nothing_is_drawn(
    tmp_path: Path, answers: dict[str, Any], choice: Any
) -> None:
    message = Person(PLAN, Folder(tmp_path)).answer(ANSWERS, "high")
    person = Person(PLAN, Folder(tmp_path), Dice(never))
    with pytest.raises(Refused, match="other answers or choices"):
        person.answer(answers, choice)
    assert person.message() == message


def test_an_answer_that_is_reported_alike_is_no_change(tmp_path: Path) -> None:
    """Ages of one bin are one value; what lies between them never left the device."""
    message = Person(PLAN, Folder(tmp_path)).answer(ANSWERS, "high")
    assert Person(PLAN, Folder(tmp_path), Dice(never)).answer(ANSWERS | {"age": 59.5}, "high") == message


def test_another_plan_for_the_same_period_is_refused(tmp_path: Path) -> None:
    Person(PLAN, Folder(tmp_path)).answer(ANSWERS, "high")
    changed = collection(histograms(budget={"total": 24}))
    assert changed.series == PLAN.series
    with pytest.raises(Refused, match="another plan of people for the period 2026-11"):
        Person(changed, Folder(tmp_path), Dice(never)).answer(ANSWERS, "high")
    assert Person(collection(histograms(), "2026-12"), Folder(tmp_path)).answer(ANSWERS | {"meal": "salad"}, "low")


def test_it_is_on_disk_before_it_can_be_sent(tmp_path: Path) -> None:
    message = json.loads(Person(PLAN, Folder(tmp_path / "kept")).answer(ANSWERS, "high"))
    (file,) = (tmp_path / "kept").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    kept = json.loads(file.read_text())
    assert (kept["id"], kept["reports"]) == (message["id"], message["reports"])
    assert "soup" not in file.read_text()
    assert "town-3" not in file.read_text()


def _answer(folder: str, barrier: Any, sent: Any) -> None:
    barrier.wait()
    sent.put(Person(PLAN, Folder(folder)).answer(ANSWERS, "high"))


def test_of_processes_that_answer_at_once_one_draws(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    barrier, sent = context.Barrier(4), context.Queue()
    workers = [context.Process(target=_answer, args=(str(tmp_path), barrier, sent)) for _ in range(4)]
    for worker in workers:
        worker.start()
    assert len({sent.get(timeout=60) for _ in workers}) == 1
    for worker in workers:
        worker.join()
    assert len(os.listdir(tmp_path)) == 1, "no draft is left"


@pytest.mark.parametrize(
    ("made", "answers", "choice"),
    [
        (histograms(), {}, "high"),
        (histograms(), {"meal": "fish"}, "high"),
        (histograms(), {"meal": ["soup"]}, "high"),
        (histograms(), {"age": "42"}, "high"),
        (histograms(), {"age": True}, "high"),
        (histograms(), {"age": float("nan")}, "high"),
        (histograms(), {"shoe": 42, "meal": "soup"}, "high"),
        (histograms(), {"meal": "soup"}, "none"),
        (histograms(), {"meal": "soup"}, {"age": "high"}),
        (histograms(hidden=True), {"meal": "soup", "town": "town-1"}, {"meal": "high", "town": "low"}),
        (items(), {"items": ["bread", "cake"]}, "high"),
        (items(), {"items": "bread"}, "high"),
        (items(), {"items": 3}, "high"),
        (aggregates(), {"action": 1.5, "drama": 0, "comedy": 0}, "shy"),
    ],
)
def test_what_is_no_answer_is_refused_and_nothing_is_kept(made: Any, answers: dict[str, Any], choice: Any) -> None:
    store = Memory()
    plan = collection(made)
    with pytest.raises(Refused):
        Person(plan, store).answer(answers, choice)
    assert store.get(plan.series) is None


@pytest.mark.parametrize("weight", [-1, 1.5, 1_000_001, "much"])
def test_importance_is_a_whole_number(weight: Any) -> None:
    plan = collection(numbers({"income": "a", "rent": "b", "hours": "c"}, weights=True, tau=2))
    answers = {"income": 3, "rent": 3, "hours": 3}
    with pytest.raises(Refused, match="importance"):
        Person(plan, Memory()).answer(answers, "high", importance={"rent": weight})
