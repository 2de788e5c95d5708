"""What a spec reads, described as data: tables of people, tables of what people hold, and what the vault keeps of both.

A kind of question describes its tables with these; one ingest reads them (tasks/ingest.py), whatever they are for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pldp.questions.cells import Choice, Codes, Declared, Importance, Product, Single
from pldp.spec.source import Holdings, Located, Source, Table

Columns = Mapping[str, NDArray[Any]]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Cell:
    """A column of the source and the rule of its cells. `name` is what the spec calls it."""

    name: str
    column: str
    rule: Single | Importance


@dataclass(frozen=True)
class Field:
    """A column of the vault, made of the positions of cells (`parts`, by their place): by a product if of several, or
    by another rule for the same cell."""

    name: str
    type: str
    parts: tuple[int, ...]
    rule: Product | Codes | None = None
    truth: bool = False
    """Whether it is for evaluations alone: no release's vault has it."""


@dataclass(frozen=True, kw_only=True)
class PeopleTable:
    """One row per person. A level of several choices is the strictest of them, the first in the plan."""

    source: Source
    user: str | None
    """The column of user ids; None where every row is a person of its own."""
    cells: tuple[Cell, ...]
    fields: tuple[Field, ...]
    weights: tuple[Cell, ...] = ()
    choices: tuple[Cell, ...] = ()
    levels: tuple[tuple[int, ...], ...] = ((),)
    """For every level column of the vault the choices that rule it; of none, everybody has the first level."""
    assigned: tuple[int, ...] = ()
    """Where levels are drawn instead: uniform 64-bit numbers below the first have the first level, and so on."""
    hidden: bool = False
    """Whether nobody is to know what a person chose."""
    unstated: str = ""
    """The level that a choice counts as which is empty or not declared."""


@dataclass(frozen=True)
class Held:
    """What some people hold, one entry per row of the source that names an item."""

    n_users: int
    users: Places
    """Whose it is: 0 … n_users − 1, rising."""
    items: Places
    """Positions among the declared items."""
    counts: Places | None = None
    """How many of it; None where rows have no count, and each is one."""


class HeldError(ValueError):
    """What people hold breaks a rule of the kind. It says which, never whose or what; `item` whether it is an item's
    column that breaks it."""

    def __init__(self, rule: str, *, item: bool = False) -> None:
        super().__init__(rule)
        self.item = item


@dataclass(frozen=True, kw_only=True)
class HoldingsTable:
    """Who holds what: any number of rows per person, and beside it, in `users`, who takes part and chose what.

    A person's choice stands in a column of either table, and is the same in all of the person's rows.
    """

    source: Holdings
    items: Declared
    """The declared items; `other` where an item that is not declared has a place."""
    undeclared: str | None
    """The rule that an item breaks which is not declared; None where such items count for nothing."""
    hold: Callable[[Held], Columns]
    """The vault's columns of what people hold, one entry per person; HeldError where they break a rule."""
    choices: Choice
    choice_field: str
    """The vault's column of choices."""
    choice: str
    """What a choice is called: a profile, a level."""
    one: str | None = None
    """The rule that a person of two different items breaks; None where people hold many."""
    stated: str | None = None
    """The column of choices in the source, if they stand there."""
    count: str | None = None
    """The column that says how many of an item a person has."""
    users: Table | None = None
    users_id: str | None = None
    users_choice: str | None = None


SourceTable = PeopleTable | HoldingsTable

Roles = tuple[dict[str, str | None], dict[str, str | None], dict[str, str | None]]
"""Columns by the fields of the spec that name them: of values, of choices, of user ids."""


def roles(table: SourceTable) -> list[tuple[Located, Roles]]:
    """What columns of every file are read as. A choice that is hidden is a value to everybody else."""
    if isinstance(table, PeopleTable):
        values: dict[str, str | None] = {f"attributes.{cell.name}": cell.column for cell in table.cells}
        choices: dict[str, str | None] = {f"levels.column ({cell.column})": cell.column for cell in table.choices}
        choices |= {f"numbers.importance.{cell.name}": cell.column for cell in table.weights}
        if table.hidden:
            values, choices = {**values, **choices}, {}
        return [(table.source, (values, choices, {"source.user_id": table.user}))]
    held = {"source.item": table.source.item, "source.count": table.count}
    ids: dict[str, str | None] = {"source.user": table.source.user}
    sources: list[tuple[Located, Roles]] = [(table.source, (held, {f"source.{table.choice}": table.stated}, ids))]
    if table.users is not None:
        taken: dict[str, str | None] = {f"users.{table.choice}": table.users_choice}
        sources.append((table.users, ({}, taken, {"users.user": table.users_id})))
    return sources
