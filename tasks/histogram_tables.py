"""The rows of histograms, their levels and budgets, as frames of the declared tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import polars as pl

from pldp.channels.exact import float_above, log_above
from pldp.estimate.combine import noise_variances, spread
from pldp.estimate.hidden import level_shares
from pldp.estimate.inference import RELIABLE, Histogram
from pldp.questions.histograms.plan import Plan
from pldp.tables.common import BUDGETS
from pldp.tables.histograms import HISTOGRAMS, LEVEL_ESTIMATES, LEVEL_SHARES
from pldp.tasks.count import Support
from pldp.tasks.estimate import LevelEstimates
from pldp.tasks.numbers import NumberResults, number_budget_rows
from pldp.tasks.tables import from_rows, stacked


def histogram_rows(plan: Plan, supports: tuple[Support, ...], histograms: tuple[Histogram, ...]) -> pl.DataFrame:
    """Attribute × value, as declared; none where a release is of numbers alone."""
    return stacked(HISTOGRAMS, _histograms(plan, supports, histograms))


def _histograms(
    plan: Plan, supports: tuple[Support, ...], histograms: tuple[Histogram, ...]
) -> Iterator[dict[str, Any]]:
    for attribute, support, histogram in zip(plan.attributes, supports, histograms, strict=True):
        n_reports = int(support.n.sum())
        unbiased = histogram.unbiased
        # A population behind the users adds to every error, as in pldp/estimate/inference.py.
        beyond = spread(unbiased.frequency, n_reports) / n_reports if plan.recipe.population else 0.0
        yield {
            "attribute": attribute.name,
            "value": attribute.values,
            "method": histogram.method,
            "postprocess": plan.recipe.postprocess,
            "frequency": histogram.frequency,
            "standard_error": histogram.standard_error,
            "ci_low": histogram.ci_low,
            "ci_high": histogram.ci_high,
            "count": histogram.frequency * n_reports,
            "unbiased_frequency": unbiased.frequency,
            "n_reports": n_reports,
            "reliable": unbiased.frequency > RELIABLE * unbiased.standard_error,
            "unbiased_standard_error": np.sqrt(unbiased.standard_error**2 + beyond),
        }


def level_rows(plan: Plan, estimates: tuple[LevelEstimates, ...]) -> pl.DataFrame:
    """Attribute × level × value, of the levels that somebody chose."""
    return stacked(LEVEL_ESTIMATES, _levels(plan, estimates))


def _levels(plan: Plan, estimates: tuple[LevelEstimates, ...]) -> Iterator[dict[str, Any]]:
    for attribute, estimate in zip(plan.attributes, estimates, strict=True):
        levels = estimate.levels
        inside = np.clip(levels.frequencies, 0, 1)
        for i, (name, protocol, n) in enumerate(zip(estimate.names, levels.protocols, levels.n, strict=True)):
            noise = noise_variances((protocol,), inside[i])[0]
            yield {
                "attribute": attribute.name,
                "level": name,
                "value": attribute.values,
                "mechanism": attribute.levels[plan.levels.index(name)].mechanism,
                "frequency": levels.frequencies[i],
                "standard_error": np.sqrt(noise / n),
                "n_reports": int(n),
            }


def share_rows(plan: Plan, supports: tuple[Support, ...]) -> pl.DataFrame:
    """Hidden levels: how many chose each, from the reports about the level alone."""
    return stacked(LEVEL_SHARES, _shares(plan, supports))


def _shares(plan: Plan, supports: tuple[Support, ...]) -> Iterator[dict[str, Any]]:
    if plan.hidden is None:
        return
    for support in supports[:1] if plan.one_level_for_all else supports:
        estimate = level_shares(support.n, plan.hidden.protocol)
        yield {
            "attribute": None if plan.one_level_for_all else support.attribute,
            "level": plan.levels,
            "share": estimate.frequency,
            "standard_error": estimate.standard_error,
        }


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
    return from_rows(BUDGETS, rows)
