"""Ingest: items file, users file and catalogue to vault. Items become positions in the catalogue."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import numpy as np
import pyarrow as pa

from pldp.aggregates.plan import AggregatesPlan
from pldp.errors import SourceError
from tasks.aggregates.file import AggregatesFile
from tasks.aggregates.run import AggregatesRun
from tasks.ingest import Ingested, complete, discard, key_range, refuse_second_draw
from tasks.query import connect, says_full, statement, text
from tasks.source import NOTHING
from tasks.stage import stage
from tasks.textfile import TextFile

PARTITION_CELLS = 1 << 18
"""Partitions are sized by cells (users × attributes): 2 MB of aggregates and as much of reports."""

SLICE_ROWS = 1 << 18
"""Rows of the files whose users are told apart at a time."""

_UNKNOWN_ITEM = 1
_COUNT = "CASE WHEN item IS NULL THEN 0 WHEN regexp_full_match(amount, '[0-9]{1,10}(\\.0*)?') THEN "
_COUNT += "CAST(split_part(amount, '.', 1) AS BIGINT) END"


@stage()
def ingest_items(run: AggregatesRun, file: AggregatesFile) -> Ingested:
    """Fill the run's vault, or find it full. One that was not filled to its end is filled anew: nothing was drawn."""
    n_users = complete(run.vault)
    if n_users is None:
        refuse_second_draw(run)
        discard(run.vault)
        try:
            n_users = _fill(run, file)
        except BaseException:
            # The corrected source is another release, so nobody would come back for this half.
            discard(run.vault)
            raise
    return Ingested(n_users, n_partitions(n_users, run.plan))


def n_partitions(n_users: int, plan: AggregatesPlan) -> int:
    return max(1, -(-n_users * len(plan.attributes) // PARTITION_CELLS))


def _fill(run: AggregatesRun, file: AggregatesFile) -> int:
    spec, plan = file.spec, run.plan
    items = TextFile(file.source, spec.source.format, spec.source.csv, "source", NOTHING)
    # The key only orders users inside the vault; it is forgotten with this call.
    key = run.stream("key").copy(4).tobytes().hex()
    with connect(run.vault, columns=len(plan.attributes) + 4) as vault:
        _catalogue(file, vault)
        profiles = ", ".join(text(name) for name in plan.profile_names)
        vault.execute(statement("10_ingest_domain", domain="profile_domain", values=profiles))
        _visits(file, items, vault, key)
        _stated(file, vault, key)
        vault.execute(statement("13_ingest_visit_quarantine"))
        if "csv" in {items.format, "" if file.users is None else _users(file).format}:
            vault.execute(statement("14_ingest_rejects"))
        vault.execute(statement("15_ingest_visit_nameless"))
        _refuse_faults(file, items, vault)
        vault.execute("BEGIN")  # complete only once it is checked: a rerun after a crash asks no more than that
        vault.execute(statement("12_ingest_takers"))
        slices = max(1, -(-_one(vault, "18_ingest_visit_rows", {}) // SLICE_ROWS))
        default = {"default": plan.profile_names.index(plan.default)}
        for number in range(slices):
            keys = key_range(number, slices)
            if _one(vault, "18_ingest_torn", keys):
                raise _torn(file)
            vault.execute(statement("12_ingest_takers_slice"), {**keys, **default})
        vault.execute(statement("19_ingest_done"))
        n_users = _one(vault, "19_ingest_n_users", {})
        if n_users == 0:
            raise SourceError(f"{items.path}: no readable row with a user. Check source and its columns. {NOTHING}")
        vault.execute("COMMIT")
    return n_users


def _catalogue(file: AggregatesFile, vault: duckdb.DuckDBPyConnection) -> None:
    """The public items and what one occurrence of each adds, in grid units."""
    listed = file.listed
    positions = np.arange(len(listed.items), dtype=np.uint32)
    vault.from_arrow(pa.table({"name": listed.items.to_arrow(), "position": positions})).create("items")
    weights = {f"w_{column}": units for column, units in enumerate(listed.units.T)}
    vault.from_arrow(pa.table({"item": positions, **weights})).create("weights")


def _visits(file: AggregatesFile, items: TextFile, vault: duckdb.DuckDBPyConnection, key: str) -> None:
    source = file.spec.source
    columns = {"user_id": source.user, "item": source.item, "amount": source.count, "choice": source.profile}
    select, parameters = items.select(columns)
    count = "1::BIGINT" if source.count is None else _COUNT
    query = statement("11_ingest_visits", source=select, count=count, profile=_position())
    _read(items, vault, query, {**parameters, "key": key, "refuse": source.unknown == "refuse"})


def _stated(file: AggregatesFile, vault: duckdb.DuckDBPyConnection, key: str) -> None:
    if file.spec.users is None:
        vault.execute(statement("11_ingest_no_stated"))
        return
    users = _users(file)
    select, parameters = users.select({"user_id": file.spec.users.user, "choice": file.spec.users.profile})
    _read(users, vault, statement("11_ingest_stated", source=select, profile=_position()), {**parameters, "key": key})


def _users(file: AggregatesFile) -> TextFile:
    stated = file.spec.users
    if stated is None or file.users is None:
        raise ValueError("the spec names no users")
    return TextFile(file.users, stated.format, stated.csv, "users", NOTHING)


def _position() -> str:
    """A stated profile's position in the plan; null where it is not declared, and the default's in the end."""
    return "CAST(enum_code(TRY_CAST(choice AS profile_domain)) AS USMALLINT)"


def _read(file: TextFile, vault: duckdb.DuckDBPyConnection, query: str, parameters: Mapping[str, object]) -> None:
    """The database's own message quotes rows, so it is not even kept as a cause."""
    try:
        vault.execute(query, dict(parameters))
        return
    except duckdb.Error as error:
        if says_full(error):  # the vault's fault, not the source's
            raise
    raise file.unreadable()


def _refuse_faults(file: AggregatesFile, items: TextFile, vault: duckdb.DuckDBPyConnection) -> None:
    fault = _one(vault, "16_ingest_visit_fault", {})
    if not fault:
        return
    source = file.spec.source
    select, parameters = items.select({"user_id": source.user, "item": source.item, "amount": source.count})
    count = "1::BIGINT" if source.count is None else _COUNT
    query = statement("17_ingest_first_fault", source=select, count=count)
    row = vault.execute(query, {**parameters, "fault": fault}).fetchone()
    place = f"{items.path}, readable row {0 if row is None else row[0]}, column "
    if fault == _UNKNOWN_ITEM:
        raise SourceError(
            f"{place}{source.item}: the item is not in the catalogue. Add it there, or let such items count for "
            f"nothing with `unknown: ignore` under source. {NOTHING}"
        )
    raise SourceError(f"{place}{source.count}: the count must be a whole number from 0 to 1,000,000,000. {NOTHING}")


def _torn(file: AggregatesFile) -> SourceError:
    where = file.source if file.users is None else file.users
    column = file.spec.source.profile if file.spec.users is None else file.spec.users.profile
    return SourceError(
        f"{where}, column {column}: a user states two different profiles, and only one can be kept. "
        f"Give every user one. {NOTHING}"
    )


def _one(vault: duckdb.DuckDBPyConnection, name: str, parameters: Mapping[str, int]) -> int:
    row = vault.execute(statement(name), dict(parameters)).fetchone()
    return 0 if row is None else int(row[0])
