"""What an entry of a spec may be, or a spec by itself: a model of the union and a line of the mapping each."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import Discriminator, Tag

from pldp.questions.aggregates.planned import SPEC as AGGREGATES
from pldp.questions.aggregates.spec import AggregatesSpec
from pldp.questions.histograms.source import people_table
from pldp.questions.items.planned import SPEC as ITEMS
from pldp.questions.items.spec import ItemsSpec
from pldp.questions.people.spec import Spec
from pldp.questions.plan import Plan
from pldp.questions.planned import PublicTables, SpecKind
from pldp.questions.resolve import make_plan
from pldp.questions.source import SourceTable
from pldp.spec.fields import kind_of

PEOPLE = "histograms"
"""A spec that does not state its kind asks about a table of people."""


def _people(spec: Spec, tables: PublicTables, total: Fraction | None) -> Plan:
    return make_plan(spec, total)


def _people_tables(spec: Spec, plan: Plan, tables: PublicTables) -> tuple[SourceTable, ...]:
    return (people_table(spec),)


AnyEntry = Spec | ItemsSpec | AggregatesSpec
Entry = Annotated[
    Annotated[Spec, Tag(PEOPLE)] | Annotated[ItemsSpec, Tag("items")] | Annotated[AggregatesSpec, Tag("aggregates")],
    Discriminator(lambda value: kind_of(value, PEOPLE), "kind", "kind must be histograms, items or aggregates"),
]
ENTRIES: dict[str, SpecKind] = {
    PEOPLE: SpecKind(Spec, _people, _people_tables),
    "aggregates": AGGREGATES,
    "items": ITEMS,
}
