"""A look at spec and source before anything starts: all that ingest would refuse, at once and in seconds.

It needs no home and no orchestration and writes nothing. What it finds are counts, for the operator's terminal: columns
and numbers of rows, never a value. A header is shown only where it is one: the spec knows a column of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from pldp.errors import SourceError
from pldp.tasks.checked import Checked, account, bare, columns_there, counted, records_of, remark_unstated
from pldp.tasks.checked_people import check_people
from pldp.tasks.described import description_of
from pldp.tasks.itemrows import Holdings, ItemRows
from pldp.tasks.query import connect_memory, statement
from pldp.tasks.sent import read_sent
from pldp.tasks.specfile import SpecFile


def check(file: SpecFile) -> Checked:
    """Look at every file that a release of this spec would read."""
    found = Checked()
    described = None if file.spec.source.reports is not None else description_of(file)
    if described is None:
        _check_reports(file, found)
    elif isinstance(described, Holdings):
        check_holdings(described, found)
    else:
        check_people(described, found)
    return found


def _check_reports(file: SpecFile, found: Checked) -> None:
    try:
        sent = read_sent(file.source, file.plan)
    except SourceError as error:
        found.problems.append(bare(error))
    except OSError as error:
        rule = "Correct source.reports in the spec, or give --source."
        found.problems.append(f"{file.source}: cannot be read ({error.strerror}). {rule}")
    else:
        n_files = sum(map(len, sent.files))
        found.remarks.append(f"{file.source}: reports of {sent.n_users:,} users in {n_files:,} files.")


def check_holdings(held: Holdings, found: Checked) -> None:
    """Look at a table of people's items, and at the table of users if there is one."""
    rows, default = held.rows, held.choices[held.default]
    seen = _visits(rows, held.items.to_list(), held.choices, found)
    if seen is not None:
        records, total, with_user, unknown, bad, *unstated = seen
        account(rows.file, records, total, with_user, held.most_left_out, found)
        if unknown and held.refuse_unknown:
            rule = "add them, or let them count for nothing with `unknown: ignore` under source"
            place = f"{rows.file.path}, column {rows.item}"
            found.problems.append(f"{place}: {unknown:,} cells are not {held.declared}; {rule}.")
        if bad and rows.count is not None:
            rule = "are no whole number from 0 to 10^9"
            found.problems.append(f"{rows.file.path}, column {rows.count}: {bad:,} cells {rule}.")
        remark_unstated([rows.choice] if rows.choice else [], unstated, default, found)
    users = held.users
    if users is not None:
        seen = _visits(users, (), held.choices, found)
        if seen is not None:
            account(users.file, seen[0], seen[1], seen[2], held.most_left_out, found)
            remark_unstated([users.choice] if users.choice else [], seen[5:], default, found)


def _visits(rows: ItemRows, declared: Sequence[str], choices: tuple[str, ...], found: Checked) -> list[int] | None:
    missing = columns_there(rows.file, rows.columns, found)
    if missing is None:
        return None
    there = ItemRows(rows.file, *(None if column in missing else column for column in rows.columns))
    records = records_of(rows.file, there.columns, found)
    if records is None:
        return None
    with connect_memory() as database:
        database.execute(statement("10_check_items"))
        database.execute(statement("10_check_item_rows"), {"names": list(declared)})

        def look() -> Sequence[int]:
            query = statement("17_check_visits", source=there.select(database, choices))
            return database.execute(query).fetchall()[0]

        row = counted(rows.file, look, found)
    return None if row is None else [records, *row]
