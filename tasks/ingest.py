"""Ingest: source file to vault. Cells become positions in the declared domains; nothing else of them is kept."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb

from pldp.errors import HomeError, SourceError
from pldp.questions.plan import Plan
from pldp.spec.runner import Runner
from pldp.tasks.durable import delete_folder
from pldp.tasks.leftout import FileRead, Reasons, rejected
from pldp.tasks.partitions import cells_within, rows_in
from pldp.tasks.people import BUCKET, NOTHING, People
from pldp.tasks.pieces import Layout, Sorted, pieces_of, rows_of, sort_pieces
from pldp.tasks.positions import EMPTY, UNDECLARED
from pldp.tasks.query import FULL, connect, connect_scratch, pattern, says_full, statement, text
from pldp.tasks.run import Run
from pldp.tasks.source import described_people
from pldp.tasks.specfile import SpecFile
from pldp.tasks.stage import stage
from pldp.tasks.textfile import TextFile

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
        return _fill(run, described_people(file), file.spec.runner)
    except BaseException:
        # The corrected source is another release, so nobody would come back for this half.
        discard(run.vault)
        raise


def n_partitions(n_users: int, plan: Plan, runner: Runner) -> int:
    """A multiple of the phases, so that each has as many."""
    wanted = max(1, -(-n_users * plan.cells // cells_within(runner, PARTITION_CELLS)))
    return -(-wanted // plan.phases) * plan.phases


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


def refuse_second_draw(run: Run) -> None:
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


def _fill(run: Run, people: People, runner: Runner) -> Ingested:
    # The keys only order rows and assign levels inside the vault; they are forgotten with this call.
    key = run.stream("key").copy(4).tobytes().hex()
    level_key = run.stream("levels").copy(4).tobytes().hex() if people.assigned else None
    records = people.file.records_with(people.columns)
    layout = Layout.of(n_partitions(records, run.plan, runner), records)
    reasons = _read(run, people, (key, level_key), layout)
    n_users, nameless = (sum(rows) for rows in _rows(run, layout))
    with connect(run.vault) as vault:
        vault.execute(statement("12_ingest_quarantine"))
        vault.execute(statement("12_ingest_unstated"))
        read = FileRead(people.file, people.most_left_out, records, *reasons)
        read.account(vault, n_users + nameless, nameless)
        if n_users == 0:
            raise SourceError(
                f"{people.file.path}: no readable row with a user. Check source and its columns. {NOTHING}"
            )
        found = Ingested(n_users, layout.partitions)
        seen = _deal(run, layout)
        _note_unstated(people, vault, seen)
        if seen.unplaced or seen.twice:
            _refuse(run, people, key, seen)
        if seen.rows != n_users or rows_in(run, layout.partitions) != n_users:
            raise ValueError("the partitions do not hold everybody")
        run.require_unchanged()
        files = pattern(run.partition_file(0).parent, "*.parquet")
        vault.execute(statement("19_ingest_people", files=text(files)))
        vault.execute(statement("19_ingest_done"), vars(found))
    return found


def _read(run: Run, people: People, keys: tuple[str, str | None], layout: Layout) -> tuple[int, Reasons]:
    """Write the pieces, in one pass over the source; how many of its rows do not parse, and why."""
    folder = pieces_of(run)
    folder.mkdir(mode=0o700)
    # Rows without an id are told apart by their places, which only an ordered pass knows.
    with connect_scratch(run.vault.parent, len(people.columns), ordered=people.user is None) as scratch:
        with _guarded(people.file):
            rows = people.pieces(scratch, *keys, layout.buckets)
            rows.write_parquet(str(folder), compression="uncompressed", partition_by=[BUCKET])
        return rejected(scratch, people.file)


def _rows(run: Run, layout: Layout) -> tuple[list[int], list[int]]:
    """How many rows the buckets of users hold, and those of rows without one, by the pieces."""
    counts = [rows_of(pieces_of(run), bucket) for bucket in range(layout.buckets + 1)]
    return counts[:-1], counts[-1:]


def _deal(run: Run, layout: Layout) -> Sorted:
    return sort_pieces(run, layout, UNDECLARED + 1)


def _note_unstated(people: People, vault: duckdb.DuckDBPyConnection, seen: Sorted) -> None:
    for choice, counts in zip(people.choices, seen.unstated, strict=True):
        for reason in (EMPTY, UNDECLARED):
            counted = {"column": choice.column, "reason": reason, "n": counts[reason]}
            vault.execute(statement("12_ingest_unstated_rows"), {**counted, "becomes": people.unstated})


@contextmanager
def _guarded(file: TextFile) -> Iterator[None]:
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
            f"{file.path}: has cells too long to be read in little memory. Shorten those of the columns that the "
            f"spec names, or cut the file into smaller row groups. {NOTHING}"
        )
    raise file.unreadable()


def _refuse(run: Run, people: People, key: str, seen: Sorted) -> None:
    """The source is looked at again, in its own order, to say where; two rows with one key are one user's, but for a
    chance of 2^-64 a pair, so their ids are compared."""
    with connect_scratch(run.vault.parent, len(people.columns)) as scratch:
        if seen.unplaced:
            raise people.undeclared(scratch)
        if people.same_user(scratch, key, seen.twice):
            raise SourceError(
                f"{people.file.path}, column {people.user}: a user id stands in more than one row, and "
                f"such a user would spend twice. Keep one row a user. {NOTHING}"
            )
