"""What a look at a file finds, whatever it holds: whether it can be read, its columns, and rows that are left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

import duckdb

from pldp.errors import SourceError
from pldp.tasks.inbox import NOTHING as NOTHING_PUBLISHED
from pldp.tasks.people import NOTHING as NOTHING_PERTURBED
from pldp.tasks.specerrors import NOTHING
from pldp.tasks.textfile import TextFile

_SHOWN = 50
"""Column names of a header that are shown."""


@dataclass
class Checked:
    """What was found: `problems` refuse a release, `remarks` do not."""

    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def raise_problems(self) -> None:
        if self.problems:
            raise SourceError("\n".join([*self.problems, NOTHING]))


def columns_there(file: TextFile, columns: Iterable[str | None], found: Checked) -> set[str] | None:
    """The columns that the file should have and has not; None where it cannot be read at all."""
    named = [column for column in columns if column is not None]
    path = file.path
    try:
        path.stat()
    except OSError as error:
        rule = f"Correct {file.field}.path in the spec, or give --source."
        found.problems.append(f"{path}: cannot be read ({error.strerror}). {rule}")
        return None
    if path.is_dir():
        found.problems.append(f"{path}: is a folder. Name the file in it.")
        return None
    if path.exists() and not path.is_file():
        found.problems.append(f"{path}: is no regular file. Name a file that can be read from its start again.")
        return None
    try:
        known = file.columns()
    except SourceError as error:
        found.problems.append(bare(error))
        return None
    missing = dict.fromkeys(column for column in named if column not in known)
    found.problems += [f"{path}: there is no column {column!r}, which the spec names." for column in missing]
    if missing:
        found.problems += _header(file, known, set(named))
    return set(missing)


def _header(file: TextFile, known: tuple[str, ...], named: set[str]) -> list[str]:
    """The header that was seen. A first line in which no column of the spec stands may be somebody's row: not shown."""
    likely = file.likely_delimiter(known)
    parts = [part.strip() for name in known for part in ([name] if likely is None else re.split(r"[,;\t|]", name))]
    if not named & set(parts):
        rule = f"if it is no header, say `header: false` and `columns` under {file.field}.csv"
        return [f"{file.path}: the first line has {len(parts)} cells and no column of the spec; {rule}."]
    more = f", … and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    found = [f"{file.path}: the header has these columns: {', '.join(known[:_SHOWN])}{more}."]
    return found if likely is None else [*found, f"{file.path}: the header looks like one column; {likely}."]


def records_of(file: TextFile, named: Iterable[str | None], found: Checked) -> int | None:
    """How many records the file has, by its bytes; None where the database would lose some, or cannot read it."""
    try:
        return file.records_with(named)
    except SourceError as error:
        found.problems.append(bare(error))
        return None


def counted(file: TextFile, look: Callable[[], Sequence[int]], found: Checked) -> list[int] | None:
    """The counts that `look` has; None where the file cannot be read to its end."""
    try:
        return [int(cell) for cell in look()]
    except duckdb.Error:  # whose message quotes rows
        found.problems.append(bare(file.unreadable()))
        return None


def account(file: TextFile, records: int, rows: int, users: int, most: Fraction, found: Checked) -> None:
    """Tell how many of a file's records are left out, and refuse too many."""
    nameless = rows - users
    left = records - rows + nameless
    if rows == nameless:
        found.problems.append(f"{file.path}: no readable row with a user. Check source and its columns.")
    elif left > most * records:
        found.problems.append(
            f"{file.path}: {left:,} of {records:,} rows would be left out ({records - rows:,} of too few or too many "
            f"cells, {nameless:,} without a user id), more than "
            f"the share source.max_left_out allows ({float(most):g})."
        )
    found.remarks.append(f"{file.path}: {records:,} rows, {left:,} left out.")


def remark_unstated(columns: Sequence[str], cells: Sequence[int], default: str, found: Checked) -> None:
    """Tell how many choices are empty or not declared, two counts a column."""
    for column, empty, unknown in zip(columns, cells[::2], cells[1::2], strict=False):
        for n, state in ((empty, "hold nothing"), (unknown, "hold what the spec does not declare")):
            if n:
                found.remarks.append(f"column {column}: {n:,} cells {state}, and count as {default}.")


def bare(error: SourceError) -> str:
    """What an error says, without what happened to the data."""
    said = str(error)
    for nothing in (NOTHING, NOTHING_PUBLISHED, NOTHING_PERTURBED):
        said = said.removesuffix(nothing)
    return said.rstrip()
