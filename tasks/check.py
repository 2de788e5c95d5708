"""A look at spec and source before anything starts: all that ingest would refuse, at once and in seconds.

It needs no home and no orchestration and writes nothing. What it finds are counts, for the operator's terminal: columns
and numbers of rows, never a value. A header is shown only where it is one: the spec knows a column of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import duckdb

from pldp.errors import SourceError
from pldp.questions.histograms.considered import strictest_first
from pldp.questions.histograms.spec import Category
from pldp.questions.items.question import Items
from pldp.spec.release import Spec
from pldp.tasks.inbox import NOTHING as NOTHING_PUBLISHED
from pldp.tasks.leftout import EMPTY, UNDECLARED
from pldp.tasks.query import connect_memory, statement, text
from pldp.tasks.sent import read_sent
from pldp.tasks.source import SourceFile, unstated
from pldp.tasks.specfile import NOTHING, SpecFile
from pldp.tasks.textfile import TextFile

_SHOWN = 50
"""Column names of a header that are shown."""
_COMPARED = 1_000_000
"""Users looked at for one who stands in two rows: of more a part, all rows of each, so that memory does not grow. The
ingest, which comes before anything is spent, looks at all."""
COUNT = "CASE WHEN item IS NULL THEN 0 WHEN regexp_full_match(amount, '[0-9]{1,10}(\\.0*)?') THEN "
COUNT += "CAST(split_part(amount, '.', 1) AS BIGINT) END"


@dataclass
class Checked:
    """What was found: `problems` refuse a release, `remarks` do not."""

    problems: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def raise_problems(self) -> None:
        if self.problems:
            raise SourceError("\n".join([*self.problems, NOTHING]))


def check(file: SpecFile) -> Checked:
    """Look at every file that a release of this spec would read."""
    found = Checked()
    if file.spec.source.reports is not None:
        _check_reports(file, found)
    elif isinstance(file.spec, Spec):
        _check_people(SourceFile(file.spec, file.source, tuple(strictest_first(file.spec))), found)
    else:
        _check_holdings(file, found)
    return found


def _check_reports(file: SpecFile, found: Checked) -> None:
    try:
        sent = read_sent(file.source, file.plan)
    except SourceError as error:
        found.problems.append(_bare(error))
    except OSError as error:
        rule = "Correct source.reports in the spec, or give --source."
        found.problems.append(f"{file.source}: cannot be read ({error.strerror}). {rule}")
    else:
        n_files = sum(map(len, sent.files))
        found.remarks.append(f"{file.source}: reports of {sent.n_users:,} users in {n_files:,} files.")


def _check_people(source: SourceFile, found: Checked) -> None:
    wanted = _wanted(source.file, source.wanted, found)
    if wanted is None:
        return
    present = [i for i in range(len(source.asked)) if wanted[f"cell_{i}"] is not None]
    choices = [i for i in range(len(source.level_columns)) if wanted[f"choice_{i}"] is not None]
    positions = [source.value_positions()[i] for i in present]
    positions += [f"{unstated(f'choice_{i}', 'level_domain')} AS unstated_{i}" for i in choices]
    counts = [f"cell_{i}_position = {none}" for i in present for none in (-1, -2)]
    counts += [f"unstated_{i} = {why}" for i in choices for why in (EMPTY, UNDECLARED)]
    filters = "".join(f", count(*) FILTER (user_id IS NOT NULL AND {condition})" for condition in counts)
    user = wanted.pop("user_id", None)
    # Without the column of users their cells can be looked at all the same.
    made = () if user is not None else ("CAST(row_number() OVER () AS VARCHAR) AS user_id",)
    wanted |= {} if user is None else {"user_id": user}
    select, parameters = source.file.select(wanted, *made)
    records = _records(source.file, wanted.values(), found)
    if records is None:
        return
    slices = -(-records // _COMPARED) or 1
    lists = {
        "source": select,
        "positions": ", ".join(positions) or "1 AS one",
        "counts": filters,
        "slices": str(slices),
    }
    with connect_memory() as database:
        for domain, declared in source.domains():
            values = ", ".join(text(value) for value in declared)
            database.execute(statement("10_ingest_domain", domain=domain, values=values))
        row = _counted(source.file, database, statement("17_check_people", **lists), parameters, found)
        firsts: Sequence[int | None] = ()
        if row is not None and any(row[4 : 4 + 2 * len(present)]):
            unplaced = counts[: 2 * len(present)]
            wanted_rows = ", ".join(f"min(row) FILTER (user_id IS NOT NULL AND {condition})" for condition in unplaced)
            query = statement("17_check_first", **{**lists, "firsts": wanted_rows})
            firsts = database.execute(query, parameters).fetchall()[0]
    if row is None:
        return
    rows, users, compared, different, *cells = row
    _account(source.file, records, rows, users, source.spec.source.max_left_out, found)
    if user is not None and different < compared:
        many = f"{'at least ' if slices > 1 else ''}{compared - different:,}"
        rule = f"a user id stands in more than one row ({many} rows too many); keep one row per user"
        found.problems.append(f"{source.path}, column {user}: {rule}.")
    for at, (i, missing, other) in enumerate(zip(present, cells[::2], cells[1::2], strict=False)):
        asked = source.asked[i]
        plain = isinstance(asked, Category)
        hint = f"`missing: <{'one of values' if plain else 'a number within bounds'}>` to attribute {asked.name}"
        if missing:
            state = _cells(missing, "nothing" if plain else "no number")
            place = f"{source.path}, readable row {firsts[2 * at]}, column {asked.column or asked.name}"
            found.problems.append(f"{place}: {state}, and no missing value is declared; add {hint}.")
        if other:
            rule = f"add it to values, or add `other: <one of values>` to attribute {asked.name}"
            place = f"{source.path}, readable row {firsts[2 * at + 1]}, column {asked.column or asked.name}"
            found.problems.append(f"{place}: {_cells(other, 'a value that is not declared')}: {rule}.")
    _remark_unstated(
        [source.level_columns[i] for i in choices], cells[2 * len(present) :], source.unstated_level, found
    )


def _check_holdings(file: SpecFile, found: Checked) -> None:
    rows, users = file.spec.source, file.spec.users
    (question,) = file.plan.questions
    if isinstance(question, Items):
        declared: Sequence[str] = question.items
        choices, default, where = question.level_names, question.default, "declared"
        count, choice = None, file.spec.source.level
        refuses = rows.unknown == "refuse" and file.spec.other is None
        of_users = None if file.spec.users is None else file.spec.users.level
    else:
        declared = file.tables["catalogue"].items.to_list()
        choices, default, where = question.profile_names, question.default, "in the catalogue"
        count, choice = file.spec.source.count, file.spec.source.profile
        refuses = rows.unknown == "refuse"
        of_users = None if file.spec.users is None else file.spec.users.profile
    source = TextFile(file.source, rows.format, rows.csv, "source", NOTHING)
    named = {"user_id": rows.user, "item": rows.item, "amount": count, "choice": choice}
    seen = _visits(source, named, declared, choices, found)
    if seen is not None:
        records, total, with_user, unknown, bad, *unstated_cells = seen
        _account(source, records, total, with_user, rows.max_left_out, found)
        if unknown and refuses:
            rule = "add them, or let them count for nothing with `unknown: ignore` under source"
            found.problems.append(f"{file.source}, column {rows.item}: {unknown:,} cells are not {where}; {rule}.")
        if bad and count is not None:
            found.problems.append(f"{file.source}, column {count}: {bad:,} cells are no whole number from 0 to 10^9.")
        _remark_unstated([choice] if choice else [], unstated_cells, default, found)
    if users is not None and file.users is not None:
        listed = TextFile(file.users, users.format, users.csv, "users", NOTHING)
        named = {"user_id": users.user, "item": None, "amount": None, "choice": of_users}
        seen = _visits(listed, named, (), choices, found)
        if seen is not None:
            _account(listed, seen[0], seen[1], seen[2], rows.max_left_out, found)
            _remark_unstated([of_users] if of_users else [], seen[5:], default, found)


def _visits(
    file: TextFile,
    named: Mapping[str, str | None],
    declared: Sequence[str],
    choices: Sequence[str],
    found: Checked,
) -> list[int] | None:
    wanted = _wanted(file, named, found)
    if wanted is None:
        return None
    select, parameters = file.select(wanted)
    records = _records(file, wanted.values(), found)
    if records is None:
        return None
    with connect_memory() as database:
        database.execute(statement("10_check_items"))
        database.execute(statement("10_check_item_rows"), {"names": list(declared)})
        values = ", ".join(text(value) for value in choices)
        database.execute(statement("10_ingest_domain", domain="profile_domain", values=values))
        count = "1::BIGINT" if wanted["amount"] is None else COUNT
        lists = {"source": select, "count": count, "unstated": unstated("choice", "profile_domain")}
        row = _counted(file, database, statement("17_check_visits", **lists), parameters, found)
    return None if row is None else [records, *row]


def _wanted(file: TextFile, named: Mapping[str, str | None], found: Checked) -> dict[str, str | None] | None:
    """The columns that are there; None where the file cannot be read at all."""
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
        found.problems.append(_bare(error))
        return None
    missing = dict.fromkeys(column for column in named.values() if column is not None and column not in known)
    for column in missing:
        found.problems.append(f"{path}: there is no column {column!r}, which the spec names.")
    if missing:
        found.problems += _header(file, known, {column for column in named.values() if column is not None})
    return {name: None if column in missing else column for name, column in named.items()}


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


def _records(file: TextFile, named: Iterable[str | None], found: Checked) -> int | None:
    """How many records the file has, by its bytes; None where the database would lose some, or cannot read it."""
    try:
        lines = file.lines(named)
        return file.rows() if lines is None else file.records(lines)
    except SourceError as error:
        found.problems.append(_bare(error))
        return None


def _counted(
    file: TextFile,
    database: duckdb.DuckDBPyConnection,
    query: str,
    parameters: dict[str, Any],
    found: Checked,
) -> list[int] | None:
    """The row of counts."""
    try:
        return [int(cell) for cell in database.execute(query, parameters).fetchall()[0]]
    except duckdb.Error:  # whose message quotes rows
        found.problems.append(_bare(file.unreadable()))
        return None


def _account(file: TextFile, records: int, rows: int, users: int, most: Fraction, found: Checked) -> None:
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


def _remark_unstated(columns: Sequence[str], cells: Sequence[int], default: str, found: Checked) -> None:
    for column, empty, unknown in zip(columns, cells[::2], cells[1::2], strict=False):
        for n, state in ((empty, "hold nothing"), (unknown, "hold what the spec does not declare")):
            if n:
                found.remarks.append(f"column {column}: {n:,} cells {state}, and count as {default}.")


def _cells(n: int, what: str) -> str:
    return f"1 cell holds {what}" if n == 1 else f"{n:,} cells hold {what}"


def _bare(error: SourceError) -> str:
    said = str(error)
    for nothing in (NOTHING, NOTHING_PUBLISHED, "Nothing was perturbed."):
        said = said.removesuffix(nothing)
    return said.rstrip()
