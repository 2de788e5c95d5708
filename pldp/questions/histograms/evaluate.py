"""Histograms beside the truth, for evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.protocol import Counts, Floats
from pldp.questions.histograms.binned import even_quantiles
from pldp.questions.histograms.combine import HistogramsResult
from pldp.questions.histograms.plan import AttributePlan
from pldp.questions.histograms.study import AttributeStudy, MethodStudy, study_attribute
from pldp.questions.histograms.study_hidden import study_hidden
from pldp.questions.histograms.study_quantiles import study_quantiles
from pldp.questions.histograms.tables import histogram_rows
from pldp.questions.numbers.tables import quantile_rows
from pldp.questions.question import Partitions, Repeats, Rows
from pldp.questions.rows import stacked

if TYPE_CHECKING:
    from pldp.questions.histograms.question import Histograms

REPEATS = 1000
NUMBERS = (
    "attribute",
    "probability",
    "method",
    "estimate",
    "standard_error",
    "ci_low",
    "ci_high",
    "n_reports",
    "truth",
)
"""Columns of the evaluation's table of means and quantiles."""


@dataclass(frozen=True)
class HistogramsTruth:
    counts: dict[str, Counts]
    """(level, value) of every attribute."""

    @cached_property
    def shares(self) -> dict[str, Floats]:
        return {name: counts.sum(axis=0) / counts.sum() for name, counts in self.counts.items()}


def true_counts(plan: Histograms, people: Partitions) -> HistogramsTruth:
    fields = [(plan.choice_field(i), f"value_{i}") for i in range(len(plan.attributes))]
    counts = {a.name: np.zeros((len(plan.levels), len(a.values)), dtype=np.int64) for a in plan.attributes}
    for rows in people(list(dict.fromkeys(name for pair in fields for name in pair))):
        for (level, value), table in zip(fields, counts.values(), strict=True):
            place = rows[level].astype(np.int64) * table.shape[1] + rows[value]
            table += np.bincount(place, minlength=table.size).reshape(table.shape)
    return HistogramsTruth(counts)


def study(plan: Histograms, truth: HistogramsTruth, result: HistogramsResult, repeats: Repeats) -> dict[str, Rows]:
    """Tables: cells (attribute × value) and numbers (quantiles of bins) of the one run; methods over repetitions."""
    shares = [share for attribute in plan.attributes for share in truth.shares[attribute.name]]
    rows = histogram_rows(plan, result.supports, result.histograms)
    tables: dict[str, Rows] = {"cells": {**rows, "truth": shares}, **_methods(plan, truth, repeats)}
    quantiles = quantile_rows(result.binned)
    if quantiles:
        even: dict[tuple[str, float], float] = {}
        for attribute in plan.attributes:
            even |= even_quantiles(attribute, truth.shares[attribute.name])
        keys = zip(quantiles["attribute"], quantiles["probability"], strict=True)
        complete = {**quantiles, "estimate": quantiles["quantile"], "truth": [even[key] for key in keys]}
        tables["numbers"] = {name: complete[name] for name in NUMBERS}
    return tables


CLASSES = ("nobody", "one person", "rare", "middle", "top")
"""Values by who holds them: rare below a fifth of an equal share, the top the most frequent one."""


def value_classes(counts: Counts) -> list[str]:
    """The class of every value, from how many people hold it."""
    equal = counts.sum() / counts.size
    named = ["nobody" if n == 0 else "one person" if n == 1 else "rare" if n < equal / 5 else "middle" for n in counts]
    named[int(counts.argmax())] = "top"
    return named


def _worst(attribute: AttributePlan, method: MethodStudy) -> dict[str, Any]:
    """The value whose interval missed most often, and what chance leaves open about how often."""
    if method.covered is None:
        return {"worst_value": None, "worst_coverage": None, "worst_error": None}
    place = int(method.covered.argmin())
    rate = float(method.covered[place])
    error = float(np.sqrt(max(rate * (1 - rate), 1 / method.repeats) / method.repeats))
    return {"worst_value": attribute.values[place], "worst_coverage": rate, "worst_error": error}


def coverage_rows(attribute: AttributePlan, counts: Counts, done: AttributeStudy) -> list[dict[str, Any]]:
    """Coverage by class of values: the mean over all hides the few that matter most."""
    classes = np.array(value_classes(counts))
    rows = []
    for method in done.methods:
        for name in CLASSES if method.covered is not None else ():
            cells = method.covered[classes == name] if method.covered is not None else np.zeros(0)
            if not cells.size:
                continue
            rate, least = float(cells.mean()), float(cells.min())
            # Values of one class share the dealing of people: at worst all of them go together.
            error = float(np.sqrt(max(rate * (1 - rate), 1 / method.repeats) / method.repeats))
            rows.append(
                {
                    "attribute": [attribute.name],
                    "method": method.method,
                    "class": name,
                    "values": cells.size,
                    "coverage": rate,
                    "least": least,
                    "monte_carlo_error": error,
                    "repeats": method.repeats,
                }
            )
    return rows


def _methods(plan: Histograms, truth: HistogramsTruth, repeats: Repeats) -> dict[str, Rows]:
    """Tables methods, and coverage (attribute × method × class of values)."""
    repeat = REPEATS if repeats.repeat is None else repeats.repeat
    rng = np.random.default_rng(repeats.seed)
    draw = study_attribute if plan.hidden is None else partial(study_hidden, hidden=plan.hidden)
    parts, covered = [], []
    for attribute in plan.attributes if repeat else ():
        done: AttributeStudy = draw(
            attribute,
            recipe=plan.recipe,
            level_counts=truth.counts[attribute.name],
            repeats=repeat,
            rng=rng,
            keep_levels=repeats.keep_levels,
        )
        covered += coverage_rows(attribute, truth.counts[attribute.name].sum(axis=0), done)
        if attribute.probabilities and plan.hidden is None:
            covered += study_quantiles(
                attribute, plan.recipe, truth.counts[attribute.name], repeat, rng, keep_levels=repeats.keep_levels
            )
        for method in done.methods:
            predicted = None if method.predicted is None else float(np.sqrt(np.mean(method.predicted**2)))
            parts.append(
                {
                    "attribute": [attribute.name],
                    "method": method.method,
                    "repeats": method.repeats,
                    "rmse": float(np.sqrt(np.mean(method.rmse**2))),
                    "predicted": predicted,
                    "worst_bias": float(np.max(np.abs(method.bias))),
                    "coverage": method.coverage,
                    **_worst(attribute, method),
                    "maximum_error": method.maximum_error,
                    "nse": method.nse,
                    "unbiasedness_rate": done.unbiasedness_rate,
                    "disagreement_rate": done.disagreement_rate,
                }
            )
        repeats.progress()
    return {"methods": stacked(parts), **({"coverage": stacked(covered)} if covered else {})}
