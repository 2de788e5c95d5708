"""The plan command for frequent items: what a spec promises before anybody's items are read."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from pldp.channels.exact import float_above, log_above
from pldp.flows.forecast_shared import PlanForecast, refuse_target
from pldp.questions.items.plan import ItemsPlan, Sampled
from pldp.questions.items.predict import predicted_errors
from pldp.questions.items.statement import item_ratios, items_statement
from pldp.tasks.items.file import ItemsFile


@dataclass(frozen=True)
class ItemsForecast(PlanForecast):
    plan: ItemsPlan
    levels: pl.DataFrame
    """What a whole row spends at each level; an infinite ε is null."""
    items: pl.DataFrame
    """The exact ε of one item at each level; empty where users are sampled."""
    sensitivities: pl.DataFrame
    """Sensitivity × level: the most that one of its items spends, and the odds that this is; empty without any."""
    errors: pl.DataFrame
    """By length: the predicted standard error at the minimum support, of a typical set and of the noisiest."""

    def as_json(self) -> dict[str, Any]:
        return {
            **self.head(protocol=self.plan.protocol, why=self.plan.why),
            "levels": self.levels.to_dicts(),
            "items": self.items.to_dicts(),
            "sensitivities": self.sensitivities.to_dicts(),
            "errors": self.errors.to_dicts(),
        }


def forecast_items(file: ItemsFile, target_error: float | None = None) -> ItemsForecast:
    """Predicted errors and exact budgets from the spec alone."""
    refuse_target(target_error, "compare the predicted errors of two budgets instead")
    plan = file.plan
    statement = items_statement(plan, "", plan.expected_users)
    items = [{**row, **spent} for row in statement["items"] for spent in (row.pop("exact_epsilon"),)]
    return ItemsForecast(
        plan,
        _assumptions(plan),
        _notes(plan),
        pl.DataFrame(
            [
                {
                    "level": level.level,
                    "mechanism": level.way.mechanism,
                    "given": float_above(level.budget),
                    "exact_epsilon": None if (ratio := level.way.worst_ratio) is None else log_above(ratio),
                    "bound": float_above(level.bound),
                    "keeps_bound": level.keeps_bound,
                }
                for level in plan.levels
            ],
            schema_overrides={"exact_epsilon": pl.Float64},
        ),
        pl.DataFrame(items, infer_schema_length=None),
        _sensitivities(plan),
        pl.DataFrame([asdict(row) for row in predicted_errors(plan)]),
    )


def _sensitivities(plan: ItemsPlan) -> pl.DataFrame:
    """What each sensitivity gets, the least sensitive first; an infinite ε is null, and so are its odds."""
    rows: list[dict[str, object]] = []
    for sensitivity in sorted(set(plan.sensitivity or ())):
        members = [i for i, level in enumerate(plan.sensitivity or ()) if level == sensitivity]
        for level in plan.levels:
            ratios = item_ratios(level.way) or ()
            spent = [ratio for i in members if (ratio := ratios[i]) is not None]
            worst = max(spent) if len(spent) == len(members) else None
            rows.append(
                {
                    "sensitivity": sensitivity,
                    "items": len(members),
                    "level": level.level,
                    "exact_epsilon": None if worst is None else log_above(worst),
                    "odds": None if worst is None else float_above(worst),
                }
            )
    types = (pl.Int64, pl.Int64, pl.String, pl.Float64, pl.Float64)
    names = ("sensitivity", "items", "level", "exact_epsilon", "odds")
    return pl.DataFrame(rows, schema=dict(zip(names, types, strict=True)))


def _assumptions(plan: ItemsPlan) -> tuple[str, ...]:
    sizes = ", ".join(f"{name} {size:,}" for name, size in zip(plan.level_names, plan.expected_sizes(), strict=True))
    said = [f"{plan.expected_users:,} users" + (f", of whom choose {sizes}" if len(plan.levels) > 1 else "")]
    said.append(
        f"sets held by {plan.minimum_support:.2%} of users, the minimum, and their items by nobody else"
        if plan.holds == "many"
        else "equal shares of all values"
    )
    if len(plan.levels) > 1 and plan.combination == "oc+":
        said.append("levels are chosen independently of the items")
    way = plan.levels[0].way
    if isinstance(way, Sampled):
        said.append(f"rows of at most {way.items.length} items: longer ones understate their items")
        if way.sets is not None:
            said.append(f"rows that hold at most {way.sets.length} of the {way.sets.n_values} candidate sets")
    return tuple(said)


def _notes(plan: ItemsPlan) -> tuple[str, ...]:
    notes = []
    if plan.length < plan.asked_length:
        notes.append(
            f"sets of {plan.length} are the longest that are looked for, of {plan.asked_length} asked: the errors of "
            "longer ones would make frequent sets of noise"
        )
    beyond = [level.level for level in plan.levels if not level.keeps_bound]
    if beyond:
        notes.append(
            f"the exact ε of a row exceeds its bound at {', '.join(beyond)}: `pldp release` refuses this spec, "
            "`pldp evaluate` takes it"
        )
    return tuple(notes)
