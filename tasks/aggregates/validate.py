"""Validate: the gates between totals and their publication."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pldp.aggregates.catalogue import Units
from pldp.aggregates.totals import Sums
from tasks.aggregates.run import AggregatesRun
from tasks.aggregates.totals import ItemTally
from tasks.ingest import Ingested
from tasks.stage import stage

if TYPE_CHECKING:
    from expectations.runner import Verdict


@stage(retries=2)
def validate_aggregates(
    run: AggregatesRun,
    ingested: Ingested,
    tallies: tuple[ItemTally, ...],
    sums: dict[str, Sums],
    rows: pl.DataFrame,
    truth: Units | None = None,
) -> tuple[Verdict, ...]:
    """Every gate's verdict on a run."""
    # Great Expectations takes three seconds and 265 MB to import, so only who validates pays.
    from expectations.gates_aggregates import ItemEvidence, aggregate_gates
    from expectations.runner import run_gates

    evidence = ItemEvidence(
        plan=run.plan,
        n_users=ingested.n_users,
        partitions=ingested.partitions,
        tallies=tallies,
        sums=sums,
        rows=rows.to_pandas(),
        truth=truth,
    )
    return run_gates(aggregate_gates(evidence))
