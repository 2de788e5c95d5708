"""Validate: the gates between an estimate and its publication."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pldp.inference import Histogram
from pldp.mechanisms.protocol import Floats
from pldp.number_estimate import Distribution
from tasks.count import Support, Tally
from tasks.estimate import LevelEstimates
from tasks.ingest import Ingested
from tasks.numbers import NumberResults, mean_rows, quantile_rows
from tasks.run import Run
from tasks.stage import stage

if TYPE_CHECKING:
    from expectations.runner import Verdict


@stage(retries=2)
def validate(
    run: Run,
    ingested: Ingested,
    tallies: tuple[Tally, ...],
    supports: tuple[Support, ...],
    estimates: tuple[LevelEstimates, ...],
    histograms: tuple[Histogram, ...],
    rows: pl.DataFrame,
    truth: dict[str, Floats] | None = None,
    numbers: NumberResults | None = None,
    true_means: dict[str, float] | None = None,
    binned: tuple[Distribution, ...] = (),
) -> tuple[Verdict, ...]:
    """Every gate's verdict on a run."""
    # Great Expectations takes three seconds and 265 MB to import, so only who validates pays.
    from expectations.gates import Evidence, all_gates
    from expectations.number_gates import NumberEvidence
    from expectations.runner import run_gates

    evidence = Evidence(
        plan=run.plan,
        n_users=ingested.n_users,
        partitions=ingested.partitions,
        tallies=tallies,
        supports=supports,
        estimates=estimates,
        histograms=histograms,
        rows=rows.to_pandas(),
        truth=truth,
        binned=binned,
        numbers=None
        if numbers is None or run.plan.numbers is None
        else NumberEvidence(
            plan=run.plan,
            numbers=run.plan.numbers,
            results=numbers,
            n_users=ingested.n_users,
            partitions=ingested.partitions,
            level_sizes=supports[0].n if supports else None,
            means=mean_rows(run.plan, numbers).to_pandas(),
            quantiles=quantile_rows(numbers.quantiles).to_pandas(),
            true_means=true_means,
        ),
    )
    return run_gates(all_gates(evidence))
