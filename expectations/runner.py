"""Running gates through Great Expectations, offline and without leaving files."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")

import great_expectations as gx
import great_expectations.expectations as gxe
import pandas as pd

from pldp.questions.gate import Among, Between, Gate, Present


@dataclass(frozen=True)
class Verdict:
    """A row of the table `validations`."""

    gate: str
    sentence: str
    passed: bool
    observed: float
    bound: float
    false_alarm: float
    question: str | None = None


def run_gates(gates: Iterable[Gate]) -> tuple[Verdict, ...]:
    """Every gate is run, also after one has failed: the reader wants them all."""
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = gx.data_context.types.base.ProgressBarsConfig(
        globally=False, metric_calculations=False
    )
    # One asset whose frame changes, and suites that are not stored: whatever is, the context writes out as YAML again.
    asset = context.data_sources.add_pandas("gates").add_dataframe_asset("gate")
    batch = asset.add_batch_definition_whole_dataframe("all")
    verdicts = []
    for gate in gates:
        suite = gx.ExpectationSuite(name=gate.name, expectations=[_expectation(rule) for rule in gate.rules])
        frame = pd.DataFrame(dict(gate.rows))
        passed = not frame.empty and _holds(batch.get_batch({"dataframe": frame}), suite)
        figures = (gate.observed, gate.bound, gate.false_alarm)
        verdicts.append(Verdict(gate.name, gate.sentence, passed, *figures, gate.question))
    return tuple(verdicts)


def _holds(batch: Any, suite: Any) -> bool:
    """The verdict alone: samples of failing rows take most of the time, and nobody may read them."""
    return bool(batch.validate(suite, result_format="BOOLEAN_ONLY").success)


def _expectation(rule: Between | Among | Present) -> Any:
    match rule:
        case Present():
            return gxe.ExpectColumnValuesToNotBeNull(column=rule.column)
        case Among():
            return gxe.ExpectColumnValuesToBeInSet(column=rule.column, value_set=list(rule.values))
        case Between():
            return gxe.ExpectColumnValuesToBeBetween(
                column=rule.column,
                min_value=rule.low,
                max_value=rule.high,
                strict_min=rule.above,
                strict_max=rule.below,
            )
