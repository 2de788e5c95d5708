"""A look at what people hold in several rows: the rules that ingest finds broken once a user's rows stand together."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
from duckdb import CoalesceOperator as Coalesce
from duckdb import ConstantExpression as Constant
from duckdb import Expression
from duckdb import FunctionExpression as Function

from pldp.errors import SourceError
from pldp.tasks.buckets import gather
from pldp.tasks.checked import COMPARED, Checked
from pldp.tasks.holdings import CHOICE, COUNT, ITEM, FileRows, Holdings
from pldp.tasks.people import People
from pldp.tasks.pieces import Records
from pldp.tasks.positions import column
from pldp.tasks.query import connect_memory
from pldp.tasks.shares import roll_of
from pldp.tasks.sources.source import USER
from pldp.tasks.tags import SORT_KEY, TWIN

_KINDS = {SORT_KEY: np.uint64, TWIN: np.uint64, ITEM: np.uint32, COUNT: np.int64, CHOICE: np.uint16}


def check_together(tables: Sequence[People | Holdings], findings: Checked) -> None:
    """Bring rows together as ingest does, of as many users as are compared at the most. Rows that break a rule by
    themselves are told already, and what their users hold is not judged."""
    if not any(isinstance(table, Holdings) for table in tables):
        return
    part = Function("hash", column(USER)) % Constant(-(-findings.records // COMPARED) or 1)
    broken = {problem.file for problem in findings.problems}
    try:
        with connect_memory() as database:
            rows = {one.name: _rows(one, database, part) for table in tables for one in table.dealt}
    except (duckdb.Error, SourceError):  # a file that cannot be read, or lacks a column, is told already
        return
    bucket = gather(rows, roll_of(tables))
    for table in tables:
        if isinstance(table, Holdings):
            _, seen = table.settle(bucket)
            whole = broken.isdisjoint(one.file.name for one in table.dealt)
            findings.problems += [one for one in sorted(seen.problems, key=str) if whole or one == table.torn]


def _rows(table: People | FileRows, database: duckdb.DuckDBPyConnection, part: Expression) -> Records:
    """Whose rows a file has, and of what is held, its place, how many, and the choice: from 1 on, 0 where there is
    none."""
    placed = {SORT_KEY: Function("hash", column(USER)), TWIN: Constant(0)}
    if isinstance(table, FileRows):
        one, nothing = Constant(1), Constant(0)
        placed[ITEM] = Coalesce(column(ITEM).cast("BIGINT") + one, nothing)
        placed[COUNT] = Coalesce(column(COUNT), nothing)
        placed[CHOICE] = Coalesce(column(CHOICE).cast("BIGINT") + one, nothing)
        rows = table.raw(database)
    else:
        rows = table.raw(database, ())
    named = rows.filter(column(USER).isnotnull() & (part == Constant(0)))
    cells = named.select(*(cell.alias(name) for name, cell in placed.items())).fetchnumpy()
    made = np.empty(len(cells[SORT_KEY]), dtype=[(name, _KINDS[name]) for name in placed])
    for name in placed:
        made[name] = cells[name]
    return made
