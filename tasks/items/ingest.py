"""Ingest: who has which item, to vault and partitions. Items become positions in the declared list."""

from __future__ import annotations

import duckdb

from pldp.tasks.holdings import ingest_holdings
from pldp.tasks.ingest import Ingested, n_partitions
from pldp.tasks.items.held import holdings_of
from pldp.tasks.partitions import key_range, write_partition
from pldp.tasks.query import statement
from pldp.tasks.run import Run
from pldp.tasks.specfile import SpecFile
from pldp.tasks.stage import stage


@stage()
def ingest_items(run: Run, file: SpecFile) -> Ingested:
    """Fill the run's vault, or find it full."""
    held = holdings_of(file)
    nothing = "[]" if held.missing is None else f"[{held.missing}]"
    query = statement("18_ingest_items", nothing=nothing)

    def deal(vault: duckdb.DuckDBPyConnection, n_users: int) -> int:
        partitions = n_partitions(n_users, run.plan, file.spec.runner)
        for partition in range(partitions):
            rows = vault.sql(query, params=key_range(partition, partitions)).to_arrow_reader()
            write_partition(run.partition_file(partition), rows, rows.schema)
        return partitions

    return ingest_holdings(run, run.vault, held, 8, lambda vault: None, deal)
