"""A look at spec and source before anything starts: all that ingest would refuse, at once and in seconds.

It needs no home and no orchestration and writes nothing. What it finds are counts, for the operator's terminal: columns
and numbers of rows, never a value. A header is shown only where it is one: the spec knows a column of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import duckdb
from duckdb import ConstantExpression as Constant
from duckdb import FunctionExpression as Function

from pldp.errors import Outcome, Problem, SourceError
from pldp.questions.received import share_of
from pldp.tasks.checked import Checked, account, columns_there, counted, records_of, tell_unstated
from pldp.tasks.checked_people import check_people
from pldp.tasks.checked_together import check_together
from pldp.tasks.holdings import MOST, NO_COUNT, UNKNOWN, WHY, FileRows, Holdings
from pldp.tasks.people import People
from pldp.tasks.positions import EMPTY, UNDECLARED, column
from pldp.tasks.query import connect_memory
from pldp.tasks.sent import sent_of
from pldp.tasks.source import described
from pldp.tasks.sources.listing import list_files, names_many
from pldp.tasks.sources.source import USER
from pldp.tasks.specfile import SpecFile

MOST_BYTES = 64 << 20
"""Of a source that a release looks at cell by cell before it starts: a second's work."""


def is_large(file: SpecFile) -> bool:
    """Whether a release looks at the columns of its source alone before it starts: cells wait for ingest, which looks
    at all of them before anything is spent, on whatever the release runs on."""
    return not file.spec.source.remote and file.reports is None and sum(map(_size, file.inputs)) > MOST_BYTES


def _size(path: Path) -> int:
    with suppress(OSError, SourceError):  # whoever reads it says what is wrong with it
        many = list_files(path, Outcome.NOTHING_RUN) if names_many(path) else None
        return path.stat().st_size if many is None else sum(file.size for file in many)
    return 0


def check_columns(file: SpecFile) -> Checked:
    """Look at nothing but the columns of files: at no row, however many there are."""
    findings = Checked()
    for table in described(file):
        for rows in table.dealt:
            columns_there(rows.file, rows.columns, findings)
    return findings


def check(file: SpecFile) -> Checked:
    """Look at every file that a release of this spec would read."""
    findings = Checked()
    if file.spec.source.inbox is not None and file.spec.source.inbox == file.spec.source.reports:
        findings.remarks.append(f"{file.source}: a collector's inbox; a release closes it and reads what came in.")
        return findings
    if file.spec.source.reports is not None:
        _check_reports(file, findings)
        return findings
    tables = described(file)
    for table in tables:
        if isinstance(table, People):
            check_people(table, findings)
        else:
            check_holdings(table, findings)
    check_together(tables, findings)
    return findings


def _check_reports(file: SpecFile, findings: Checked) -> None:
    try:
        sent = sent_of(file)
    except SourceError as error:
        findings.problems += error.problems
    except OSError as error:
        remedy = "Correct source.reports in the spec, or give --source."
        findings.refuse(f"cannot be read ({error.strerror})", file=file.source, remedy=remedy)
    else:
        n_files = sum(map(len, sent.files))
        findings.remarks.append(f"{file.source}: reports of {sent.n_users:,} users in {n_files:,} files.")
        findings.remarks += [one.sentence for one in sent.set_aside]
        share, most = share_of(sent.set_aside, sum(sent.sizes)), file.spec.source.max_left_out
        if share > most:
            rule = (
                f"{float(share):.3g} of what clients sent would be set aside, more than the share source.max_left_out "
                f"allows ({float(most):g}): the gate set_aside would refuse the release"
            )
            remedy = "Take these files away or have them sent again; raise source.max_left_out only if you know why."
            findings.gates.append(Problem.at(rule, file=file.source, remedy=remedy))


def check_holdings(held: Holdings, findings: Checked) -> None:
    """Look at a table of people's items, and at the table of users if there is one."""
    default = held.choices.levels[held.choices.default]
    for rows in held.dealt:
        seen = _seen(rows, findings)
        if seen is None:
            continue
        records, total, with_user, unknown, no_count, *unstated = seen
        account(rows.file, records, total, with_user, rows.most_left_out, findings)
        if unknown and held.undeclared is not None:
            rule = f"{unknown:,} {'cell' if unknown == 1 else 'cells'}: {held.undeclared}"
            findings.refuse(rule, file=rows.file.name, column=rows.item)
        if no_count and rows.count is not None:
            rule = f"{no_count:,} {'cell is' if no_count == 1 else 'cells are'} no whole number from 0 to {MOST:,}"
            findings.refuse(rule, file=rows.file.name, column=rows.count)
        tell_unstated(rows.file, [rows.choice] if rows.choice else [], unstated, with_user, default, findings)


def _seen(rows: FileRows, findings: Checked) -> list[int] | None:
    """Records, rows, rows with a user, and of these: items that are not declared, counts that are none, choices that
    are empty or not declared. None where the file cannot be read."""
    missing = columns_there(rows.file, rows.columns, findings)
    if missing is None:
        return None
    user, item, count, choice = (None if name in missing else name for name in rows.columns)
    there = replace(rows, user=user, item=item, count=count, choice=choice)
    records = records_of(rows.file, there.columns, findings)
    if records is None:
        return None
    with connect_memory() as database:
        row = counted(rows.file, lambda: _counts(there, database), findings)
    return None if row is None else [records, *row]


def _counts(rows: FileRows, database: duckdb.DuckDBPyConnection) -> Sequence[int]:
    named = column(USER).isnotnull()
    states = [column(UNKNOWN), column(NO_COUNT), *(column(WHY) == Constant(why) for why in (EMPTY, UNDECLARED))]
    met = [named & state for state in states]
    looked = rows.raw(database).select(named.alias("named"), *(one.alias(f"met_{i}") for i, one in enumerate(met)))
    counts = [Function("count_if", column(name)) for name in looked.columns]
    totals = looked.aggregate([Function("count"), *counts]).fetchall()[0]
    return [int(n or 0) for n in totals]  # of no row count_if is null
