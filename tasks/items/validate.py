"""Validate: the gates between item sets and their publication."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pldp.tasks.ingest import Ingested
from pldp.tasks.items.count import Counted, Support
from pldp.tasks.items.mine import Mined
from pldp.tasks.items.run import ItemsRun
from pldp.tasks.items.truth import Truth
from pldp.tasks.stage import stage

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict


@stage(retries=2)
def validate_items(
    run: ItemsRun,
    ingested: Ingested,
    files: tuple[Counted, ...],
    supports: tuple[Support, ...],
    mined: Mined,
    itemsets: pl.DataFrame,
    rules: pl.DataFrame,
    truth: Truth | None = None,
) -> tuple[Verdict, ...]:
    """Every gate's verdict on a run."""
    # Great Expectations takes three seconds and 265 MB to import, so only who validates pays.
    from pldp.expectations.gates_items import RowEvidence, item_gates
    from pldp.expectations.runner import run_gates

    evidence = RowEvidence(
        plan=run.plan,
        n_users=ingested.n_users,
        partitions=ingested.partitions,
        files=files,
        supports=supports,
        mined=mined,
        itemsets=itemsets.to_pandas(),
        rules=rules.to_pandas(),
        truth=truth,
    )
    return run_gates(item_gates(evidence))
