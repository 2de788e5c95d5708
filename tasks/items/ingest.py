"""Ingest: who has which item, to vault and partitions. Items become positions in the declared list."""

from __future__ import annotations

import duckdb
import polars as pl

from pldp.questions.items.plan import ItemsPlan
from pldp.spec.runner import Runner
from pldp.tasks.holdings import Column, Holdings, ingest_holdings
from pldp.tasks.ingest import Ingested
from pldp.tasks.items.file import ItemsFile
from pldp.tasks.items.run import ItemsRun
from pldp.tasks.partitions import cells_within, key_range, write_partition
from pldp.tasks.query import statement
from pldp.tasks.source import NOTHING
from pldp.tasks.stage import stage
from pldp.tasks.textfile import TextFile

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

    return ingest_holdings(run, run.vault, _holdings(plan, file), 8, lambda vault: None, deal)


def n_partitions(n_users: int, plan: ItemsPlan, runner: Runner) -> int:
    """A multiple of the phases, so that halves are halves."""
    cells = max(len(plan.items) if plan.protocol != "sampling" else plan.candidates, LEAST_CELLS)
    wanted = max(1, -(-n_users * cells // cells_within(runner, PARTITION_CELLS)))
    return -(-wanted // plan.phases) * plan.phases


def _holdings(plan: ItemsPlan, file: ItemsFile) -> Holdings:
    spec = file.spec
    source, users = spec.source, spec.users
    rows = TextFile(file.source, source.format, source.csv, "source", NOTHING)
    takers = None
    if users is not None and file.users is not None:
        takers = Column(TextFile(file.users, users.format, users.csv, "users", NOTHING), users.user, users.level)
    other = None if spec.other is None else plan.items.index(spec.other)
    return Holdings(
        rows=Column(rows, source.user, source.level),
        item=source.item,
        count=None,
        refuse_unknown=source.unknown == "refuse" and other is None,
        items=pl.Series(plan.items, dtype=pl.String),
        choices=plan.level_names,
        default=plan.level_names.index(plan.default),
        choice="level",
        most_left_out=source.max_left_out,
        users=takers,
        other=other,
        one=spec.holds == "one",
        missing=None if spec.missing is None else plan.items.index(spec.missing),
    )
