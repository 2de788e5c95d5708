"""The rows of the published tables, as frames. The tables themselves stand in sql/5*_publish_*.sql."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pldp.channels.exact import float_above, log_above
from pldp.estimate.combine import noise_variances, spread
from pldp.estimate.hidden import level_shares
from pldp.estimate.inference import RELIABLE, Histogram
from pldp.questions.histograms.plan import Plan
from pldp.tasks.count import Support
from pldp.tasks.estimate import LevelEstimates
from pldp.tasks.numbers import NumberResults, number_budget_rows

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict

_BUDGETS = (
    dict.fromkeys(("attribute", "level", "unit", "mechanism"), pl.String)
    | dict.fromkeys(("nominal_epsilon", "exact_epsilon", "level_leak", "share"), pl.Float64)
    | {"n_users": pl.Int64}
    | dict.fromkeys(("noise_own", "noise_other", "covariance_slope", "covariance_base"), pl.Float64)
)
"""All columns, whatever the plan has: numbers alone have no moments and no leak, and these are null."""


def histogram_rows(plan: Plan, supports: tuple[Support, ...], histograms: tuple[Histogram, ...]) -> pl.DataFrame:
    shares = (
        "frequency",
        "standard_error",
        "ci_low",
        "ci_high",
        "count",
        "unbiased_frequency",
        "unbiased_standard_error",
    )
    schema = {"value": pl.String, **dict.fromkeys(shares, pl.Float64), "reliable": pl.Boolean}
    texts = dict.fromkeys(("attribute", "method", "postprocess"), pl.String)
    frames = [pl.DataFrame(schema={**schema, **texts, "n_reports": pl.Int64})]  # a release may be of numbers alone
    for attribute, support, histogram in zip(plan.attributes, supports, histograms, strict=True):
        n_reports = int(support.n.sum())
        unbiased = histogram.unbiased
        # A population behind the users adds to every error, as in pldp/estimate/inference.py.
        beyond = spread(unbiased.frequency, n_reports) / n_reports if plan.recipe.population else 0.0
        frame = pl.DataFrame(
            {
                "value": attribute.values,
                "frequency": histogram.frequency,
                "standard_error": histogram.standard_error,
                "ci_low": histogram.ci_low,
                "ci_high": histogram.ci_high,
                "count": histogram.frequency * n_reports,
                "unbiased_frequency": unbiased.frequency,
                "unbiased_standard_error": np.sqrt(unbiased.standard_error**2 + beyond),
                "reliable": unbiased.frequency > RELIABLE * unbiased.standard_error,
            }
        )
        frames.append(
            frame.with_columns(
                attribute=pl.lit(attribute.name),
                method=pl.lit(histogram.method),
                postprocess=pl.lit(plan.recipe.postprocess),
                n_reports=pl.lit(n_reports, dtype=pl.Int64),
            )
        )
    return pl.concat(frames)


def level_rows(plan: Plan, estimates: tuple[LevelEstimates, ...]) -> pl.DataFrame:
    texts = dict.fromkeys(("attribute", "level", "mechanism"), pl.String)
    schema = {"value": pl.String, "frequency": pl.Float64, "standard_error": pl.Float64, **texts, "n_reports": pl.Int64}
    frames = [pl.DataFrame(schema=schema)]
    for attribute, found in zip(plan.attributes, estimates, strict=True):
        levels = found.levels
        inside = np.clip(levels.frequencies, 0, 1)
        for i, (name, protocol, n) in enumerate(zip(found.names, levels.protocols, levels.n, strict=True)):
            noise = noise_variances((protocol,), inside[i])[0]
            frame = pl.DataFrame(
                {
                    "value": attribute.values,
                    "frequency": levels.frequencies[i],
                    "standard_error": np.sqrt(noise / n),
                }
            )
            frames.append(
                frame.with_columns(
                    attribute=pl.lit(attribute.name),
                    level=pl.lit(name),
                    mechanism=pl.lit(attribute.levels[plan.levels.index(name)].mechanism),
                    n_reports=pl.lit(int(n), dtype=pl.Int64),
                )
            )
    return pl.concat(frames)


def share_rows(plan: Plan, supports: tuple[Support, ...]) -> pl.DataFrame:
    """Hidden levels: how many chose each, from the reports about the level alone."""
    schema = {"attribute": pl.String, "level": pl.String, "share": pl.Float64, "standard_error": pl.Float64}
    if plan.hidden is None:
        return pl.DataFrame(schema=schema)
    frames = []
    for support in supports[:1] if plan.one_level_for_all else supports:
        found = level_shares(support.n, plan.hidden.protocol)
        ruled = [None if plan.one_level_for_all else support.attribute] * len(plan.levels)
        columns = (ruled, plan.levels, found.frequency, found.standard_error)
        frames.append(pl.DataFrame(dict(zip(schema, columns, strict=True)), schema=schema))
    return pl.concat(frames)


def budget_rows(
    plan: Plan, supports: tuple[Support, ...] | None = None, numbers: NumberResults | None = None
) -> pl.DataFrame:
    """Who spends what; without supports (a plan has none yet) nobody has chosen a level."""
    rows: list[dict[str, object]] = []
    for i, attribute in enumerate(plan.attributes):
        leak = plan.leak([attribute])
        for j, level in enumerate(attribute.levels):
            rows.append(
                {
                    "attribute": attribute.name,
                    "level": level.level,
                    "unit": plan.unit,
                    "mechanism": level.mechanism,
                    "nominal_epsilon": level.nominal_epsilon,
                    "exact_epsilon": level.exact_epsilon,
                    "level_leak": None if leak is None else log_above(leak),
                    "share": float_above(attribute.budget / plan.total),
                    "n_users": None if supports is None or leak is not None else int(supports[i].n[j]),
                    **level.protocol.moments,
                }
            )
    rows += number_budget_rows(plan, numbers)
    return pl.DataFrame(rows, schema=_BUDGETS)


def validation_rows(verdicts: tuple[Verdict, ...]) -> pl.DataFrame:
    columns = ("gate", "sentence", "passed", "observed", "bound", "false_alarm")
    return pl.DataFrame([{column: getattr(verdict, column) for column in columns} for verdict in verdicts])
