"""Ingest: source file to vault. Cells become positions in the declared domains; nothing else of them is kept."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from pldp.errors import HomeError, SourceError
from pldp.questions.histograms.plan import Plan
from pldp.spec.runner import Runner
from pldp.tasks.csvlines import CsvLines
from pldp.tasks.durable import delete_folder
from pldp.tasks.leftout import EMPTY, UNDECLARED, FileRead
from pldp.tasks.partitions import cells_within, rows_in
from pldp.tasks.pieces import Layout, Sorted, pieces_of, rows_of, sort_pieces
from pldp.tasks.query import FULL, connect, pattern, says_full, statement, text
from pldp.tasks.run import AnyRun, Run
from pldp.tasks.source import NOTHING, SourceFile
from pldp.tasks.specfile import SpecFile
from pldp.tasks.stage import stage

PARTITION_CELLS = 1 << 24
"""Partitions are sized by cells (users × values), so memory depends on neither. A stated memory takes its place."""


@dataclass(frozen=True)
class Ingested:
    """What the rest of the pipeline may know of the vault: participation is public."""

    n_users: int
    partitions: int


@stage()
def ingest(run: Run, file: SpecFile) -> Ingested:
    """Fill the run's vault, or find it full. One that was not filled to its end is filled anew: nothing was drawn."""
    found = complete(run.vault)
    if found is not None:
        return found
    refuse_second_draw(run)
    discard(run.vault)
    try:
        return _fill(run, SourceFile(file.spec, file.source, run.plan.levels))
    except BaseException:
        # The corrected source is another release, so nobody would come back for this half.
        discard(run.vault)
        raise


def n_partitions(n_users: int, plan: Plan, runner: Runner) -> int:
    return max(1, -(-n_users * plan.cells // cells_within(runner, PARTITION_CELLS)))


def discard(vault: Path) -> None:
    for left_over in (vault, vault.with_name(vault.name + ".wal")):
        left_over.unlink(missing_ok=True)
    for folder in map(vault.with_name, ("partitions", "pieces", "sorting")):
        reason = delete_folder(folder)
        if reason is not None:
            raise HomeError(
                f"{folder}: what was read of the source could not be deleted ({reason}). Delete the folder yourself, "
                "then run the same command again. Nothing was drawn or published."
            )


def refuse_second_draw(run: AnyRun) -> None:
    """Without its vault a half-drawn release cannot tell who was drawn: a fresh key would draw some users twice.

    A seeded evaluation gets the same key again, so it may.
    """
    if run.seed is None and any(run.reports.rglob("*.parquet")):
        raise HomeError(
            f"{run.reports}: reports of release {run.release_id} were drawn, but its vault is gone or cannot be "
            "opened, so it cannot be completed. Give another --slot for a new release, which spends again. "
            "Nothing was published."
        )


def complete(vault: Path) -> Ingested | None:
    """What the vault and its partitions hold, if ingest reached its end."""
    if not vault.exists():
        return None
    try:
        with connect(vault, read_only=True) as connection:
            row = connection.execute(statement("19_ingest_found")).fetchone()
    except duckdb.Error:  # killed before its last table, or before it was a database at all
        return None
    return None if row is None else Ingested(*map(int, row))


def _fill(run: Run, source: SourceFile) -> Ingested:
    # The keys only order rows and assign levels inside the vault; they are forgotten with this call.
    keys = {"key": run.stream("key").copy(4).tobytes().hex()}
    levels = {}
    if source.spec.levels.assigned is not None:
        levels["level_key"] = run.stream("levels").copy(4).tobytes().hex()
    query, parameters = source.people(pieces_of(run))
    lines = source.file.lines(source.wanted.values())
    records = source.file.rows() if lines is None else source.file.records(lines)
    layout = Layout.of(n_partitions(records, run.plan, source.spec.runner), records)
    with connect(run.vault, columns=source.width, ordered=False) as vault:
        read = _read(run, source, vault, query, {**keys, **levels, **parameters, "buckets": layout.buckets}, lines)
    n_users, nameless = _rows(run, layout, read)
    # Anew: in a connection whose memory is full of what it wrote, DuckDB 2.0 scans nothing and does not say so.
    with connect(run.vault, columns=source.width) as vault:
        vault.execute(statement("12_ingest_quarantine"))
        vault.execute(statement("12_ingest_unstated"))
        read.file.account(vault, n_users + nameless, nameless)
        if n_users == 0:
            raise SourceError(f"{source.path}: no readable row with a user. Check source and its columns. {NOTHING}")
        found = Ingested(n_users, layout.partitions)
        seen = _deal(run, layout)
        _note_unstated(source, vault, seen)
        if seen.unplaced:
            raise _undeclared(source, vault)
        if seen.twice:
            _refuse_twice(source, vault, {**keys, "keys": list(seen.twice)})
        if seen.rows != n_users or rows_in(run, layout.partitions) != n_users:
            raise ValueError("the partitions do not hold everybody")
        run.require_unchanged()
        files = pattern(run.partition_file(0).parent, "*.parquet")
        vault.execute(statement("19_ingest_people", files=text(files)))
        vault.execute(statement("19_ingest_done"), vars(found))
    return found


@dataclass(frozen=True)
class _Read:
    file: FileRead
    rows: int
    """As the database counted them while it wrote."""


def _read(
    run: Run,
    source: SourceFile,
    vault: duckdb.DuckDBPyConnection,
    query: str,
    parameters: dict[str, object],
    lines: CsvLines | None,
) -> _Read:
    """Write the pieces, in one pass over the source."""
    for domain, declared in source.domains():
        values = ", ".join(text(value) for value in declared)
        vault.execute(statement("10_ingest_domain", domain=domain, values=values))
    pieces_of(run).mkdir(mode=0o700)
    with _guarded(source):
        rows = vault.execute(query, parameters).fetchall()[0][0]
    return _Read(FileRead.of(vault, source.file, source.spec.source.max_left_out, lines), int(rows))


def _rows(run: Run, layout: Layout, read: _Read) -> tuple[int, int]:
    """How many users there are, and how many rows without one, by the pieces; the latter are deleted."""
    pieces = pieces_of(run)
    n_users = sum(rows_of(pieces, bucket) for bucket in range(layout.buckets))
    nameless = rows_of(pieces, layout.buckets)
    if n_users + nameless != read.rows:
        raise ValueError("the pieces do not hold what was read")
    return n_users, nameless


def _deal(run: Run, layout: Layout) -> Sorted:
    return sort_pieces(run, layout, UNDECLARED + 1)


def _note_unstated(source: SourceFile, vault: duckdb.DuckDBPyConnection, seen: Sorted) -> None:
    for column, counts in zip(source.level_columns, seen.unstated, strict=True):
        for reason in (EMPTY, UNDECLARED):
            counted = {"column": column, "reason": reason, "n": counts[reason]}
            vault.execute(statement("12_ingest_unstated_rows"), {**counted, "becomes": source.unstated_level})


@contextmanager
def _guarded(source: SourceFile) -> Iterator[None]:
    """The database's own message quotes rows, so it is not even kept as a cause."""
    try:
        yield
        return
    except duckdb.Error as error:
        if says_full(error):  # the vault's fault, not the source's
            raise OSError(errno.ENOSPC, FULL) from None
        too_long = "Out of Memory" in str(error)
    if too_long:
        raise SourceError(
            f"{source.path}: has cells too long to be read in little memory. Shorten those of the columns that the "
            f"spec names, or cut the file into smaller row groups. {NOTHING}"
        )
    raise source.file.unreadable()


def _undeclared(source: SourceFile, vault: duckdb.DuckDBPyConnection) -> SourceError:
    """The error for the first row with a cell that the spec has no value for."""
    query, parameters = source.first_unplaced()
    rows = vault.execute(query, parameters).fetchall()
    if not rows:
        raise ValueError("a cell without a position was read, and is not found again")
    return source.undeclared(rows[0])


def _refuse_twice(source: SourceFile, vault: duckdb.DuckDBPyConnection, keys: dict[str, object]) -> None:
    """Two rows with one key are one user's, but for a chance of 2^-64 a pair: ids are looked at to be sure."""
    query, parameters = source.same_user()
    if _one(vault, query, {**parameters, **keys}):
        raise SourceError(
            f"{source.path}, column {source.spec.source.user_id}: a user id stands in more than one row, and "
            f"such a user would spend twice. Keep one row a user. {NOTHING}"
        )


def _one(vault: duckdb.DuckDBPyConnection, query: str, parameters: dict[str, object]) -> int:
    return int(vault.execute(query, parameters).fetchall()[0][0])
