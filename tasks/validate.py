"""Validate: the gates between an estimate and its publication."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pldp.channels.protocol import Floats
from pldp.estimate.inference import Histogram
from pldp.questions.numbers.estimate import Distribution
from pldp.tasks.count import Support, Tally
from pldp.tasks.estimate import LevelEstimates
from pldp.tasks.ingest import Ingested
from pldp.tasks.numbers import NumberResults, mean_rows, quantile_rows
from pldp.tasks.run import Run
from pldp.tasks.stage import stage

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict


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
    from pldp.expectations.gates import Evidence, all_gates
    from pldp.expectations.number_gates import NumberEvidence
    from pldp.expectations.runner import run_gates

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
