"""What a kind of question declares once: its folder has one `KIND`, and registries read what they need of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pldp.page.published import KindPage
from pldp.tables.declaration import Table

if TYPE_CHECKING:
    from pldp.questions.plan import Plan
    from pldp.questions.source import SourceTable

PublicTables = Mapping[str, Any]
"""What the public files of a spec hold, by the field that names them."""


@dataclass(frozen=True)
class Kind:
    question: str
    """Its class, as "module:name": it loads with the first plan."""
    page: KindPage
    """Its part of a release's page."""
    tables: tuple[Table, ...]
    """What it publishes."""


@dataclass(frozen=True)
class SpecKind:
    """A kind that specs are written for. Numbers have none: they are asked in the spec of a table of people."""

    model: type[Any]
    plan: Callable[[Any, PublicTables, Fraction | None], Plan]
    """From the spec, its public files, and a total in place of the spec's."""
    reads: Callable[[Any, Plan, PublicTables], tuple[SourceTable, ...]]
    """The tables of raw rows that it reads: from the spec, its plan and its public files."""
