"""The plan command: what a spec promises before anybody is asked anything."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from pldp.channels.choice import reason
from pldp.channels.exact import float_above, log_above
from pldp.channels.protocol import Counts
from pldp.errors import SpecError
from pldp.estimate.combine import LINEAR_METHODS
from pldp.flows.forecast_numbers import mean_errors, mechanism_rows, sampling_rows
from pldp.privacy.leak import level_leak
from pldp.questions.histograms.plan import AttributePlan, Plan
from pldp.questions.histograms.predict import (
    budget_for,
    largest_error,
    level_costs,
    predict_hidden,
    predict_linear,
    predict_simulated,
    typical,
    users_for,
    worst_error,
)
from pldp.questions.histograms.resolve import considered, make_plan
from pldp.tasks.histogram_tables import budget_rows
from pldp.tasks.specfile import SpecFile

_SEED = 0
"""Simulated forecasts are repeatable; they touch nobody's data."""


@dataclass(frozen=True)
class Target:
    standard_error: float
    budget: float | None
    users: int | None
    covers: tuple[str, ...]
    """Which predicted errors must all reach it."""
    largest: str
    """The attribute whose error is the largest as the spec stands."""


@dataclass(frozen=True)
class Forecast:
    plan: Plan
    assumptions: tuple[str, ...]
    budgets: pl.DataFrame
    errors: pl.DataFrame
    costs: pl.DataFrame
    choices: pl.DataFrame
    """What each protocol would do: attribute × level × mechanism; × mechanism where levels are hidden."""
    means: pl.DataFrame
    """Predicted errors of means, by estimator."""
    sampling: pl.DataFrame
    """How many numbers a user of each level reports on, and why."""
    mechanisms: pl.DataFrame
    worst_error: float
    target: Target | None

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.plan.name,
            "plan_sha256": self.plan.sha256,
            "plan": self.plan.model_dump(mode="json"),
            "total_budget": float_above(self.plan.total),
            "worst_total": float_above(self.plan.worst_total),
            "expected_users": self.plan.expected_users,
            "assumptions": self.assumptions,
            "budgets": self.budgets.to_dicts(),
            "errors": self.errors.to_dicts(),
            "levels": self.costs.to_dicts(),
            "protocols": self.choices.to_dicts(),
            "means": self.means.to_dicts(),
            "sampling": self.sampling.to_dicts(),
            "mechanisms": self.mechanisms.to_dicts(),
            "worst_error": self.worst_error,
            "target": None if self.target is None else vars(self.target),
        }


def forecast(file: SpecFile, target_error: float | None = None) -> Forecast:
    """Predicted errors from the spec's assumptions; no data are read."""
    if target_error is not None and not 0 < target_error < 1:
        raise SpecError(f"--target-error must lie between 0 and 1 (got {target_error:g}). Nothing was run.")
    plan = file.plan
    sizes = plan.expected_sizes()
    target = None
    if target_error is not None:
        budget = budget_for(lambda total: make_plan(file.spec, total), target_error)
        largest, _ = largest_error(plan)
        target = Target(target_error, budget, users_for(plan, target_error), _covered(plan), largest)
    costs = [
        {"attribute": attribute.name, **vars(cost)}
        for attribute in plan.attributes
        for cost in level_costs(attribute, sizes, attribute.frequencies)
    ]
    return Forecast(
        plan=plan,
        assumptions=_assumptions(file, sizes),
        budgets=budget_rows(plan),
        errors=pl.DataFrame([row for attribute in plan.attributes for row in _errors(plan, attribute, sizes)]),
        costs=pl.DataFrame(costs),
        choices=_choices(file),
        means=mean_errors(plan.numbers, sizes),
        sampling=sampling_rows(file.spec, plan.numbers),
        mechanisms=mechanism_rows(file.spec, plan.numbers),
        worst_error=worst_error(plan),
        target=target,
    )


def _covered(plan: Plan) -> tuple[str, ...]:
    """What a target error is about, in the words of the answer."""
    covered = ["the typical share of every histogram"] if plan.attributes else []
    if plan.numbers is not None:
        covered.append("every mean as a share of its bounds")
    return tuple(covered)


def _errors(plan: Plan, attribute: AttributePlan, sizes: Counts) -> list[dict[str, Any]]:
    """Typical error per method: by formula where there is one, by simulation where the estimate is biased."""
    truth, recipe = attribute.frequencies, plan.recipe
    rng = np.random.default_rng(_SEED)
    found: list[tuple[str, str, float]] = []
    if plan.hidden is not None:
        for method, error in predict_hidden(attribute, plan.hidden, sizes, truth).items():
            found.append((method, "formula", typical(error)))
        simulated = {}
    else:
        for method in LINEAR_METHODS:
            found.append((method, "formula", typical(predict_linear(attribute, method, sizes, truth))))
        linear = replace(recipe, method="oc+") if recipe.method == "em" else recipe
        simulated = {f"{linear.method}, {recipe.postprocess}": linear} if recipe.postprocess != "none" else {}
    if recipe.method in ("op", "op-exact"):
        simulated[f"{recipe.method}, none"] = replace(recipe, postprocess="none")
    for label, variant in simulated.items():
        error = predict_simulated(attribute, variant.method, variant, sizes, truth, rng)
        found.append((label, "simulation", typical(error)))
    return [
        {"attribute": attribute.name, "values": len(truth), "method": method, "standard_error": error, "by": by}
        for method, by, error in found
    ]


def _choices(file: SpecFile) -> pl.DataFrame:
    """Every protocol that could serve, its predicted noise, report size and leak, and why the chosen one was."""
    spec, plan = file.spec, file.plan
    rows: list[dict[str, Any]] = []
    for attribute, planned in zip(spec.published, plan.attributes, strict=True):
        budgets = [level.budget for level in planned.levels]
        together = [(None, budgets)] if plan.hidden else [(level.level, [level.budget]) for level in planned.levels]
        for i, (level, decided) in enumerate(together):
            found = considered(spec, attribute, decided)
            used = planned.levels[i].mechanism
            chosen = next(candidate for candidate in found if candidate.mechanism == used)
            for candidate in found:
                leak = None if plan.hidden is None else level_leak([candidate.protocols], plan.hidden.protocol)
                why = reason(found, chosen) if candidate is chosen else candidate.refused
                rows.append(
                    {
                        "attribute": attribute.name,
                        "level": level,
                        "mechanism": candidate.mechanism,
                        "chosen": candidate is chosen,
                        "variance": candidate.variance,
                        "report_bytes": candidate.report_bytes,
                        "level_leak": None if leak is None else log_above(leak),
                        "why": why,
                    }
                )
    return pl.DataFrame(rows, schema_overrides={"level": pl.String, "level_leak": pl.Float64, "why": pl.String})


def _assumptions(file: SpecFile, sizes: Counts) -> tuple[str, ...]:
    spec, plan = file.spec, file.plan
    shares = ", ".join(f"{level} {size:,}" for level, size in zip(plan.levels, sizes, strict=True))
    stated = [attribute.name for attribute in spec.published if attribute.assumed is not None]
    said = [
        f"{plan.expected_users:,} users, of whom choose {shares}"
        + ("" if spec.expected.levels or spec.levels.assigned else " (equal shares, as the spec states none)"),
        "levels are chosen independently of the value",
    ]
    if spec.published:
        said.append(
            f"frequencies as stated for {', '.join(stated)}, equal for the rest" if stated else "equal frequencies"
        )
    if plan.numbers is not None:
        known = [number.name for number in spec.number_attributes if number.assumed is not None]
        evenly = "numbers spread evenly over their bounds"
        said.append(f"means and deviations as stated for {', '.join(known)}, else {evenly}" if known else evenly)
        if any(level.budgets.personal for level in plan.numbers.levels):
            said.append(f"an attribute matters to {plan.numbers.assumed_important:.0%} of users, each by itself")
    if plan.hidden is not None:
        said.append("levels are hidden: estimates see only what the reports tell about them")
    if plan.recipe.method in ("op", "op-exact"):
        said.append(
            "op is simulated with the true histogram as its reference; with a noisy one (the previous release) "
            "its largest error is typically 5 to 15 % above that of oc"
        )
    return tuple(said)
