"""Histograms beside the truth, for evaluations."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np

from pldp.channels.protocol import Counts, Floats
from pldp.questions.histograms.binned import even_quantiles
from pldp.questions.histograms.combine import HistogramsResult
from pldp.questions.histograms.study import AttributeStudy, study_attribute
from pldp.questions.histograms.study_hidden import study_hidden
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
        return {name: found.sum(axis=0) / found.sum() for name, found in self.counts.items()}


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
    tables: dict[str, Rows] = {"cells": {**rows, "truth": shares}, "methods": _methods(plan, truth, repeats)}
    quantiles = quantile_rows(result.binned)
    if quantiles:
        even: dict[tuple[str, float], float] = {}
        for attribute in plan.attributes:
            even |= even_quantiles(attribute, truth.shares[attribute.name])
        keys = zip(quantiles["attribute"], quantiles["probability"], strict=True)
        complete = {**quantiles, "estimate": quantiles["quantile"], "truth": [even[key] for key in keys]}
        tables["numbers"] = {name: complete[name] for name in NUMBERS}
    return tables


def _methods(plan: Histograms, truth: HistogramsTruth, repeats: Repeats) -> Rows:
    repeat = REPEATS if repeats.repeat is None else repeats.repeat
    rng = np.random.default_rng(repeats.seed)
    draw = study_attribute if plan.hidden is None else partial(study_hidden, hidden=plan.hidden)
    parts = []
    for attribute in plan.attributes if repeat else ():
        done: AttributeStudy = draw(
            attribute,
            recipe=plan.recipe,
            level_counts=truth.counts[attribute.name],
            repeats=repeat,
            rng=rng,
            keep_levels=repeats.keep_levels,
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
                    "maximum_error": method.maximum_error,
                    "nse": method.nse,
                    "unbiasedness_rate": done.unbiasedness_rate,
                    "disagreement_rate": done.disagreement_rate,
                }
            )
        repeats.progress()
    return stacked(parts)
