"""The collection plan of a release: what clients need to draw by, and nothing else. See docs/wire.md.

The document's bytes are what is hashed and signed, so they are made here once and never again from the same content.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from pldp.client.plan import FORMAT, VERSION
from pldp.questions.plan import Plan
from pldp.questions.specs import spec_of


def collection_plan(
    plan: Plan, spec: Any, *, period: str, issued: datetime, expires: datetime, adapted: bytes | None = None
) -> bytes:
    """The document for one period; `adapted` makes it that of the second phase, whose people were not asked before."""
    parts = [question.asked(spec_of(spec, question), adapted) for question in plan.questions]
    attributes = [attribute for part in parts for attribute in part.attributes]
    questions = [question for part in parts for question in part.questions]
    for named, what in ((attributes, "attributes"), (questions, "questions")):
        names = [one["name"] for one in named]
        if len(set(names)) != len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"name: two {what} of a collection plan are called {twice!r}; rename one of them")
    _require_apart(questions)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "name": plan.name,
        "period": period,
        "issued": _instant(issued),
        "expires": _instant(expires),
        "release_plan": plan.sha256,
        "title": spec.title or plan.name,
        "description": spec.description or "",
        "attributes": attributes,
        "questions": questions,
    }
    return _written(content).encode()


def _require_apart(questions: list[dict[str, Any]]) -> None:
    """ValueError where a hidden level of one kind of question is a public choice of another: clients refuse such a
    plan, for who chooses one level for all questions would send it beside the report that hides it."""
    names = [
        [{one["name"] for one in part["choices"]} for part in questions if hides == ("hidden" in part)]
        for hides in (True, False)
    ]
    hidden, public = set[str]().union(*names[0]), (one for one in names[1] if len(one) > 1)
    for shared in (hidden & one for one in public):
        if shared:
            raise ValueError(
                f"levels.choices: {min(shared)!r} is hidden in one entry of questions and a public choice in another, "
                "and who chooses it for all would tell it; give the choices of one of them other names"
            )


def _written(content: dict[str, Any]) -> str:
    """JSON with a line for each attribute and question, so that two plans can be compared."""
    lines = []
    for key, part in content.items():
        entries = [json.dumps(one, ensure_ascii=False) for one in part] if isinstance(part, list) else []
        text = "[\n" + ",\n".join(entries) + "\n]" if entries else json.dumps(part, ensure_ascii=False)
        lines.append(f"{json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _instant(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
