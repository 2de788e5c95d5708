"""What a look at a file finds, whatever it holds: whether it can be read, its columns, and rows that are left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Unpack

import duckdb

from pldp.errors import Outcome, Place, Problem, SourceError
from pldp.tasks.sources.source import Source

COMPARED = 1_000_000
"""Rows of which users are compared with each other: of more a part of the users, all rows of each, so that memory does
not grow. The ingest, which comes before anything is spent, looks at all."""


@dataclass
class Checked:
    """What was found: `problems` refuse a release before it starts, `gates` at its end, `remarks` do not."""

    problems: list[Problem] = field(default_factory=list)
    gates: list[Problem] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    records: int = 0
    """Of the longest file."""

    def refuse(self, rule: str, **place: Unpack[Place]) -> None:
        """Note a problem."""
        self.problems.append(Problem.at(rule, **place))

    def raise_problems(self, outcome: Outcome = Outcome.NOTHING_RUN, *, gates: bool = False) -> None:
        """One error of everything that refuses a release before it draws, and at its `gates` if wished."""
        problems = [*self.problems, *self.gates] if gates else self.problems
        if problems:
            raise SourceError.of(problems, outcome)


def columns_there(file: Source, columns: Iterable[str | None], findings: Checked) -> set[str] | None:
    """The columns that the file should have and has not; None where it cannot be read at all."""
    named = [column for column in columns if column is not None]
    problem = file.problem()
    if problem is not None:
        findings.problems.append(problem)
        return None
    try:
        known = file.columns()
    except SourceError as error:
        findings.problems += error.problems
        return None
    missing = dict.fromkeys(column for column in named if column not in known)
    for column in missing:
        findings.refuse(f"there is no column {column!r}, which the spec names", file=file.name)
    if missing:
        for rule in file.header(known, set(named)):
            findings.refuse(rule, file=file.name)
    return set(missing)


def records_of(file: Source, named: Iterable[str | None], findings: Checked) -> int | None:
    """How many records the file has, by its bytes; None where the database would lose some, or cannot read it."""
    try:
        return file.count_with(named)
    except SourceError as error:
        findings.problems += error.problems
        return None


def counted(file: Source, look: Callable[[], Sequence[int]], findings: Checked) -> list[int] | None:
    """The counts that `look` has; None where the file cannot be read to its end."""
    try:
        return [int(cell) for cell in look()]
    except duckdb.Error:  # whose message quotes rows
        findings.problems += file.unreadable().problems
        return None


def account(file: Source, records: int, rows: int, users: int, most: Fraction, findings: Checked) -> None:
    """Tell how many of a file's records are left out, and refuse too many."""
    findings.records = max(findings.records, records)
    nameless = rows - users
    left = records - rows + nameless
    if rows == nameless:
        findings.refuse("no readable row with a user", file=file.name, remedy="Check source and its columns.")
    elif left > most * records:
        findings.refuse(
            f"{left:,} of {records:,} rows would be left out ({records - rows:,} of too few or too many cells, "
            f"{nameless:,} without a user id), more than the share source.max_left_out allows ({float(most):g})",
            file=file.name,
            remedy="Mend them, or state a larger share.",
        )
    findings.remarks.append(f"{file.name}: {records:,} rows, {left:,} left out.")


def tell_unstated(
    file: Source, columns: Sequence[str], cells: Sequence[int], users: int, default: str, findings: Checked
) -> None:
    """Tell how many choices are empty or not declared, two counts a column. Where people choose and no choice of theirs
    is declared, the spec or the file is wrong, and everybody would be protected as they did not ask."""
    for column, empty, unknown in zip(columns, cells[::2], cells[1::2], strict=False):
        if unknown and empty + unknown == users:
            findings.refuse(
                f"{unknown:,} {'cell holds' if unknown == 1 else 'cells hold'} a choice, and none one that the spec "
                f"declares, so everybody would count as {default}",
                file=file.name,
                column=column,
                remedy="Declare what people chose, or correct the column; if the default is meant, empty the cells.",
            )
            continue
        for n, state in ((empty, "hold nothing"), (unknown, "hold what the spec does not declare")):
            if n:
                findings.remarks.append(f"column {column}: {n:,} cells {state}, and count as {default}.")
