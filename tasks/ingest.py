"""Ingest: source file to vault. Cells become positions in the declared domains; nothing else of them is kept."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pldp.errors import HomeError, SourceError
from pldp.questions.histograms.plan import Plan
from pldp.spec.runner import Runner
from pldp.tasks.durable import delete_folder
from pldp.tasks.leftout import EMPTY, UNDECLARED, FileRead
from pldp.tasks.partitions import SORT_KEY, TWIN, cells_within, deal
from pldp.tasks.query import FULL, connect, statement, text
from pldp.tasks.run import Run
from pldp.tasks.sorting import in_key_order
from pldp.tasks.source import NOTHING, UNSTATED, SourceFile
from pldp.tasks.specfile import SpecFile
from pldp.tasks.stage import stage

PARTITION_CELLS = 1 << 24
"""Partitions are sized by cells (users × values), so memory depends on neither. A stated memory takes its place."""

_SORTED_BYTES, _KEY_BYTES, _CELL_BYTES = 1 << 24, 16, 4
"""Sorted at a time, and what a row of them takes."""

_DEALT = 1 << 21
"""Cells dealt out at a time: rows of many columns take no more memory than rows of few."""


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
    for folder in map(vault.with_name, ("partitions", "sorting")):
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


def _fill(run: Run, source: SourceFile) -> Ingested:
    query, parameters = source.people()
    # The keys only order rows and assign levels inside the vault; they are forgotten with this call.
    keys = {"key": run.stream("key").copy(4).tobytes().hex()}
    if source.spec.levels.assigned is not None:
        keys["level_key"] = run.stream("levels").copy(4).tobytes().hex()
    lines = source.file.lines(source.wanted.values())
    with connect(run.vault, columns=source.width) as vault:
        for domain, declared in source.domains():
            values = ", ".join(text(value) for value in declared)
            vault.execute(statement("10_ingest_domain", domain=domain, values=values))
        unstated = _read(run, source, vault, query, {**keys, **parameters})
        read = FileRead.of(vault, source.file, "people", source.spec.source.max_left_out, lines)
    # Anew: in a connection whose memory is full of what it wrote, DuckDB 2.0 scans nothing and does not say so.
    with connect(run.vault, columns=source.width) as vault:
        vault.execute(statement("12_ingest_quarantine"))
        vault.execute(statement("12_ingest_unstated"))
        read.account(vault)
        for column, counts in zip(source.level_columns, unstated.tolist(), strict=True):
            for reason in (EMPTY, UNDECLARED):
                counted = {"column": column, "reason": reason, "n": counts[reason]}
                vault.execute(statement("12_ingest_unstated_rows"), {**counted, "becomes": source.unstated_level})
        _require_declared(source, vault)
        n_users = _one(vault, statement("19_ingest_n_users"))
        if n_users == 0:
            raise SourceError(f"{source.path}: no readable row with a user. Check source and its columns. {NOTHING}")
        found = Ingested(n_users, n_partitions(n_users, run.plan, source.spec.runner))
        if _deal(run, source, vault, found.partitions) != n_users:
            raise ValueError("the partitions do not hold everybody")
        run.require_unchanged()
        vault.execute(statement("19_ingest_done"), vars(found))
    return found


def _read(
    run: Run, source: SourceFile, vault: duckdb.DuckDBPyConnection, query: str, parameters: dict[str, object]
) -> NDArray[np.int64]:
    """Fill the table of people, in the order of their keys; how many state no choice, by column and reason."""
    size = _SORTED_BYTES // (_KEY_BYTES + _CELL_BYTES * source.width)
    with _guarded(source):
        rows = vault.sql(query, params=parameters).to_arrow_reader(size)
    with rows, vault.cursor() as writer:
        writer.execute("BEGIN")  # a commit a part would wait for the disk each time
        kept = [name for name in rows.schema.names if not name.startswith(UNSTATED)]
        schema = pa.schema([rows.schema.field(name) for name in kept])
        unstated = np.zeros((len(source.level_columns), UNDECLARED + 1), dtype=np.int64)
        writer.from_arrow(schema.empty_table()).create("people")
        batches = _counted(_readable(source, rows), kept, unstated)
        for part in in_key_order(batches, schema, size, run.vault.with_name("sorting")):
            writer.from_arrow(part).insert_into("people")
        writer.execute("COMMIT")
    return unstated


def _counted(
    batches: Iterable[pa.RecordBatch], kept: list[str], unstated: NDArray[np.int64]
) -> Iterator[pa.RecordBatch]:
    """Pass rows on without the columns that say why a choice is not stated, which are added up."""
    for batch in batches:
        users = batch.column(SORT_KEY).is_valid().to_numpy(zero_copy_only=False)
        for i, counts in enumerate(unstated):
            counts += np.bincount(batch.column(f"{UNSTATED}{i}").to_numpy()[users], minlength=counts.size)
        yield batch.select(kept)


def _readable(source: SourceFile, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    while True:
        with _guarded(source):
            batch = next(rows, None)
        if batch is None:
            return
        yield batch


@contextmanager
def _guarded(source: SourceFile) -> Iterator[None]:
    """The database's own message quotes rows, so it is not even kept as a cause."""
    try:
        yield
        return
    except (duckdb.Error, OSError, pa.ArrowException) as error:
        if FULL in str(error):  # the vault's fault, not the source's
            raise OSError(errno.ENOSPC, FULL) from None
        too_long = "Out of Memory" in str(error)
    if too_long:
        raise SourceError(
            f"{source.path}: has cells too long to be read in little memory. Shorten those of the columns that the "
            f"spec names, or cut the file into smaller row groups. {NOTHING}"
        )
    raise source.file.unreadable()


def _require_declared(source: SourceFile, vault: duckdb.DuckDBPyConnection) -> None:
    if _one(vault, statement("16_ingest_unplaced", unplaced=source.unplaced)):
        query, parameters = source.first_unplaced()
        row = vault.execute(query, parameters).fetchone()
        if row is not None:
            raise source.undeclared(row)


def _deal(run: Run, source: SourceFile, vault: duckdb.DuckDBPyConnection, partitions: int) -> int:
    """How many users the partitions hold. In one pass, so that memory stays flat and nothing is read twice."""
    with (
        vault.cursor() as reader,
        reader.sql(statement("18_ingest_rows")).to_arrow_reader(_DEALT // source.width) as rows,
    ):
        return deal(run, _once(source, rows), rows.schema, partitions)


def _once(source: SourceFile, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Pass rows on; the same user in two of them would stand side by side."""
    last = np.empty((2, 0), dtype=np.uint64)
    for batch in batches:
        own = np.stack([batch.column(name).to_numpy() for name in (SORT_KEY, TWIN)])
        key, twin = np.hstack([last, own])
        same = key[1:] == key[:-1]
        if (key[1:] < key[:-1]).any() or (same & (twin[1:] < twin[:-1])).any():
            raise ValueError("the vault's rows are not in the order of their keys")
        if any(batch.column(name).null_count for name in batch.schema.names if not name.startswith("weight_")):
            raise ValueError("a cell has no position")
        if (same & (twin[1:] == twin[:-1])).any():
            raise SourceError(
                f"{source.path}, column {source.spec.source.user_id}: a user id stands in more than one row, and "
                f"such a user would spend twice. Keep one row a user. {NOTHING}"
            )
        last = own[:, -1:]
        yield batch


def _one(vault: duckdb.DuckDBPyConnection, query: str) -> int:
    row = vault.execute(query).fetchone()
    return 0 if row is None else int(row[0])
