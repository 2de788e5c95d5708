"""Numbers right of the trust boundary: reports to counts, counts to means and quantiles, and their rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np
import polars as pl

from pldp.estimate.inference import Histogram
from pldp.questions.histograms.binned import binned_distribution
from pldp.questions.histograms.plan import Plan
from pldp.questions.numbers.estimate import Distribution, NumberMean, estimate_means, estimate_quantiles, users_of
from pldp.questions.numbers.plan import DISTRIBUTION, NumbersPlan
from pldp.questions.numbers.reports import NumberCounts, count_numbers
from pldp.tables.numbers import BINS, MEANS, QUANTILES
from pldp.tasks.combine import generator
from pldp.tasks.count import Support
from pldp.tasks.perturb_numbers import read_numbers
from pldp.tasks.run import Run
from pldp.tasks.stage import stage
from pldp.tasks.tables import from_rows, stacked


@dataclass(frozen=True)
class NumberTally:
    """What the files of one level and batch add; which partitions they were, each named once."""

    level: str
    partitions: tuple[int, ...]
    counts: NumberCounts


@dataclass(frozen=True)
class NumberResults:
    """Everything about numbers that comes before the gates; `counts` and `users` by level."""

    tallies: tuple[NumberTally, ...]
    counts: tuple[NumberCounts, ...]
    users: tuple[int, ...]
    means: tuple[NumberMean, ...]
    quantiles: tuple[Distribution, ...]


@stage(retries=2)
def count_number_reports(run: Run, batch: Sequence[int]) -> list[NumberTally]:
    """One tally a level: a tally a partition would grow with the data."""
    numbers = run.plan.numbers
    if numbers is None:
        return []
    return [
        NumberTally(
            level.level,
            tuple(batch),
            reduce(add, (count_numbers(numbers, i, read_numbers(run.numbers_file(level.level, p))) for p in batch)),
        )
        for i, level in enumerate(numbers.levels)
    ]


def add_up_numbers(numbers: NumbersPlan, tallies: Iterable[NumberTally]) -> tuple[NumberCounts, ...]:
    """Counts of every level, summed over partitions."""
    found = list(tallies)
    return tuple(reduce(add, (t.counts for t in found if t.level == level.level)) for level in numbers.levels)


@stage(retries=2)
def estimate_numbers(run: Run, tallies: tuple[NumberTally, ...]) -> NumberResults | None:
    """Means and quantiles of every attribute that has them.

    The bootstrap behind quantiles simulates from what the reports tell, so its generator needs no secret.
    """
    numbers, recipe = run.plan.numbers, run.plan.recipe
    if numbers is None:
        return None
    counts = add_up_numbers(numbers, tallies)
    found = [
        estimate_quantiles(numbers, counts, i, recipe, generator(run, f"{question.attribute} quantiles"))
        for i, question in enumerate(numbers.questions)
        if question.kind == DISTRIBUTION
    ]
    return NumberResults(
        tallies, counts, users_of(numbers, counts), estimate_means(numbers, counts, recipe), tuple(found)
    )


def binned_numbers(
    plan: Plan, supports: Sequence[Support], histograms: Sequence[Histogram]
) -> tuple[Distribution, ...]:
    """What the histograms of binned numbers tell of the numbers."""
    recipe = plan.recipe
    return tuple(
        binned_distribution(
            attribute,
            histogram,
            int(support.n.sum()),
            confidence=recipe.confidence,
            population=recipe.population,
        )
        for attribute, support, histogram in zip(plan.attributes, supports, histograms, strict=True)
        if attribute.edges
    )


def number_tables(
    plan: Plan, results: NumberResults | None, binned: Sequence[Distribution] = ()
) -> dict[str, pl.DataFrame]:
    """What is published of numbers, where there are any."""
    found = (*(results.quantiles if results is not None else ()), *binned)
    tables = {"quantiles": quantile_rows(found), "bins": bin_rows(found)} if found or results is not None else {}
    return tables if results is None else {"means": mean_rows(plan, results), **tables}


def mean_rows(plan: Plan, results: NumberResults | None) -> pl.DataFrame:
    """One row per numeric attribute, its declared bounds beside its mean."""
    rows = []
    if plan.numbers is not None and results is not None:
        bounds = {question.attribute: question.bounds for question in plan.numbers.questions}
        for found in results.means:
            lower, upper = bounds[found.attribute].lower, bounds[found.attribute].upper
            rows.append({"attribute": found.attribute, **vars(found.mean), "lower": lower, "upper": upper})
    return from_rows(MEANS, rows)


def quantile_rows(distributions: Sequence[Distribution]) -> pl.DataFrame:
    """Attribute × declared probability."""
    return from_rows(
        QUANTILES,
        (
            {"attribute": found.attribute, "method": found.method, **vars(quantile), "n_reports": found.n_reports}
            for found in distributions
            for quantile in found.quantiles
        ),
    )


def bin_rows(distributions: Sequence[Distribution]) -> pl.DataFrame:
    """The distributions behind the quantiles: shares of bins."""
    return stacked(
        BINS,
        (
            {
                "attribute": found.attribute,
                "bin_low": found.edges[:-1],
                "bin_high": found.edges[1:],
                "method": found.method,
                "frequency": found.frequency,
                "standard_error": np.maximum(found.standard_error, np.finfo(float).eps),
                "n_reports": found.n_reports,
            }
            for found in distributions
        ),
    )


def number_budget_rows(plan: Plan, results: NumberResults | None = None) -> list[dict[str, object]]:
    """One row an attribute and level: the most that a user of the level can spend on the attribute."""
    numbers = plan.numbers
    if numbers is None:
        return []
    rows: list[dict[str, object]] = []
    for attribute, asked in numbers.attributes.items():
        for i, level in enumerate(numbers.levels):
            nominal, exact = level.most(len(asked))
            used = dict.fromkeys(found.mechanisms[q].mechanism for q in asked for found in level.classes)
            rows.append(
                {
                    "attribute": attribute,
                    "level": level.level,
                    "unit": plan.unit,
                    "mechanism": " + ".join(used),
                    "nominal_epsilon": nominal,
                    "exact_epsilon": exact,
                    "share": float(numbers.budget / plan.total * len(asked) / len(numbers.questions)),
                    "n_users": None if results is None else results.users[i],
                }
            )
    return rows
