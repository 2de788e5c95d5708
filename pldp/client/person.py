"""One person's answers to one plan: drawn once, kept before they are sent, and never drawn again.

    plan = read_plan(envelope, fingerprint)
    person = Person(plan, Folder("answers"))
    message = person.answer({"meal": "soup"}, "high")        # send these bytes; the same again if sending fails

What is kept holds a keyed hash of each answer beside its report, so that a changed answer is told apart. With few
possible answers a hash can be undone: keep the store as safe as the answers themselves.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from pldp.client.dice import Dice
from pldp.client.message import write_message
from pldp.client.plan import Plan
from pldp.client.questions import Choice, Question, Refused


class Store(Protocol):
    """Where drawn reports are kept. `add` must be atomic, and on disk when it returns."""

    def get(self, key: str) -> str | None:
        """What is kept under this key; None before anything is."""

    def add(self, key: str, text: str) -> str:
        """Keep the text unless something is kept already; returns what is kept now."""


class Memory:
    """For one process that sends at once; what was drawn is forgotten with it."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    def get(self, key: str) -> str | None:
        return self._kept.get(key)

    def add(self, key: str, text: str) -> str:
        return self._kept.setdefault(key, text)


class Folder:
    """One file per operator, name and period, readable by its owner alone, linked into place once it is whole."""

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._path.mkdir(mode=0o700, parents=True, exist_ok=True)

    def get(self, key: str) -> str | None:
        try:
            return (self._path / f"{key}.json").read_text()
        except FileNotFoundError:
            return None

    def add(self, key: str, text: str) -> str:
        place, draft = self._path / f"{key}.json", self._path / f".{secrets.token_hex(16)}"
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as handle:
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        try:
            os.link(draft, place)  # fails if another process was first: its draw counts
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        if os.name == "posix":
            folder = os.open(self._path, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        return place.read_text()


class Person:
    def __init__(self, plan: Plan, store: Store, dice: Dice | None = None) -> None:
        self._plan, self._store, self._dice = plan, store, dice or Dice()

    def answer(
        self,
        answers: Mapping[str, Any],
        choice: str | Mapping[str, str],
        *,
        importance: Mapping[str, int] | None = None,
        token: str | None = None,
    ) -> bytes:
        """The message to send: a report on every question whose attributes are all answered.

        `choice` is one level (or profile) for all questions, or one by question; `importance` says how much numbers
        matter. Called again with the same, it gives the same message; with anything else, `Refused`.
        """
        asked = {name: one for name, one in self._plan.questions.items() if not one.missing(answers)}
        known = {one.name for question in self._plan.questions.values() for one in question.attributes}
        if strange := sorted(set(answers) - known):
            raise Refused(f"{strange[0]}: the plan does not ask for it")
        if not asked:
            raise Refused("no question is answered whole, so there is nothing to send")
        chosen = {name: _chosen(question, choice) for name, question in asked.items()}
        encoded = {name: question.encode(answers, importance or {}) for name, question in asked.items()}
        kept = self._kept()
        if kept is None:
            text = json.dumps(self._drawn(asked, chosen, encoded))
            kept = json.loads(self._store.add(self._plan.series, text))
            self._require_this_plan(kept)
        digests = self._digests(kept["salt"], chosen, encoded)
        if digests != kept["answers"]:
            raise Refused(
                "you have answered this plan with other answers or choices. A second report would tell more about you "
                "than you agreed to, so none is drawn; what was drawn first can be sent again"
            )
        return write_message(self._plan, kept["id"], kept["reports"], token)

    def message(self, token: str | None = None) -> bytes | None:
        """What was drawn before, to send again; None where nothing was."""
        kept = self._kept()
        return None if kept is None else write_message(self._plan, kept["id"], kept["reports"], token)

    def _kept(self) -> Any:
        text = self._store.get(self._plan.series)
        if text is None:
            return None
        kept = json.loads(text)
        self._require_this_plan(kept)
        return kept

    def _require_this_plan(self, kept: Mapping[str, Any]) -> None:
        if kept["plan"] != self._plan.sha256:
            raise Refused(
                f"you have answered another plan of {self._plan.name} for the period {self._plan.period}. Answering "
                "both would tell more about you than either says, so nothing is drawn"
            )

    def _drawn(
        self, asked: Mapping[str, Question], chosen: Mapping[str, Choice], encoded: Mapping[str, Any]
    ) -> dict[str, Any]:
        reports: dict[str, Any] = {}
        levels: dict[str, tuple[str, int]] = {}
        for name, question in asked.items():
            answer, choice = encoded[name], chosen[name]
            if question.group is not None and question.levels is not None:
                if question.group not in levels:
                    code = list(question.choices).index(choice.name)
                    levels[question.group] = choice.name, question.levels.draw(code, self._dice)
                level, reported = levels[question.group]
                if level != choice.name:
                    raise Refused(f"{name}: questions that share a hidden level need the same choice")
                answer = answer, reported
            rows = [[str(number) for number in row] for row in choice.channel.rows(answer, self._dice)]
            reports[name] = {"rows": rows} if question.hidden else {"choice": choice.name, "rows": rows}
        salt = secrets.token_hex(16)
        return {
            "plan": self._plan.sha256,
            "id": secrets.token_hex(16),
            "reports": reports,
            "salt": salt,
            "answers": self._digests(salt, chosen, encoded),
        }

    def _digests(self, salt: str, chosen: Mapping[str, Choice], encoded: Mapping[str, Any]) -> dict[str, str]:
        return {
            name: hmac.new(
                bytes.fromhex(salt), json.dumps([name, chosen[name].name, encoded[name]]).encode(), hashlib.sha256
            ).hexdigest()
            for name in encoded
        }


def _chosen(question: Question, choice: str | Mapping[str, str]) -> Choice:
    name = choice if isinstance(choice, str) else choice.get(question.name)
    if name not in question.choices:
        raise Refused(f"{question.name}: the choice must be one of {', '.join(question.choices)}")
    return question.choices[str(name)]
