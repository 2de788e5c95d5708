"""What a kind of question that specs are written for declares: its folder's `planned.py` has one `SPEC`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pldp.questions.plan import Plan
from pldp.questions.source import SourceTable

PublicTables = Mapping[str, Any]
"""What the public files of a spec hold, by the field that names them."""


@dataclass(frozen=True)
class SpecKind:
    """A kind that specs are written for. Numbers have none: they are asked in the spec of a table of people."""

    model: type[Any]
    plan: Callable[[Any, PublicTables, Fraction | None], Plan]
    """From the spec, its public files, and a total in place of the spec's."""
    reads: Callable[[Any, Plan, PublicTables], tuple[SourceTable, ...]]
    """The tables of raw rows that it reads: from the spec, its plan and its public files."""
