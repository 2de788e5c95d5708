"""Validate: the gates between an estimate and its publication. They look at the frames that are published."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from pldp.questions.question import Evidence
from pldp.tasks.count import Counted
from pldp.tasks.ingest import Ingested
from pldp.tasks.run import Run
from pldp.tasks.stage import stage

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict


@stage(retries=2)
def validate(
    run: Run,
    ingested: Ingested,
    counted: Sequence[Counted],
    results: Sequence[Any],
    tables: Sequence[Mapping[str, pl.DataFrame]],
    truths: Sequence[Any] | None = None,
) -> tuple[Verdict, ...]:
    """Every gate's verdict; `results`, `tables` and, in an evaluation, `truths` are by question."""
    # Great Expectations takes three seconds and 265 MB to import, so only who validates pays.
    from pldp.expectations.runner import run_gates

    plan = run.plan
    files = [(one.sheet, partition) for one in counted for partition in one.partitions]
    gates = [*plan.gates(ingested.n_users, ingested.partitions, files)]
    for number, question in enumerate(plan.questions):
        rows = {name: frame.to_dict(as_series=False) for name, frame in tables[number].items()}
        truth = None if truths is None else truths[number]
        gates += question.gates(Evidence(ingested.n_users, results[number], rows, truth))
    return run_gates(gates)
