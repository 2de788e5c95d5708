"""Histograms beside the truth, for evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.numeric.domain import CODES, Bounds
from pldp.channels.protocol import Counts, Floats
from pldp.estimate.dealing import AS_STATED, BY_CHANCE, as_stated, by_chance
from pldp.questions.histograms.combine import HistogramsResult
from pldp.questions.histograms.plan import AttributePlan
from pldp.questions.histograms.study import AttributeStudy, MethodStudy, study_attribute
from pldp.questions.histograms.study_hidden import study_hidden
from pldp.questions.histograms.study_leaning import study_leaning
from pldp.questions.histograms.study_quantiles import study_quantiles
from pldp.questions.histograms.tables import histogram_rows
from pldp.questions.numbers.evaluate import own_codes
from pldp.questions.numbers.tables import quantile_rows
from pldp.questions.question import Partitions, Repeats, Rows
from pldp.questions.rows import beside, coverage_row, monte_carlo_error, stacked

if TYPE_CHECKING:
    from pldp.questions.histograms.question import Histograms

REPEATS = 1000


@dataclass(frozen=True)
class HistogramsTruth:
    counts: dict[str, Counts]
    """(level, value) of every attribute."""
    quantiles: dict[tuple[str, float], float] = field(default_factory=dict)
    """People's own, of binned numbers, by attribute and probability."""

    @cached_property
    def shares(self) -> dict[str, Floats]:
        return {name: counts.sum(axis=0) / counts.sum() for name, counts in self.counts.items()}


def true_histograms(plan: Histograms, people: Partitions) -> HistogramsTruth:
    """For evaluations: counts without noise by attribute, level and value, and quantiles of the numbers behind bins."""
    counts = true_counts(plan, people)
    quantiles: dict[tuple[str, float], float] = {}
    for i, attribute in enumerate(plan.attributes):
        if attribute.probabilities:
            numbers = _own_quantiles(attribute, people, f"exact_{i}", counts[attribute.name].sum(axis=0))
            quantiles |= {(attribute.name, p): at for p, at in zip(attribute.probabilities, numbers, strict=True)}
    return HistogramsTruth(counts, quantiles)


def true_counts(plan: Histograms, people: Partitions) -> dict[str, Counts]:
    """How many people hold each value at each level, by attribute; for evaluations alone."""
    fields = [(plan.choice_field(i), f"value_{i}") for i in range(len(plan.attributes))]
    counts = {a.name: np.zeros((len(plan.levels), len(a.values)), dtype=np.int64) for a in plan.attributes}
    for rows in people(list(dict.fromkeys(name for pair in fields for name in pair))):
        for (level, value), table in zip(fields, counts.values(), strict=True):
            place = rows[level].astype(np.int64) * table.shape[1] + rows[value]
            table += np.bincount(place, minlength=table.size).reshape(table.shape)
    return counts


def _own_quantiles(attribute: AttributePlan, people: Partitions, column: str, counts: Counts) -> list[float]:
    """The least number that so many people have or stay below. Codes are rounded, bins are not: the bin decides."""
    edges = attribute.edges
    ranks, codes = own_codes(people, column, int(counts.sum()), attribute.probabilities)
    bins = np.searchsorted(np.cumsum(counts), ranks, side="right").tolist()
    numbers = (Bounds(edges[0], edges[-1]).decode(2 * code / CODES - 1) for code in codes)
    return [min(max(number, edges[b]), edges[b + 1]) for number, b in zip(numbers, bins, strict=True)]


def study(plan: Histograms, truth: HistogramsTruth, result: HistogramsResult, repeats: Repeats) -> dict[str, Rows]:
    """Tables: cells (attribute × value) and numbers (quantiles of bins) of the one run; methods over repetitions."""
    shares = [share for attribute in plan.attributes for share in truth.shares[attribute.name]]
    rows = histogram_rows(plan, result.supports, result.histograms)
    tables: dict[str, Rows] = {"cells": {**rows, "truth": shares}, **_methods(plan, truth, repeats)}
    quantiles = quantile_rows(result.binned)
    if quantiles:
        keys = zip(quantiles["attribute"], quantiles["probability"], strict=True)
        tables["numbers"] = beside(quantiles, "quantile", [truth.quantiles[key] for key in keys])
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
    error = monte_carlo_error(rate, method.repeats)
    return {"worst_value": attribute.values[place], "worst_coverage": rate, "worst_error": error}


def coverage_rows(
    attribute: AttributePlan, counts: Counts, methods: Sequence[MethodStudy], choice: str
) -> list[dict[str, Any]]:
    """Coverage by class of values: the mean over all hides the few that matter most."""
    classes = value_classes(counts)
    rows = []
    for method in methods:
        if method.covered is None:
            continue
        rates = dict(zip(attribute.values, method.covered.tolist(), strict=True))
        for name in CLASSES:
            cells = {
                value: rates[value] for value, belongs in zip(attribute.values, classes, strict=True) if belongs == name
            }
            if cells:
                rows.append(coverage_row(attribute.name, method.method, choice, name, cells, method.repeats))
    return rows


def _methods(plan: Histograms, truth: HistogramsTruth, repeats: Repeats) -> dict[str, Rows]:
    """Tables methods, and coverage (attribute × method × how levels were dealt × class of values)."""
    repeat = REPEATS if repeats.repeat is None else repeats.repeat
    rng = np.random.default_rng(repeats.seed)
    choice, dealer = (AS_STATED, as_stated) if repeats.keep_levels else (BY_CHANCE, by_chance)
    parts, covered = [], []
    for attribute in plan.attributes if repeat else ():
        draw = study_attribute if plan.hidden is None else partial(study_hidden, hidden=plan.hidden)
        again = partial(draw, recipe=plan.recipe, rng=rng)
        counts = truth.counts[attribute.name]
        deal = dealer(counts)
        done: AttributeStudy = again(attribute, level_counts=counts, repeats=repeat, deal=deal)
        covered += coverage_rows(attribute, counts.sum(axis=0), done.methods, choice)
        if repeats.dependence is not None:
            for side, leaning in study_leaning(again, attribute, counts, repeats.dependence, repeat).items():
                covered += coverage_rows(attribute, counts.sum(axis=0), leaning.methods, side)
        if attribute.probabilities:
            deals = {choice: deal}
            covered += study_quantiles(plan, attribute, truth.quantiles, counts, deals, repeats.dependence, repeat, rng)
        parts += [_method_row(attribute, done, method) for method in done.methods]
        repeats.progress()
    return {"methods": stacked(parts), **({"coverage": stacked(covered)} if covered else {})}


def _method_row(attribute: AttributePlan, done: AttributeStudy, method: MethodStudy) -> dict[str, Any]:
    return {
        "attribute": [attribute.name],
        "method": method.method,
        "repeats": method.repeats,
        "rmse": float(np.sqrt(np.mean(method.rmse**2))),
        "predicted": None if method.predicted is None else float(np.sqrt(np.mean(method.predicted**2))),
        "worst_bias": float(np.max(np.abs(method.bias))),
        "coverage": method.coverage,
        **_worst(attribute, method),
        "maximum_error": method.maximum_error,
        "nse": method.nse,
        "unbiasedness_rate": done.unbiasedness_rate,
        "disagreement_rate": done.disagreement_rate,
    }
