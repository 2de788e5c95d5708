"""From a spec of items and its public files to the plan, and to the tables that it reads."""

from __future__ import annotations

from fractions import Fraction

from pldp.questions.items.question import Items
from pldp.questions.items.resolve import make_plan, make_release
from pldp.questions.items.source import items_table
from pldp.questions.items.spec import ItemsSpec
from pldp.questions.plan import Plan
from pldp.questions.planned import PublicTables, SpecKind
from pldp.questions.source import SourceTable


def _plan(spec: ItemsSpec, tables: PublicTables, total: Fraction | None) -> Plan:
    items = tables.get("items", spec.items)
    spec.check_items(items)
    if total is not None:
        spec = spec.model_copy(update={"budget": spec.budget.model_copy(update={"total": total, "bound": None})})
    asked = spec.sensitivity
    levels = None if asked is None else tables.get("sensitivity.scores")
    if asked is not None and asked.levels is not None:
        levels = tuple(asked.levels[item] for item in items)
    return make_release(spec, make_plan(spec, items, levels))


def _reads(spec: ItemsSpec, plan: Plan, tables: PublicTables) -> tuple[SourceTable, ...]:
    return tuple(items_table(spec, question) for question in plan.questions if isinstance(question, Items))


SPEC = SpecKind(ItemsSpec, _plan, _reads)
