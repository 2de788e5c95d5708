"""What a spec file may be a spec of: a table of people, items, aggregates, or several of these."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from pldp.errors import BrokenRule
from pldp.questions.entries import ENTRIES, AnyEntry
from pldp.questions.entries import PEOPLE as PEOPLE
from pldp.questions.plan import Plan
from pldp.questions.planned import PublicTables, SpecKind
from pldp.questions.question import Question
from pldp.questions.several import SEVERAL, SeveralSpec, entries_of
from pldp.questions.source import SourceTable

AnySpec = AnyEntry | SeveralSpec


def _several(spec: SeveralSpec, tables: PublicTables, total: Fraction | None) -> Plan:
    """Budgets of one unit add up. A total that is sought is that of the table of people; the others keep theirs."""
    sought = spec.people
    plans = [SPECS[entry.kind].plan(entry, tables, total if entry is sought else None) for entry in spec.questions]
    stated = [plan.total for plan in plans if plan.total is not None]
    whole = sum(stated, Fraction(0)) if stated else None
    questions = [question for plan in plans for question in plan.questions]
    _names_differ(questions)
    return Plan(
        name=spec.name,
        total=whole,
        questions=tuple(question.beside(whole) for question in questions),
        expected_users=spec.expected.users,
        minimum_users=spec.gates.minimum_users,
        perturbed_by=plans[0].perturbed_by,
    )


def _names_differ(questions: Sequence[Question]) -> None:
    """Budgets of all questions stand in one table by what was asked, and so do doubts."""
    times = Counter(subject for question in questions for subject in question.subjects)
    if repeated := [name for name, count in times.items() if count > 1]:
        raise BrokenRule(
            "attributes, providers and 'items', as which item sets are published, must have different names",
            field="questions",
            value=repeated[0],
        )


def _several_tables(spec: SeveralSpec, plan: Plan, tables: PublicTables) -> tuple[SourceTable, ...]:
    return tuple(table for entry in spec.questions for table in SPECS[entry.kind].reads(entry, plan, tables))


def kind_of(content: Mapping[str, Any]) -> Any:
    """What a spec's content is a spec of: a table of people, unless it says so or has entries."""
    return content.get("kind", SEVERAL if "questions" in content else PEOPLE)


def spec_of(spec: AnySpec, question: Any) -> AnySpec:
    """The spec, or the entry of it, that a question was planned from; numbers are asked of the table of people."""
    kind = question.kind if question.kind in SPECS else PEOPLE
    return next(entry for entry in entries_of(spec) if entry.kind == kind)


SPECS: dict[str, SpecKind] = {
    **ENTRIES,
    SEVERAL: SpecKind(SeveralSpec, _several, _several_tables),
}

_FIRST, _LAST = list(ENTRIES)[:-1], list(ENTRIES)[-1]
KINDS_STATED = f"kind must be {', '.join(_FIRST)} or {_LAST}; several at once stand under questions"
"""The rule of a spec's kind; that of several questions is never written."""


def known_kind(content: Mapping[str, Any]) -> SpecKind | None:
    """The kind that a spec's content states; None where it is none that an author may write."""
    kind = kind_of(content)
    if not isinstance(kind, str) or (kind == SEVERAL and "questions" not in content):
        return None
    return SPECS.get(kind)
