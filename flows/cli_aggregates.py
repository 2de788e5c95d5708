"""The commands `plan` and `evaluate` for specs of kind aggregates."""

from __future__ import annotations

from pathlib import Path

from flows.options import err, out, print_json
from pldp.errors import GateFailed


def evaluate_items(spec: Path, home: Path, seed: int | None, source: Path | None, as_json: bool) -> None:
    from flows.aggregates import evaluate_aggregates
    from flows.progress import shown
    from flows.render_aggregates import aggregates_evaluation_json, show_aggregates_evaluation

    with shown(err):
        done = evaluate_aggregates(spec, home, seed=seed, source=source)
    if as_json:
        print_json(aggregates_evaluation_json(done))
    else:
        show_aggregates_evaluation(out, done)
    if not all(verdict.passed for verdict in done.verdicts):
        raise GateFailed(f"A gate failed in evaluation {done.evaluation_id}. Evaluations are never published.")


def plan_items(spec: Path, target_error: float | None, as_json: bool) -> None:
    from flows.forecast_aggregates import forecast_aggregates
    from flows.render_aggregates import show_aggregates_forecast
    from tasks.aggregates.file import load_aggregates

    found = forecast_aggregates(load_aggregates(spec), target_error)
    if as_json:
        print_json(found.as_json())
    else:
        show_aggregates_forecast(out, found)
