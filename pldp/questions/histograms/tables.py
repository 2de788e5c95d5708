"""The published rows of histograms, by column; types and order are the tables' declarations'."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.exact import float_above, log_above
from pldp.estimate.combine import noise_variances, spread
from pldp.estimate.hidden import level_shares
from pldp.estimate.inference import RELIABLE, Histogram
from pldp.estimate.postprocess import CHOICES, least_risk
from pldp.questions.histograms.combine import HistogramsResult
from pldp.questions.numbers.tables import bin_rows, quantile_rows
from pldp.questions.question import Rows
from pldp.questions.rows import stacked

if TYPE_CHECKING:
    from pldp.questions.histograms.question import Histograms

_ESTIMATE = ("frequency", "standard_error", "ci_low", "ci_high", "interval")


def tables(plan: Histograms, result: HistogramsResult) -> dict[str, Rows]:
    """Whatever the plan has: a release may have hidden levels, binned numbers, several methods."""
    rows: dict[str, Rows] = {
        "histograms": histogram_rows(plan, result.supports, result.histograms),
        "estimates": estimate_rows(plan, result),
    }
    if plan.hidden is None:
        rows["level_estimates"] = level_rows(plan, result)
    else:
        rows["level_shares"] = share_rows(plan, result)
    if result.binned:
        rows |= {"quantiles": quantile_rows(result.binned), "bins": bin_rows(result.binned)}
    return rows


def histogram_rows(plan: Histograms, supports: Sequence[Any], histograms: Sequence[Histogram]) -> Rows:
    """Attribute × value: the answers, and the unbiased estimates behind them."""
    parts = []
    for attribute, support, histogram in zip(plan.attributes, supports, histograms, strict=True):
        # What a proof expects of hidden levels is whole within rounding only.
        n_reports, unbiased = round(support.n.sum()), histogram.unbiased
        # A population behind the users adds to every error, as in pldp/estimate/inference.py.
        beyond = spread(unbiased.frequency, n_reports) / n_reports if plan.recipe.population else 0.0
        parts.append(
            {
                "attribute": attribute.name,
                "value": attribute.values,
                **{column: getattr(histogram, column) for column in _ESTIMATE},
                "count": histogram.frequency * n_reports,
                "method": histogram.method,
                "postprocess": _applied(plan.recipe.postprocess, histogram),
                "n_reports": n_reports,
                "unbiased_frequency": unbiased.frequency,
                "unbiased_standard_error": np.sqrt(unbiased.standard_error**2 + beyond),
                "dependence": assumed(histogram.dependence),
                "bias_bound": histogram.bias,
                "level_weight_cap": plan.recipe.level_weight_cap,
                "reliable": unbiased.frequency > RELIABLE * unbiased.standard_error,
            }
        )
    return stacked(parts)


def assumed(dependence: float | None) -> str:
    """As it is declared."""
    return "unknown" if dependence is None else f"{dependence:g}"


def estimate_rows(plan: Histograms, result: HistogramsResult) -> Rows:
    """Attribute × method × value: every method that the spec names, the published answer among them."""
    parts = []
    for attribute, support in zip(plan.attributes, result.supports, strict=True):
        applied: set[str] = set()
        for place, method in enumerate(plan.methods_of(attribute)):
            histogram = result.estimates[method][attribute.name]
            if histogram.method in applied:
                continue  # the answer fell back to a method that is named too
            applied.add(histogram.method)
            parts.append(
                {
                    "attribute": attribute.name,
                    "value": attribute.values,
                    "method": histogram.method,
                    **{column: getattr(histogram, column) for column in _ESTIMATE},
                    "n_reports": round(support.n.sum()),
                    "is_answer": place == 0,
                    "dependence": assumed(histogram.dependence),
                    "bias_bound": histogram.bias,
                }
            )
    return stacked(parts)


def level_rows(plan: Histograms, result: HistogramsResult) -> Rows:
    """Attribute × level × value."""
    parts = []
    for attribute, estimates in zip(plan.attributes, result.levels, strict=True):
        levels = estimates.levels
        inside = np.clip(levels.frequencies, 0, 1)
        for i, (name, protocol, n) in enumerate(zip(estimates.names, levels.protocols, levels.n, strict=True)):
            parts.append(
                {
                    "attribute": attribute.name,
                    "level": name,
                    "value": attribute.values,
                    "frequency": levels.frequencies[i],
                    "standard_error": np.sqrt(noise_variances((protocol,), inside[i])[0] / n),
                    "n_reports": int(n),
                    "mechanism": attribute.levels[plan.levels.index(name)].mechanism,
                }
            )
    return stacked(parts)


def share_rows(plan: Histograms, result: HistogramsResult) -> Rows:
    """Hidden levels: how many chose each, from the reports about the level alone."""
    if plan.hidden is None:
        raise ValueError("only hidden levels have estimated shares")
    parts: list[Mapping[str, Any]] = []
    for support in result.supports[:1] if plan.one_level_for_all else result.supports:
        shares = level_shares(support.n, plan.hidden.protocol)
        parts.append(
            {
                "attribute": [None if plan.one_level_for_all else support.attribute] * len(plan.levels),
                "level": plan.levels,
                "share": shares.frequency,
                "standard_error": shares.standard_error,
            }
        )
    return stacked(parts)


def budgets(plan: Histograms, result: HistogramsResult | None) -> Rows:
    """Attribute × level: who spends what."""
    parts = []
    for i, attribute in enumerate(plan.attributes):
        leak = plan.leak([attribute])
        for j, level in enumerate(attribute.levels):
            parts.append(
                {
                    "attribute": [attribute.name],
                    "level": level.level,
                    "unit": plan.unit,
                    "mechanism": level.mechanism,
                    "nominal_epsilon": level.nominal_epsilon,
                    "exact_epsilon": level.exact_epsilon,
                    "level_leak": None if leak is None else log_above(leak),
                    "share": float_above(attribute.budget / plan.total),
                    "n_users": None if result is None or leak is not None else int(result.supports[i].n[j]),
                    **level.protocol.moments,
                }
            )
    return stacked(parts)


def _applied(name: str, histogram: Histogram) -> str:
    """The post-processing that `auto` chose, or the one that is named."""
    if name != "auto":
        return name
    return CHOICES[int(least_risk(histogram.unbiased.frequency, histogram.unbiased.standard_error))]
