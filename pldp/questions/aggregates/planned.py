"""From a spec of aggregates and its catalogue to the plan, and to the tables that it reads."""

from __future__ import annotations

from fractions import Fraction

from pldp.questions.aggregates.question import Aggregates
from pldp.questions.aggregates.resolve import release_plan
from pldp.questions.aggregates.source import aggregates_table
from pldp.questions.aggregates.spec import AggregatesSpec
from pldp.questions.plan import Plan
from pldp.questions.planned import PublicTables, SpecKind
from pldp.questions.source import SourceTable


def _plan(spec: AggregatesSpec, tables: PublicTables, total: Fraction | None) -> Plan:
    catalogue = tables["catalogue"]
    return release_plan(spec, catalogue.catalogue, catalogue.sha256)


def _reads(spec: AggregatesSpec, plan: Plan, tables: PublicTables) -> tuple[SourceTable, ...]:
    listed = tables["catalogue"]
    asked = [question for question in plan.questions if isinstance(question, Aggregates)]
    return tuple(aggregates_table(spec, question, tuple(listed.items), listed.units) for question in asked)


SPEC = SpecKind(AggregatesSpec, _plan, _reads)
