"""Every kind's message goes through the check; whatever no answer can have led to does not, and nothing raises."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pldp.client import Accepted, Memory, Person, Rejected, check_message
from pldp.client.message import REASONS
from pldp.client.plan import Plan
from tests.pldp.client.plans import PROTOCOLS, aggregates, collection, histograms, items, numbers

PEOPLE = {"meal": "pasta", "age": 30, "town": "town-69"}
INCOMES = {"income": 41.5, "rent": 12, "hours": 0}
OWN = {"income": "a", "rent": "b", "hours": "c"}
CASES: dict[str, tuple[Any, dict[str, Any], str]] = {
    **{f"histograms {name}": (histograms(mechanism=name), PEOPLE, "mid") for name in PROTOCOLS},
    "histograms hidden": (histograms(hidden=True), PEOPLE, "high"),
    "numbers": (numbers(), INCOMES, "low"),
    "numbers stated": (numbers(["income"], tau=2), INCOMES, "low"),
    "numbers weighted": (numbers(OWN, weights=True, tau=2), INCOMES, "high"),
    **{f"numbers {name}": (numbers(mechanism=name), INCOMES, "low") for name in ("pm", "duchi", "hm", "laplace")},
    "items bits": (items(), {"items": ["milk", "bread"]}, "high"),
    "items value": (items(holds="one"), {"items": "wine"}, "low"),
    "items sampled": (items("sampling"), {"items": []}, "low"),
    "aggregates": (aggregates(), {"action": 3, "drama": 0, "comedy": 12}, "shy"),
}


def message(plan: Plan, answers: dict[str, Any], choice: str) -> dict[str, Any]:
    sent: dict[str, Any] = json.loads(Person(plan, Memory()).answer(answers, choice))
    return sent


@pytest.mark.parametrize("case", CASES)
def test_what_a_client_sends_is_accepted_whole(case: str) -> None:
    made, answers, choice = CASES[case]
    plan = collection(made)
    body = Person(plan, Memory()).answer(answers, choice, token="t" * 22)
    accepted = check_message(plan, body)
    assert isinstance(accepted, Accepted)
    sent = json.loads(body)
    assert (accepted.id.hex(), accepted.token) == (sent["id"], "t" * 22)
    assert [list(map(str, one.row)) for one in accepted.rows] == [
        row for report in sent["reports"].values() for row in report["rows"]
    ]
    # Every row fits the columns of its box, and the boxes are the sheets of the release.
    sheets = {sheet.path: question.report_types(sheet) for question, sheet in made[0].sheets}
    for _, box, row in accepted.rows:
        assert dict(box.columns) == sheets[box.path]
        assert len(row) == sum(int(kind.partition(" × ")[2] or 1) for _, kind in box.columns)


def test_a_question_left_unanswered_is_absent() -> None:
    plan = collection(histograms())
    assert set(message(plan, {"meal": "soup", "town": "town-1"}, "low")["reports"]) == {"meal", "town"}


BAD: dict[str, tuple[str, Any]] = {
    "no object": ("format", lambda m: [m]),
    "another key": ("format", lambda m: m | {"who": "me"}),
    "a key less": ("format", lambda m: {key: m[key] for key in m if key != "id"}),
    "version": ("version", lambda m: m | {"version": 2}),
    "version as a double": ("version", lambda m: m | {"version": 1.0}),
    "version as a truth value": ("version", lambda m: m | {"version": True}),
    "plan": ("plan", lambda m: m | {"plan": "0" * 64}),
    "id": ("id", lambda m: m | {"id": "A" * 32}),
    "id of another length": ("id", lambda m: m | {"id": "0" * 31}),
    "id as a number": ("id", lambda m: m | {"id": 7}),
    "token": ("token", lambda m: m | {"token": "short"}),
    "no token": ("token", lambda m: m | {"token": None}),
    "reports": ("format", lambda m: m | {"reports": []}),
    "empty": ("empty", lambda m: m | {"reports": {}}),
    "question": ("question", lambda m: m | {"reports": {"income": {"choice": "low", "rows": [["1"]]}}}),
    "choice": ("choice", lambda m: m | {"reports": {"meal": {"choice": "none", "rows": [["1"]]}}}),
    "choice as a list": ("choice", lambda m: m | {"reports": {"meal": {"choice": [], "rows": [["1"]]}}}),
    "no choice": ("choice", lambda m: m | {"reports": {"meal": {"rows": [["1"]]}}}),
    "no rows": ("format", lambda m: m | {"reports": {"meal": {"choice": "low"}}}),
    "two rows": ("rows", lambda m: m | {"reports": {"meal": {"choice": "low", "rows": [["1"], ["1"]]}}}),
    "two numbers": ("rows", lambda m: m | {"reports": {"meal": {"choice": "low", "rows": [["1", "1"]]}}}),
    **{
        f"number {number!r}": ("rows", lambda m, number=number: _meal(m, number))
        for number in (1, "01", "+1", "-0", "", "1.0", " 1", "١", "1\n", None, "9" * 21)
    },
    "negative": ("report", lambda m: _meal(m, "-1")),
    "beyond the values": ("report", lambda m: _meal(m, "4")),
    "beyond a word": ("report", lambda m: _meal(m, str(1 << 64))),
}


def _meal(sent: dict[str, Any], number: Any) -> dict[str, Any]:
    return sent | {"reports": {"meal": {"choice": "low", "rows": [[number]]}}}


@pytest.mark.parametrize("case", BAD)
def test_what_breaks_the_format_is_rejected_with_its_reason(case: str) -> None:
    plan = collection(histograms(mechanism="krr"))
    reason, change = BAD[case]
    assert reason in REASONS
    changed = change(message(plan, PEOPLE, "low"))
    assert check_message(plan, json.dumps(changed).encode()) == Rejected(reason)


@pytest.mark.parametrize("body", [b"", b"\xff", b"{", b"[" * 100_000, b"null", b"1e999", b'{"version": NaN}'])
def test_no_bytes_make_it_raise(body: bytes) -> None:
    assert check_message(collection(histograms()), body) == Rejected("format")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_a_message_is_written_in_one_encoding(encoding: str) -> None:
    plan = collection(histograms(mechanism="krr"))
    text = json.dumps(message(plan, PEOPLE, "low"))
    assert isinstance(check_message(plan, text.encode()), Accepted)
    assert check_message(plan, text.encode(encoding)) == Rejected("format")


@pytest.mark.parametrize("key", ["id", "plan", "reports", "choice", "meal"])
def test_a_key_that_stands_twice_is_refused(key: str) -> None:
    """Whoever reads it before us, a proxy that asks for tokens say, might take the first of the two."""
    plan = collection(histograms(mechanism="krr"))
    body = json.dumps(message(plan, PEOPLE, "low")).encode()
    assert check_message(plan, body.replace(f'"{key}":'.encode(), f'"{key}": 0, "{key}":'.encode(), 1)) == Rejected(
        "format"
    )


@pytest.mark.parametrize(
    ("case", "question", "rows"),
    [
        ("histograms brr", "meal", [["16"]]),
        ("histograms subset", "meal", [["15"]]),
        ("histograms olh", "meal", [[str(32749)]]),
        ("histograms olh", "meal", [[str(1 << 63)]]),
        ("histograms brr", "town", [["0", "64"]]),
        ("numbers pm", "numbers", [["0", "0", "1"], ["0", "0", "1"]]),
        ("numbers pm", "numbers", [["1", "0", "1"], ["0", "0", "1"]]),
        ("numbers pm", "numbers", [["0", "0", "1"], ["4", "0", "1"]]),
        ("numbers pm", "numbers", [["0", "0", "1"], ["1", "1", "1"]]),
        ("numbers pm", "numbers", [["0", "0", "1"], ["2", "0", "65536"]]),
        ("numbers duchi", "numbers", [["0", "0", "1"], ["2", "0", "2"]]),
        ("numbers laplace", "numbers", [["0", "0", "1"], ["2", "0", str(1 << 32)]]),
        ("numbers stated", "numbers", [["0", "0", "1"], ["1", "0", "1"]]),
        ("items bits", "items", [["64"]]),
        ("items value", "items", [["6"]]),
        ("aggregates", "aggregates", [["0", "0", "0", "0"], ["0", "0", "0", "0"]]),
        ("aggregates", "aggregates", [["1", "0", "0", str(1 << 50)], ["1", "0", "0", "0"]]),
    ],
)
def test_reports_that_no_answer_leads_to_are_rejected(case: str, question: str, rows: Any) -> None:
    made, answers, choice = CASES[case]
    plan = collection(made)
    sent = message(plan, answers, choice)
    sent["reports"] = {question: {"choice": choice, "rows": rows}}
    assert check_message(plan, json.dumps(sent).encode()) == Rejected("report")


def test_a_hidden_level_is_told_once_and_never_named() -> None:
    made, answers, choice = CASES["histograms hidden"]
    plan = collection(made)
    sent = message(plan, answers, choice)
    assert len({report["rows"][0][0] for report in sent["reports"].values()}) == 1
    assert choice not in json.dumps(sent)
    named = sent["reports"]["meal"] | {"choice": choice}
    assert check_message(plan, json.dumps(sent | {"reports": {"meal": named}}).encode()) == Rejected("choice")
    for other in {"0", "1", "2"} - {sent["reports"]["meal"]["rows"][0][0]}:
        sent["reports"]["age"]["rows"][0][0] = other
        assert check_message(plan, json.dumps(sent).encode()) == Rejected("level")
