"""Ingest: who has which item, to vault and partitions. Items become positions in the declared list."""

from __future__ import annotations

import duckdb

from pldp.questions.items.plan import ItemsPlan
from pldp.spec.runner import Runner
from pldp.tasks.holdings import ingest_holdings
from pldp.tasks.ingest import Ingested
from pldp.tasks.items.file import ItemsFile
from pldp.tasks.items.held import holdings_of
from pldp.tasks.items.run import ItemsRun
from pldp.tasks.partitions import cells_within, key_range, write_partition
from pldp.tasks.query import statement
from pldp.tasks.stage import stage

PARTITION_CELLS = 1 << 23
"""Partitions are sized by cells (users × items): a bit each in the reports, and a few bytes for each item held."""

LEAST_CELLS = 64
"""What a user counts for at least: the items that a row may hold."""


@stage()
def ingest_rows(run: ItemsRun, file: ItemsFile) -> Ingested:
    """Fill the run's vault, or find it full."""
    plan = run.plan
    nothing = "[]" if file.spec.missing is None else f"[{plan.items.index(file.spec.missing)}]"
    query = statement("18_ingest_items", nothing=nothing)

    def deal(vault: duckdb.DuckDBPyConnection, n_users: int) -> int:
        partitions = n_partitions(n_users, plan, file.spec.runner)
        for partition in range(partitions):
            rows = vault.sql(query, params=key_range(partition, partitions)).to_arrow_reader()
            write_partition(run.partition_file(partition), rows, rows.schema)
        return partitions

    return ingest_holdings(run, run.vault, holdings_of(plan, file), 8, lambda vault: None, deal)


def n_partitions(n_users: int, plan: ItemsPlan, runner: Runner) -> int:
    """A multiple of the phases, so that halves are halves."""
    cells = max(len(plan.items) if plan.protocol != "sampling" else plan.candidates, LEAST_CELLS)
    wanted = max(1, -(-n_users * cells // cells_within(runner, PARTITION_CELLS)))
    return -(-wanted // plan.phases) * plan.phases
