"""Running gates through Great Expectations, offline and without leaving files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")

import great_expectations as gx

from pldp.expectations.gate import Gate


@dataclass(frozen=True)
class Verdict:
    """A row of the table `validations`."""

    gate: str
    sentence: str
    passed: bool
    observed: float
    bound: float
    false_alarm: float


def run_gates(gates: Iterable[Gate]) -> tuple[Verdict, ...]:
    """Every gate is run, also after one has failed: the reader wants them all."""
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = gx.data_context.types.base.ProgressBarsConfig(
        globally=False, metric_calculations=False
    )
    source = context.data_sources.add_pandas("gates")
    verdicts = []
    for gate in gates:
        batch = source.add_dataframe_asset(gate.name).add_batch_definition_whole_dataframe("all")
        suite = gx.ExpectationSuite(name=gate.name, expectations=list(gate.expectations))
        context.suites.add(suite)
        found = batch.get_batch({"dataframe": gate.frame}).validate(suite)
        passed = bool(found.success) and not gate.frame.empty
        verdicts.append(Verdict(gate.name, gate.sentence, passed, gate.observed, gate.bound, gate.false_alarm))
    return tuple(verdicts)
