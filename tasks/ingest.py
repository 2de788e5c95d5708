"""Ingest: source file to vault. Cells become positions in the declared domains; nothing else of them is kept."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import duckdb
import pyarrow as pa

from pldp.errors import SourceError
from pldp.plan import Plan
from tasks.query import connect, statement, text
from tasks.run import Run
from tasks.source import NOTHING, SourceFile
from tasks.specfile import SpecFile
from tasks.stage import stage

BLOCK = 400_000
"""Rows encoded and sorted at a time: what ingest holds in memory."""
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
    """Fill the run's vault in one transaction, or find it full."""
    n_users = _complete(run.vault)
    if n_users is None:
        for left_over in (run.vault, run.vault.with_name(run.vault.name + ".wal")):
            left_over.unlink(missing_ok=True)
        n_users = _fill(run, SourceFile(file.spec, file.source))
    return Ingested(n_users, n_partitions(n_users, run.plan))


def n_partitions(n_users: int, plan: Plan) -> int:
    return max(1, -(-n_users * plan.cells // PARTITION_CELLS))


def key_range(partition: int, partitions: int) -> dict[str, int]:
    """The keys of a partition: an equal slice of all hashes, so nobody needs a list of its users."""
    first, after = (_KEYS * i // partitions for i in (partition, partition + 1))
    return {"first": first, "last": after - 1}


def _complete(vault: Path) -> int | None:
    """How many users the vault holds, if ingest reached its end."""
    if not vault.exists():
        return None
    with connect(vault, read_only=True) as connection:
        try:
            row = connection.execute(statement("19_ingest_n_users")).fetchone()
        except duckdb.CatalogException:
            return None
    return None if row is None else int(row[0])


def _fill(run: Run, source: SourceFile) -> int:
    query, parameters = source.query()
    # The key only orders and groups rows inside the vault; it is forgotten with this call.
    parameters["key"] = run.stream("key").copy(4).tobytes().hex()
    values = [f"value_{i} USMALLINT" for i in range(len(run.plan.attributes))]
    levels = [f"level_{i} UTINYINT" for i in range(source.level_fields)]
    with connect(run.vault) as reader:
        for domain, declared in source.domains():
            reader.execute(
                statement("10_ingest_domain", domain=domain, values=", ".join(text(value) for value in declared))
            )
        writer = reader.cursor()
        try:
            writer.execute("BEGIN")
            writer.execute(statement("12_ingest_people", columns=", ".join(values + levels)))
            writer.execute(statement("14_ingest_quarantine"))
            n_users = _copy(source, reader.sql(query, params=parameters), writer, run)
            _refuse_twice(source, writer, n_partitions(n_users, run.plan))
            writer.execute(statement("18_ingest_done"))
            writer.execute("COMMIT")
        finally:
            writer.close()
        if source.format == "csv":
            reader.execute(statement("15_ingest_rejects"))
    return n_users


def _copy(source: SourceFile, rows: duckdb.DuckDBPyRelation, writer: duckdb.DuckDBPyConnection, run: Run) -> int:
    """Encode block by block; the number of users with an id."""
    stream = run.stream("levels")
    n_rows = n_users = 0
    try:
        for batch in rows.to_arrow_reader(BLOCK):
            source.require_declared(batch, n_rows)
            block = source.encode(batch, stream)
            writer.register("block", block)
            writer.execute(statement("13_ingest_block"))
            writer.unregister("block")
            n_rows += batch.num_rows
            n_users += block.num_rows
    except (duckdb.Error, pa.ArrowException):
        n_users = -1
    if n_users < 0:
        raise SourceError(
            f"{source.path}: cannot be read to its end as {source.format}. Check that the file is whole, "
            f"source.format and source.csv. {NOTHING}"
        )
    if n_users == 0:
        raise SourceError(f"{source.path}: no readable row with a user. Check source and its columns. {NOTHING}")
    writer.execute(statement("16_ingest_nameless"), {"n_rows": n_rows - n_users})
    return n_users


def _refuse_twice(source: SourceFile, writer: duckdb.DuckDBPyConnection, partitions: int) -> None:
    for partition in range(partitions):
        twice = writer.execute(statement("17_ingest_twice"), key_range(partition, partitions)).fetchone()
        if twice is not None and twice[0]:
            raise SourceError(
                f"{source.path}, column {source.spec.source.user_id}: a user id stands in more than one row, and "
                f"such a user would spend twice. Keep one row a user. {NOTHING}"
            )
