"""An inbox with its signed plan, and messages to it, without a process or a network."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from pldp.client import Accepted, Memory, Person, check_message
from pldp.client.plan import Plan
from pldp.flows.collector import rows_of
from pldp.tasks.collector.store import Message, Store, database, opened
from pldp.tasks.handout import write_plan
from pldp.tasks.signing import make_key
from pldp.tasks.specfile import SpecFile, load_spec
from tests.people import write_spec

SECTIONS: dict[str, Any] = {"source": {"inbox": "inbox"}, "levels": {"dependence": 1}}


def inbox(folder: Path, days: float = 1, **sections: Any) -> tuple[SpecFile, Plan]:
    """A spec and the plan that lies in its inbox, valid for some days, or for some days past."""
    return signed(folder, load_spec(write_spec(folder, **{**SECTIONS, **sections})), days)


def signed(folder: Path, file: SpecFile, days: float = 1) -> tuple[SpecFile, Plan]:
    make_key(folder / "key.pem")
    (folder / "inbox").mkdir(mode=0o700)
    expires = datetime.now(UTC) + timedelta(days=days)
    issued = min(datetime.now(UTC), expires) - timedelta(days=1)
    to = folder / "inbox" / "plan.signed"
    return file, write_plan(file, folder / "key.pem", to, period="once", issued=issued, expires=expires)


def as_kept(plan: Plan, body: bytes) -> Message:
    """A message as the collector hands it to its inbox."""
    checked = check_message(plan, body)
    assert isinstance(checked, Accepted)
    return Message(checked.id, rows_of(checked), checked.token)


def answer(plan: Plan, number: int = 0, **answers: Any) -> bytes:
    """The message of a person who answers this, or everything by its first values; levels take turns."""
    listed = {one["name"]: _first(one) for one in plan.document["attributes"]}
    names = {name: list(question.choices) for name, question in plan.questions.items()}
    chosen = answers or listed
    levels = {name: choices[number % len(choices)] for name, choices in names.items()}
    return Person(plan, Memory()).answer(chosen, levels)


def _first(attribute: dict[str, Any]) -> Any:
    match attribute["kind"]:
        case "number" | "bins":
            return attribute["low"] if attribute["kind"] == "number" else 1
        case "items":
            return attribute["values"][:1]
        case "total":
            return 0
        case _:
            return attribute["values"][0]


def fill(folder: Path, plan: Plan, people: int, rejected: dict[str, int] | None = None, **answers: Any) -> None:
    """So many people's messages in the open database."""
    with Store(folder, database(folder, opened(folder))) as store:
        store.put([as_kept(plan, answer(plan, i, **answers)) for i in range(people)], rejected)
