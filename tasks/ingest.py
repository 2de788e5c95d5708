"""Ingest: source file to vault. Cells become positions in the declared domains; nothing else of them is kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb

from pldp.errors import HomeError, SourceError
from pldp.plan import Plan
from tasks.query import connect, says_full, statement, text
from tasks.run import AnyRun, Run
from tasks.source import NOTHING, SourceFile
from tasks.specfile import SpecFile
from tasks.stage import stage

PARTITION_CELLS = 1 << 24
"""Partitions are sized by cells (users × values), so memory depends on neither."""

_KEYS = 1 << 64


@dataclass(frozen=True)
class Ingested:
    """What the rest of the pipeline may know of the vault: participation is public."""

    n_users: int
    partitions: int


@stage()
def ingest(run: Run, file: SpecFile) -> Ingested:
    """Fill the run's vault, or find it full. One that was not filled to its end is filled anew: nothing was drawn."""
    n_users = complete(run.vault)
    if n_users is None:
        refuse_second_draw(run)
        discard(run.vault)
        try:
            n_users = _fill(run, SourceFile(file.spec, file.source, run.plan.levels))
        except BaseException:
            # The corrected source is another release, so nobody would come back for this half.
            discard(run.vault)
            raise
    return Ingested(n_users, n_partitions(n_users, run.plan))


def n_partitions(n_users: int, plan: Plan) -> int:
    return max(1, -(-n_users * plan.cells // PARTITION_CELLS))


def key_range(partition: int, partitions: int) -> dict[str, int]:
    """The keys of a partition: an equal slice of all hashes, so nobody needs a list of its users."""
    first, after = (_KEYS * i // partitions for i in (partition, partition + 1))
    return {"first": first, "last": after - 1}


def discard(vault: Path) -> None:
    for left_over in (vault, vault.with_name(vault.name + ".wal")):
        left_over.unlink(missing_ok=True)


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


def complete(vault: Path) -> int | None:
    """How many users the vault holds, if ingest reached its end."""
    if not vault.exists():
        return None
    try:
        with connect(vault, read_only=True) as connection:
            row = connection.execute(statement("19_ingest_n_users")).fetchone()
    except duckdb.Error:  # killed before its last table, or before it was a database at all
        return None
    return None if row is None else int(row[0])


def _fill(run: Run, source: SourceFile) -> int:
    query, parameters = source.people()
    # The keys only order rows and assign levels inside the vault; they are forgotten with this call.
    keys = {"key": run.stream("key").copy(4).tobytes().hex()}
    if source.spec.levels.assigned is not None:
        keys["level_key"] = run.stream("levels").copy(4).tobytes().hex()
    with connect(run.vault, columns=source.width) as vault:
        for domain, declared in source.domains():
            values = ", ".join(text(value) for value in declared)
            vault.execute(statement("10_ingest_domain", domain=domain, values=values))
        _read(source, vault, query, {**keys, **parameters})
        vault.execute(statement("13_ingest_quarantine"))
        if source.format == "csv":
            vault.execute(statement("14_ingest_rejects"))
        vault.execute(statement("15_ingest_nameless"))
        _require_declared(source, vault)
        vault.execute("BEGIN")  # complete only once it is checked: a rerun after a crash asks no more than that
        vault.execute(statement("19_ingest_done"))
        n_users = _one(vault, statement("19_ingest_n_users"))
        if n_users == 0:
            raise SourceError(f"{source.path}: no readable row with a user. Check source and its columns. {NOTHING}")
        _refuse_twice(source, vault, n_partitions(n_users, run.plan))
        vault.execute("COMMIT")
    return n_users


def _read(source: SourceFile, vault: duckdb.DuckDBPyConnection, query: str, parameters: dict[str, object]) -> None:
    """The database's own message quotes rows, so it is not even kept as a cause."""
    try:
        vault.execute(query, parameters)
        return
    except duckdb.Error as error:
        if says_full(error):  # the vault's fault, not the source's
            raise
        too_long = isinstance(error, duckdb.OutOfMemoryException)
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


def _refuse_twice(source: SourceFile, vault: duckdb.DuckDBPyConnection, partitions: int) -> None:
    """Partition by partition, so that memory stays flat."""
    for partition in range(partitions):
        if _one(vault, statement("18_ingest_twice"), key_range(partition, partitions)):
            raise SourceError(
                f"{source.path}, column {source.spec.source.user_id}: a user id stands in more than one row, and "
                f"such a user would spend twice. Keep one row a user. {NOTHING}"
            )


def _one(vault: duckdb.DuckDBPyConnection, query: str, parameters: dict[str, int] | None = None) -> int:
    row = vault.execute(query, parameters or {}).fetchone()
    return 0 if row is None else int(row[0])
