"""Ingest: items file, users file and catalogue to vault. Items become positions in the catalogue."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pldp.errors import SourceError
from pldp.questions.aggregates.question import Aggregates
from pldp.questions.aggregates.release import LARGEST
from pldp.tasks.aggregates.held import holdings_of
from pldp.tasks.holdings import ingest_holdings
from pldp.tasks.ingest import Ingested, n_partitions
from pldp.tasks.partitions import key_range, write_partition
from pldp.tasks.people import NOTHING
from pldp.tasks.query import statement
from pldp.tasks.run import Run
from pldp.tasks.specfile import SpecFile
from pldp.tasks.stage import stage


@stage()
def ingest_aggregates(run: Run, file: SpecFile) -> Ingested:
    """Fill the run's vault, or find it full."""
    catalogue = file.tables["catalogue"]

    def prepare(vault: duckdb.DuckDBPyConnection) -> None:
        """What one occurrence of each item adds, in grid units."""
        weights = {f"w_{column}": units for column, units in enumerate(catalogue.units.T)}
        positions = np.arange(len(catalogue.items), dtype=np.uint32)
        vault.from_arrow(pa.table({"item": positions, **weights})).create("weights")

    def deal(vault: duckdb.DuckDBPyConnection, n_users: int) -> int:
        partitions = n_partitions(n_users, run.plan, file.spec.runner)
        _deal(run, file, vault, partitions)
        return partitions

    width = catalogue.units.shape[1] + 4
    return ingest_holdings(run, run.vault, holdings_of(file), width, prepare, deal)


def _deal(run: Run, file: SpecFile, vault: duckdb.DuckDBPyConnection, partitions: int) -> None:
    """Everybody's own aggregates, partition by partition, so that memory stays flat."""
    (plan,) = run.plan.questions
    if not isinstance(plan, Aggregates):
        raise ValueError("the plan asks for no aggregates")
    names = range(len(plan.attributes))
    query = statement(
        "18_ingest_aggregates",
        # Cut just above what is refused, so that no product leaves 64 bits; sums are 128 wide.
        counted=f"least(sum(n), {plan.cap or LARGEST + 1})",
        sums=", ".join(f"least(sum(n * w_{i}), {LARGEST + 1})::BIGINT AS a_{i}" for i in names),
        columns=", ".join(f"coalesce(a_{i}, 0) AS a_{i}" for i in names),
    )
    for partition in range(partitions):
        rows = vault.sql(query, params=key_range(partition, partitions)).to_arrow_reader()
        write_partition(run.partition_file(partition), _bounded(file, rows), rows.schema)


def _bounded(file: SpecFile, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Refuse before anything is drawn or spent what the noise cannot be added to."""
    for batch in batches:
        if any((pc.max(column).as_py() or 0) > LARGEST for column in batch.columns):
            raise SourceError(
                f"{file.source}: the items of a user add up to more than {LARGEST:,} grid units of an attribute, to "
                "which no noise is added. Check the counts, bound them with `count: {cap: …}`, or give weights a "
                f"coarser catalogue.grid. {NOTHING}"
            )
        yield batch
