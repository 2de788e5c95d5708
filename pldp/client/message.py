"""The message that a client sends: one person's reports on one plan, as JSON. docs/wire.md describes it.

    {"version": 1, "plan": "<hash>", "id": "<32 hex digits>", "token": "…",
     "reports": {"meal": {"choice": "high", "rows": [["5"]]}}}

`check_message` is what a collector asks of every message; it needs the plan and nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pldp.client.channels import Hidden, Row
from pldp.client.plan import Plan
from pldp.client.questions import Box, Choice, Question

VERSION = 1
_ID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_TOKEN = re.compile(r"[A-Za-z0-9_-]{16,128}", re.ASCII)
_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,19}", re.ASCII)
"""A decimal number in one spelling only; the longest has the 20 digits of 2^64."""


class Collected(NamedTuple):
    """A row that was accepted: the question, the box that it goes to, and its whole numbers in the box's order."""

    question: str
    box: Box
    row: Row


@dataclass(frozen=True)
class Accepted:
    id: bytes
    """Sixteen random bytes that the client chose: a message sent twice has the same."""
    token: str | None
    rows: tuple[Collected, ...]


@dataclass(frozen=True)
class Rejected:
    reason: str
    """One of REASONS."""


REASONS = {
    "format": "it is no JSON object in UTF-8 with exactly the keys of a message, each once",
    "version": "its version is unknown",
    "plan": "it answers another plan",
    "id": "its id is not 32 hex digits",
    "token": "its token has no such form",
    "empty": "it holds no report",
    "question": "it names a question that the plan does not have",
    "choice": "it names a choice that the question does not have, or one where levels are hidden",
    "rows": "rows do not have the shape that the plan says",
    "report": "no answer can have led to a report of it",
    "level": "reports that share one level tell different ones",
}


class _Unfit(Exception):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key that stands twice is refused: readers before and after us might take another one of the two."""
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a key stands twice")
    return mapping


_JSON = json.JSONDecoder(object_pairs_hook=_once)


def write_message(plan: Plan, id_: str, reports: Mapping[str, Any], token: str | None = None) -> bytes:
    """The bytes that a client sends: reports by question, the plan that they were drawn by, a token if one is asked."""
    message = {"version": VERSION, "plan": plan.sha256, "id": id_, "token": token, "reports": reports}
    kept = {key: part for key, part in message.items() if part is not None}
    return json.dumps(kept, ensure_ascii=False, separators=(",", ":")).encode()


def check_message(plan: Plan, body: bytes) -> Accepted | Rejected:
    """All reports of a message, or why none of them counts. Nothing that a stranger sends makes it raise."""
    try:
        return _checked(plan, body)
    except _Unfit as unfit:
        return Rejected(str(unfit))


def _checked(plan: Plan, body: bytes) -> Accepted:
    try:
        message = _JSON.decode(body.decode())
    except (ValueError, RecursionError):
        raise _Unfit("format") from None
    if not isinstance(message, dict) or not {"version", "plan", "id", "reports"} <= message.keys() <= _KEYS:
        raise _Unfit("format")
    id_, token, reports = message["id"], message.get("token"), message["reports"]
    if type(message["version"]) is not int or message["version"] != VERSION:
        raise _Unfit("version")
    if message["plan"] != plan.sha256:
        raise _Unfit("plan")
    if not isinstance(id_, str) or not _ID.fullmatch(id_):
        raise _Unfit("id")
    if "token" in message and not (isinstance(token, str) and _TOKEN.fullmatch(token)):
        raise _Unfit("token")
    if not isinstance(reports, dict):
        raise _Unfit("format")
    if not reports:
        raise _Unfit("empty")
    rows: list[Collected] = []
    levels: dict[str, int] = {}
    for name, report in reports.items():
        question = plan.questions.get(name)
        if question is None:
            raise _Unfit("question")
        choice, report_rows = _report(question, report)
        if question.group is not None and levels.setdefault(question.group, report_rows[0][0]) != report_rows[0][0]:
            raise _Unfit("level")
        boxes = choice.boxes if len(choice.boxes) > 1 else choice.boxes * len(report_rows)
        rows.extend(Collected(name, box, row) for box, row in zip(boxes, report_rows, strict=True))
    return Accepted(bytes.fromhex(id_), token, tuple(rows))


_KEYS = {"version", "plan", "id", "token", "reports"}


def _report(question: Question, report: Any) -> tuple[Choice, list[Row]]:
    """The choice and the rows of one question, once they are known to be some that the plan can lead to."""
    if not isinstance(report, dict) or report.keys() != ({"rows"} if question.hidden else {"choice", "rows"}):
        raise _Unfit("choice" if isinstance(report, dict) and "rows" in report else "format")
    name = next(iter(question.choices)) if question.hidden else report["choice"]
    choice = question.choices.get(name) if isinstance(name, str) else None
    if choice is None:
        raise _Unfit("choice")
    written, (height, width) = report["rows"], choice.channel.shape
    if not isinstance(written, list) or len(written) != height:
        raise _Unfit("rows")
    rows = [_row(row, width) for row in written]
    if question.hidden:
        # Whoever reads the report must not learn the level from what is possible: all levels' reports look alike.
        channels = [one.channel for one in question.choices.values()]
        possible = any(isinstance(channel, Hidden) and channel.possible(rows) for channel in channels)
    else:
        possible = choice.channel.possible(rows)
    if not possible:
        raise _Unfit("report")
    return choice, rows


def _row(written: Any, width: int) -> Row:
    if not isinstance(written, list) or len(written) != width:
        raise _Unfit("rows")
    if not all(isinstance(number, str) and _WHOLE.fullmatch(number) for number in written):
        raise _Unfit("rows")
    return tuple(int(number) for number in written)
