"""What a spec file may be a spec of: its model, and how it resolves to a plan. One line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pldp.questions.aggregates.question import Aggregates
from pldp.questions.aggregates.resolve import release_plan
from pldp.questions.aggregates.source import aggregates_table
from pldp.questions.aggregates.spec import AggregatesSpec
from pldp.questions.histograms.source import people_table
from pldp.questions.items.question import Items
from pldp.questions.items.resolve import make_plan as plan_items
from pldp.questions.items.resolve import make_release
from pldp.questions.items.source import items_table
from pldp.questions.items.spec import ItemsSpec
from pldp.questions.plan import Plan
from pldp.questions.resolve import make_plan
from pldp.questions.several import PEOPLE as PEOPLE
from pldp.questions.several import SEVERAL, SeveralSpec, entries_of
from pldp.questions.source import SourceTable
from pldp.spec.release import Spec

AnySpec = Spec | ItemsSpec | AggregatesSpec | SeveralSpec
Tables = Mapping[str, Any]
"""What the public files of a spec hold, by the field that names them."""


@dataclass(frozen=True)
class SpecKind:
    model: type[AnySpec]
    plan: Callable[[Any, Tables, Fraction | None], Plan]
    """From the spec, its public files, and a total in place of the spec's."""
    reads: Callable[[Any, Plan, Tables], tuple[SourceTable, ...]]
    """The tables of raw rows that it reads: from the spec, its plan and its public files."""


def _people(spec: Spec, tables: Tables, total: Fraction | None) -> Plan:
    return make_plan(spec, total)


def _items(spec: ItemsSpec, tables: Tables, total: Fraction | None) -> Plan:
    items = tables.get("items", spec.items)
    spec.check_items(items)
    if total is not None:
        spec = spec.model_copy(update={"budget": spec.budget.model_copy(update={"total": total, "bound": None})})
    asked = spec.sensitivity
    levels = None if asked is None else tables.get("sensitivity.scores")
    if asked is not None and asked.levels is not None:
        levels = tuple(asked.levels[item] for item in items)
    return make_release(spec, plan_items(spec, items, levels))


def _aggregates(spec: AggregatesSpec, tables: Tables, total: Fraction | None) -> Plan:
    catalogue = tables["catalogue"]
    return release_plan(spec, catalogue.catalogue, catalogue.sha256)


def _people_tables(spec: Spec, plan: Plan, tables: Tables) -> tuple[SourceTable, ...]:
    return (people_table(spec),)


def _items_tables(spec: ItemsSpec, plan: Plan, tables: Tables) -> tuple[SourceTable, ...]:
    return tuple(items_table(spec, question) for question in plan.questions if isinstance(question, Items))


def _aggregates_tables(spec: AggregatesSpec, plan: Plan, tables: Tables) -> tuple[SourceTable, ...]:
    listed = tables["catalogue"]
    asked = [question for question in plan.questions if isinstance(question, Aggregates)]
    return tuple(aggregates_table(spec, question, tuple(listed.items), listed.units) for question in asked)


def _several(spec: SeveralSpec, tables: Tables, total: Fraction | None) -> Plan:
    """Budgets of one unit add up. A total that is sought is that of the table of people; the others keep theirs."""
    sought = spec.people
    plans = [SPECS[entry.kind].plan(entry, tables, total if entry is sought else None) for entry in spec.questions]
    stated = [plan.total for plan in plans if plan.total is not None]
    whole = sum(stated, Fraction(0)) if stated else None
    questions = [question for plan in plans for question in plan.questions]
    return Plan(
        name=spec.name,
        total=whole,
        questions=tuple(question.beside(whole) for question in questions),
        expected_users=spec.expected.users,
        minimum_users=spec.gates.minimum_users,
        perturbed_by=plans[0].perturbed_by,
    )


def _several_tables(spec: SeveralSpec, plan: Plan, tables: Tables) -> tuple[SourceTable, ...]:
    return tuple(table for entry in spec.questions for table in SPECS[entry.kind].reads(entry, plan, tables))


def kind_of(content: Mapping[str, Any]) -> Any:
    """What a spec's content is a spec of: a table of people, unless it says so or has entries."""
    return content.get("kind", SEVERAL if "questions" in content else PEOPLE)


def spec_of(spec: AnySpec, question: Any) -> AnySpec:
    """The spec, or the entry of it, that a question was planned from; numbers are asked of the table of people."""
    kind = question.kind if question.kind in SPECS else PEOPLE
    return next(entry for entry in entries_of(spec) if entry.kind == kind)


SPECS: dict[str, SpecKind] = {
    PEOPLE: SpecKind(Spec, _people, _people_tables),
    "aggregates": SpecKind(AggregatesSpec, _aggregates, _aggregates_tables),
    "items": SpecKind(ItemsSpec, _items, _items_tables),
    SEVERAL: SpecKind(SeveralSpec, _several, _several_tables),
}
