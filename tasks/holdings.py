"""Who has which item, and who chose what: files to vault. Items become positions in a public list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

from pldp.errors import SourceError
from pldp.tasks.ingest import Ingested, complete, discard, refuse_second_draw
from pldp.tasks.itemrows import Holdings, ItemRows
from pldp.tasks.leftout import FileRead, rejected
from pldp.tasks.partitions import key_range, rows_in
from pldp.tasks.people import NOTHING
from pldp.tasks.query import connect, says_full, statement
from pldp.tasks.run import Run
from pldp.tasks.textfile import TextFile

SLICE_ROWS = 1 << 18
"""Rows of the files whose users are told apart at a time."""

_UNKNOWN_ITEM = 1


def ingest_holdings(
    run: Run,
    vault: Path,
    held: Holdings,
    width: int,
    prepare: Callable[[duckdb.DuckDBPyConnection], None],
    deal: Callable[[duckdb.DuckDBPyConnection, int], int],
) -> Ingested:
    """Fill the run's vault (tables items, visits, people) and its partitions, or find them full.

    One that was not filled to its end is filled anew: nothing was drawn. `prepare` adds tables of the kind's own;
    `deal` writes the partitions of so many users, and says how many they are.
    """
    found = complete(vault)
    if found is not None:
        return found
    refuse_second_draw(run)
    discard(vault)
    try:
        # The key only orders users inside the vault; it is forgotten with this call.
        key = run.stream("key").copy(4).tobytes().hex()
        with connect(vault, columns=width) as connection:
            prepare(connection)
            files = _fill(connection, key, held)
        with connect(vault, columns=width) as connection:  # anew, as in pldp.tasks.ingest
            n_users = _tell_apart(connection, held, files)
        with connect(vault, columns=width) as connection:
            done = Ingested(n_users, deal(connection, n_users))
            if rows_in(run, done.partitions) != n_users:
                raise ValueError("the partitions do not hold everybody")
            run.require_unchanged()
            connection.execute(statement("19_ingest_done"), vars(done))
        return done
    except BaseException:
        # The corrected source is another release, so nobody would come back for this half.
        discard(vault)
        raise


def _fill(vault: duckdb.DuckDBPyConnection, key: str, held: Holdings) -> list[FileRead]:
    positions = np.arange(len(held.items), dtype=np.uint32)
    vault.from_arrow(pa.table({"name": held.items.to_arrow(), "position": positions})).create("items")
    records = held.rows.file.records_with(held.rows.columns)
    _visits(held, vault, key)
    files = [FileRead(held.rows.file, held.most_left_out, records, *rejected(vault, held.rows.file))]
    if held.users is None:
        vault.execute(statement("11_ingest_no_stated"))
        return files
    records = held.users.file.records_with(held.users.columns)
    _stated(held, held.users, vault, key)
    return [*files, FileRead(held.users.file, held.most_left_out, records, *rejected(vault, held.users.file))]


def _tell_apart(vault: duckdb.DuckDBPyConnection, held: Holdings, files: list[FileRead]) -> int:
    """One row a user, slice by slice; how many there are."""
    vault.execute(statement("12_ingest_quarantine"))
    vault.execute(statement("12_ingest_unstated"))
    for file, table in zip(files, ("visits", "stated"), strict=False):
        rows, nameless = map(int, vault.execute(statement("13_ingest_nameless", table=table)).fetchall()[0])
        file.account(vault, rows, nameless)
        vault.execute(statement("15_ingest_nameless", table=table))
    if held.stated.choice is not None:
        table = "visits" if held.stated is held.rows else "stated"
        for reason, n in vault.execute(statement("16_ingest_unstated", table=table)).fetchall():
            counted = {"column": held.stated.choice, "reason": reason, "n": n}
            vault.execute(statement("12_ingest_unstated_rows"), {**counted, "becomes": held.choices[held.default]})
    _refuse_faults(held, vault)
    vault.execute("BEGIN")
    vault.execute(statement("12_ingest_takers"))
    slices = max(1, -(-_one(vault, "18_ingest_visit_rows", {}) // SLICE_ROWS))
    for number in range(slices):
        keys = key_range(number, slices)
        stated = {"default": held.default, "in_source": held.stated is held.rows}
        if _one(vault, "18_ingest_torn", {**keys, **stated}):
            raise _torn(held)
        if held.one and _one(vault, "18_ingest_two_items", keys):
            raise _not_one(held, "a user has two different values, and only one can be kept. Give every user one")
        vault.execute(statement("12_ingest_takers_slice"), {**keys, "default": held.default})
        if held.one and held.missing is None and _one(vault, "18_ingest_no_item", keys):
            raise _not_one(held, "a user has no value. Give every user one, or declare `missing`")
    vault.execute("COMMIT")
    n_users = _one(vault, "19_ingest_n_users", {})
    if n_users == 0:
        raise SourceError(
            f"{held.rows.file.path}: no readable row with a user. Check source and its columns. {NOTHING}"
        )
    return n_users


def _visits(held: Holdings, vault: duckdb.DuckDBPyConnection, key: str) -> None:
    stated = {"key": key, "refuse": held.refuse_unknown, "other": held.other}
    _read(held.rows.file, vault, "11_ingest_visits", held.rows.select(vault, held.choices), stated)


def _stated(held: Holdings, users: ItemRows, vault: duckdb.DuckDBPyConnection, key: str) -> None:
    _read(users.file, vault, "11_ingest_stated", users.select(vault, held.choices), {"key": key})


def _read(
    file: TextFile, vault: duckdb.DuckDBPyConnection, name: str, source: str, parameters: Mapping[str, object]
) -> None:
    """The database's own message quotes rows, so it is not even kept as a cause."""
    try:
        vault.execute(statement(name, source=source), dict(parameters))
        return
    except duckdb.Error as error:
        if says_full(error):  # the vault's fault, not the source's
            raise
    raise file.unreadable()


def _refuse_faults(held: Holdings, vault: duckdb.DuckDBPyConnection) -> None:
    fault = _one(vault, "16_ingest_visit_fault", {})
    if not fault:
        return
    file = held.rows.file
    query = statement("17_ingest_first_fault", source=held.rows.select(vault, held.choices))
    row = vault.execute(query, {"fault": fault}).fetchone()
    place = f"{file.path}, readable row {0 if row is None else row[0]}, column "
    if fault == _UNKNOWN_ITEM and held.one:
        raise SourceError(
            f"{place}{held.rows.item}: the value is not declared. Declare it, or declare `other`. {NOTHING}"
        )
    if fault == _UNKNOWN_ITEM:
        raise SourceError(
            f"{place}{held.rows.item}: the item is not {held.declared}. Add it there, or let such items count for "
            f"nothing with `unknown: ignore` under source. {NOTHING}"
        )
    raise SourceError(f"{place}{held.rows.count}: the count must be a whole number from 0 to 1,000,000,000. {NOTHING}")


def _torn(held: Holdings) -> SourceError:
    return SourceError(
        f"{held.stated.file.path}, column {held.stated.choice}: a user states two different {held.choice}s, and only "
        f"one can be kept; a row without a declared one states the default. Give every user one. {NOTHING}"
    )


def _not_one(held: Holdings, rule: str) -> SourceError:
    return SourceError(f"{held.rows.file.path}, column {held.rows.item}: {rule}. {NOTHING}")


def _one(vault: duckdb.DuckDBPyConnection, name: str, parameters: Mapping[str, int]) -> int:
    rows = vault.execute(statement(name), dict(parameters)).fetchall()  # to its end: more work follows
    return int(rows[0][0])
