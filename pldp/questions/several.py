"""The spec of a release that asks the same people questions of several kinds (`questions:`). See docs/spec.md.

Every entry is what a spec of its kind says, without what is said once for the whole release. People are the same where
their user id is: a person's rows of all tables stand in one partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from pldp.errors import BrokenRule
from pldp.questions.entries import Entry
from pldp.questions.people.combination import Combination
from pldp.questions.people.spec import Spec
from pldp.spec.fields import Model, Name, Text
from pldp.spec.gates import Gates
from pldp.spec.levels import ExpectedUsers
from pldp.spec.retention import Retention
from pldp.spec.runner import Runner
from pldp.spec.schedule import Schedule
from pldp.spec.source import MOST_LEFT_OUT, MaxLeftOut, collected
from pldp.spec.wording import Description, Label, Wording

SEVERAL = "several"
ONCE = ("name", "title", "description", "gates", "retention", "schedule", "runner")
"""What the release says, and no entry."""


class Sent(Model):
    """A folder of reports that clients perturbed, of all questions, or the inbox of a collector."""

    reports: Text
    inbox: Text | None = None
    max_left_out: MaxLeftOut = MOST_LEFT_OUT

    _collected = model_validator(mode="before")(collected)


class SeveralSpec(Model):
    """At most one entry of a kind. A table of people, where there is one, says who takes part."""

    kind: Annotated[Literal["several"], Field(exclude=True)] = "several"
    name: Name
    title: Label = None
    description: Description = None
    sent: Annotated[Sent | None, Field(alias="source", exclude=True)] = None
    questions: Annotated[tuple[Entry, ...], Field(min_length=2)]
    expected: ExpectedUsers = ExpectedUsers()
    gates: Gates = Gates()
    retention: Retention = Retention()
    schedule: Schedule | None = None
    runner: Annotated[Runner, Field(exclude=True)] = Runner()

    @model_validator(mode="before")
    @classmethod
    def _said_once(cls, content: Any) -> Any:
        """Every entry as a spec of its own."""
        entries = content.get("questions") if isinstance(content, dict) else None
        if not isinstance(entries, list | tuple) or not all(isinstance(entry, dict) for entry in entries):
            return content
        return {**content, "questions": [_whole(content, entry) for entry in entries]}

    @model_validator(mode="after")
    def _together(self) -> Self:
        kinds = [entry.kind for entry in self.questions]
        if len(set(kinds)) != len(kinds):
            raise BrokenRule(
                "must be of different kinds: what a kind publishes stands in tables of its own", field="questions"
            )
        if any(entry.source.remote for entry in self.questions):
            raise BrokenRule(
                "rows of a database server are read by a spec of one kind only, whose one export is its "
                "snapshot. Export the tables to Parquet files",
                field="questions",
            )
        people = self.people
        if people is not None and people.source.one_row_per_user:
            raise BrokenRule(
                "a table of people needs source.user_id beside other tables: rows of one person are brought "
                "together by it",
                field="questions",
            )
        return self

    @property
    def people(self) -> Spec | None:
        """The entry about a table of people, if there is one."""
        return next((entry for entry in self.questions if isinstance(entry, Spec)), None)

    @property
    def source(self) -> Any:
        """Where the first entry's rows lie, or everybody's reports."""
        return self.questions[0].source

    @property
    def users(self) -> None:
        return None

    @property
    def combination(self) -> Combination | None:
        return None if self.people is None else self.people.combination

    def files(self) -> list[str]:
        """Everything whose content makes another release; the first entry's source first."""
        return list(dict.fromkeys(path for entry in self.questions for path in entry.files()))

    def public_tables(self) -> dict[str, Any]:
        """Files that the plan follows from, by the field that names them: a field is of one kind."""
        return {field: table for entry in self.questions for field, table in entry.public_tables().items()}

    @property
    def refusal(self) -> str | None:
        return next((reason for entry in self.questions if (reason := entry.refusal) is not None), None)

    @property
    def wording(self) -> Wording:
        """What it says for readers alone."""
        parts = [entry.wording for entry in self.questions]
        attributes = {name: label for part in parts for name, label in part.attributes.items()}
        values = {name: labels for part in parts for name, labels in part.values.items()}
        return Wording(self.title, self.description, attributes, values)


def entries_of(spec: Any) -> tuple[Any, ...]:
    """A spec's entries; one of a single kind is its own."""
    return spec.questions if isinstance(spec, SeveralSpec) else (spec,)


def _whole(content: Mapping[str, Any], entry: dict[str, Any]) -> dict[str, Any]:
    return dict(_keys(content, entry))


def _keys(content: Mapping[str, Any], entry: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """ValueError where an entry says what the release says."""
    for key, value in entry.items():
        if key in ONCE:
            raise ValueError(f"questions: {key} is said once, at the top, for all questions")
        yield key, value
    yield from ((key, content[key]) for key in ("name", "gates", "retention") if key in content)
    if "expected" in content and isinstance(content["expected"], dict):
        expected = entry.get("expected", {})
        if isinstance(expected, dict) and "users" in expected:
            raise BrokenRule("expected.users is said once, at the top, for all questions", field="questions")
        yield "expected", {**(expected if isinstance(expected, dict) else {}), **content["expected"]}
    if "source" in content:
        if "source" in entry:
            raise BrokenRule(
                "an entry takes no source where clients' reports of all questions are it", field="questions"
            )
        yield "source", content["source"]
