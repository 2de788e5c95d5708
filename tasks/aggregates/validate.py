"""Validate: the gates between totals and their publication."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.totals import Sums
from pldp.tasks.aggregates.run import AggregatesRun
from pldp.tasks.aggregates.totals import ItemTally
from pldp.tasks.ingest import Ingested
from pldp.tasks.stage import stage

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict


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
    from pldp.expectations.gates_aggregates import ItemEvidence, aggregate_gates
    from pldp.expectations.runner import run_gates

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
