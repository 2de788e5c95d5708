"""Who has which item, and who chose what: files to vault. Items become positions in a public list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa

from pldp.errors import SourceError
from pldp.tasks.check import COUNT
from pldp.tasks.ingest import Ingested, complete, discard, refuse_second_draw
from pldp.tasks.leftout import FileRead
from pldp.tasks.partitions import key_range, rows_in
from pldp.tasks.query import connect, says_full, statement, text
from pldp.tasks.run import AnyRun
from pldp.tasks.source import NOTHING, unstated
from pldp.tasks.textfile import TextFile

SLICE_ROWS = 1 << 18
"""Rows of the files whose users are told apart at a time."""

_UNKNOWN_ITEM = 1


@dataclass(frozen=True)
class Column:
    """A file and the columns of it that say who chose what."""

    file: TextFile
    user: str
    choice: str | None


@dataclass(frozen=True)
class Holdings:
    """What the files are, and what their cells may hold."""

    rows: Column
    item: str
    count: str | None
    refuse_unknown: bool
    items: pl.Series
    """Declared names, in the order of their positions."""
    choices: tuple[str, ...]
    default: int
    choice: str
    """What a choice is called: a profile, a level."""
    most_left_out: Fraction
    """The share of a file's rows that may be left out."""
    users: Column | None = None
    other: int | None = None
    """The position of an item that is not declared; None where there is none."""
    one: bool = False
    """Whether every user has exactly one item: `missing`, where no row names one."""
    missing: int | None = None

    @property
    def stated(self) -> Column:
        """Where choices stand."""
        return self.rows if self.users is None or self.users.choice is None else self.users


def ingest_holdings(
    run: AnyRun,
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
    choices = ", ".join(text(name) for name in held.choices)
    vault.execute(statement("10_ingest_domain", domain="profile_domain", values=choices))
    lines = held.rows.file.lines((held.rows.user, held.item, held.count, held.rows.choice))
    _visits(held, vault, key)
    files = [FileRead.of(vault, held.rows.file, held.most_left_out, lines)]
    if held.users is None:
        vault.execute(statement("11_ingest_no_stated"))
        return files
    lines = held.users.file.lines((held.users.user, held.users.choice))
    _stated(held.users, vault, key)
    return [*files, FileRead.of(vault, held.users.file, held.most_left_out, lines)]


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
    columns = {"user_id": held.rows.user, "item": held.item, "amount": held.count, "choice": held.rows.choice}
    select, parameters = held.rows.file.select(columns)
    # An empty cell is no item, neither a declared one nor another.
    other = f"CASE WHEN cells.item IS NOT NULL THEN coalesce(items.position, {held.other}) END"
    query = statement(
        "11_ingest_visits",
        source=select,
        item="items.position" if held.other is None else other,
        count="1::BIGINT" if held.count is None else COUNT,
        profile=_position(),
        unstated=unstated("choice", "profile_domain"),
    )
    _read(held.rows.file, vault, query, {**parameters, "key": key, "refuse": held.refuse_unknown})


def _stated(users: Column, vault: duckdb.DuckDBPyConnection, key: str) -> None:
    select, parameters = users.file.select({"user_id": users.user, "choice": users.choice})
    choice = {"profile": _position(), "unstated": unstated("choice", "profile_domain")}
    query = statement("11_ingest_stated", source=select, **choice)
    _read(users.file, vault, query, {**parameters, "key": key})


def _position() -> str:
    """A stated choice's position in the plan; null where it is not declared, and the default's in the end."""
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


def _refuse_faults(held: Holdings, vault: duckdb.DuckDBPyConnection) -> None:
    fault = _one(vault, "16_ingest_visit_fault", {})
    if not fault:
        return
    file = held.rows.file
    select, parameters = file.select({"user_id": held.rows.user, "item": held.item, "amount": held.count})
    count = "1::BIGINT" if held.count is None else COUNT
    query = statement("17_ingest_first_fault", source=select, count=count)
    row = vault.execute(query, {**parameters, "fault": fault}).fetchone()
    place = f"{file.path}, readable row {0 if row is None else row[0]}, column "
    if fault == _UNKNOWN_ITEM and held.one:
        raise SourceError(f"{place}{held.item}: the value is not declared. Declare it, or declare `other`. {NOTHING}")
    if fault == _UNKNOWN_ITEM:
        where = "in the catalogue" if held.choice == "profile" else "declared"
        raise SourceError(
            f"{place}{held.item}: the item is not {where}. Add it there, or let such items count for nothing with "
            f"`unknown: ignore` under source. {NOTHING}"
        )
    raise SourceError(f"{place}{held.count}: the count must be a whole number from 0 to 1,000,000,000. {NOTHING}")


def _torn(held: Holdings) -> SourceError:
    return SourceError(
        f"{held.stated.file.path}, column {held.stated.choice}: a user states two different {held.choice}s, and only "
        f"one can be kept; a row without a declared one states the default. Give every user one. {NOTHING}"
    )


def _not_one(held: Holdings, rule: str) -> SourceError:
    return SourceError(f"{held.rows.file.path}, column {held.item}: {rule}. {NOTHING}")


def _one(vault: duckdb.DuckDBPyConnection, name: str, parameters: Mapping[str, int]) -> int:
    rows = vault.execute(statement(name), dict(parameters)).fetchall()  # to its end: more work follows
    return int(rows[0][0])
