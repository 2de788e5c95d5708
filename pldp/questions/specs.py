"""What a spec file may be a spec of: its model, and how it resolves to a plan. One line each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pldp.questions.aggregates.resolve import release_plan
from pldp.questions.aggregates.spec import AggregatesSpec
from pldp.questions.items.resolve import make_plan as plan_items
from pldp.questions.items.resolve import make_release
from pldp.questions.items.spec import ItemsSpec
from pldp.questions.plan import Plan
from pldp.questions.resolve import make_plan
from pldp.spec.release import Spec

AnySpec = Spec | ItemsSpec | AggregatesSpec
Tables = Mapping[str, Any]
"""What the public files of a spec hold, by the field that names them."""


@dataclass(frozen=True)
class SpecKind:
    model: type[AnySpec]
    plan: Callable[[Any, Tables, Fraction | None], Plan]
    """From the spec, its public files, and a total in place of the spec's."""


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


PEOPLE = "histograms"
"""A table of people, one row each: what a spec is of unless it says so."""
SPECS: dict[str, SpecKind] = {
    PEOPLE: SpecKind(Spec, _people),
    "aggregates": SpecKind(AggregatesSpec, _aggregates),
    "items": SpecKind(ItemsSpec, _items),
}
