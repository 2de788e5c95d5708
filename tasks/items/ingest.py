"""Ingest: who has which item, to vault and partitions. Items become positions in the declared list."""

from __future__ import annotations

import duckdb
import polars as pl

from pldp.questions.items.plan import ItemsPlan
from pldp.tasks.holdings import Column, Holdings, ingest_holdings
from pldp.tasks.ingest import Ingested, n_partitions
from pldp.tasks.partitions import key_range, write_partition
from pldp.tasks.query import statement
from pldp.tasks.run import Run
from pldp.tasks.source import NOTHING
from pldp.tasks.specfile import SpecFile
from pldp.tasks.stage import stage
from pldp.tasks.textfile import TextFile


@stage()
def ingest_items(run: Run, file: SpecFile) -> Ingested:
    """Fill the run's vault, or find it full."""
    (plan,) = run.plan.questions
    nothing = "[]" if file.spec.missing is None else f"[{plan.items.index(file.spec.missing)}]"
    query = statement("18_ingest_items", nothing=nothing)

    def deal(vault: duckdb.DuckDBPyConnection, n_users: int) -> int:
        partitions = n_partitions(n_users, run.plan, file.spec.runner)
        for partition in range(partitions):
            rows = vault.sql(query, params=key_range(partition, partitions)).to_arrow_reader()
            write_partition(run.partition_file(partition), rows, rows.schema)
        return partitions

    return ingest_holdings(run, run.vault, _holdings(plan, file), 8, lambda vault: None, deal)


def _holdings(plan: ItemsPlan, file: SpecFile) -> Holdings:
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
