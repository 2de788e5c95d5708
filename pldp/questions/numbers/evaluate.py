"""Means and quantiles beside the truth, for evaluations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pldp.channels.numeric.domain import CODES, Bounds
from pldp.questions.numbers.estimate import NumbersResult
from pldp.questions.numbers.plan import MEAN
from pldp.questions.numbers.study import LEAST_REPEATS, Studied, study_means, study_quantiles
from pldp.questions.numbers.tables import mean_rows, quantile_rows
from pldp.questions.question import Partitions, Repeats, Rows
from pldp.questions.rows import beside, coverage_row, joined, stacked

if TYPE_CHECKING:
    from pldp.questions.numbers.question import Numbers

REPEATS = 1000
STUDIED_CODES = 1 << 24
"""Numbers held at a time for repeated draws; of more people, those that come first in the order of the hash."""
_NEAR = 0.9
"""Of the way from the middle to a bound, from where on a mean counts as near it."""
_HALF = 16
"""Quantiles are found by the upper half of a code's 32 bits first, then by the lower half within it."""


@dataclass(frozen=True)
class NumbersTruth:
    """In the attributes' units."""

    means: dict[str, float]
    quantiles: dict[tuple[str, float], float]


def true_numbers(plan: Numbers, people: Partitions, result: NumbersResult) -> NumbersTruth:
    """Means and quantiles without noise, for evaluations alone."""
    names = [f"number_{i}" for i in plan.fields]
    totals, n_users = [0] * len(names), 0
    for rows in people(names):
        n_users += rows[names[0]].size
        totals = [total + int(rows[name].sum(dtype=np.uint64)) for total, name in zip(totals, names, strict=True)]
    means, quantiles = {}, {}
    for question in plan.questions:
        if question.kind == MEAN:
            means[question.attribute] = question.bounds.decode(2 * totals[question.column] / n_users / CODES - 1)
            continue
        _, codes = own_codes(people, names[question.column], n_users, question.probabilities)
        for probability, code in zip(question.probabilities, codes, strict=True):
            quantiles[question.attribute, probability] = question.bounds.decode(2 * code / CODES - 1)
    return NumbersTruth(means, quantiles)


def own_codes(
    people: Partitions, name: str, n_users: int, probabilities: Sequence[float]
) -> tuple[list[int], list[int]]:
    """Ranks of people's own quantiles, from 0, and their codes, the least that so many people have or stay below;
    exact, in memory that does not grow with them."""
    ranks = [max(math.ceil(probability * n_users), 1) - 1 for probability in probabilities]
    upper: NDArray[np.int64] = np.zeros(1 << _HALF, dtype=np.int64)
    for rows in people([name]):
        upper += np.bincount(rows[name].astype(np.uint32) >> np.uint32(_HALF), minlength=upper.size)
    below = np.concatenate([[0], np.cumsum(upper)])
    slots = (np.searchsorted(below, ranks, side="right") - 1).tolist()
    lower = {slot: np.zeros(1 << _HALF, dtype=np.int64) for slot in slots}
    for rows in people([name]):
        codes = rows[name].astype(np.uint32)
        for slot, counts in lower.items():
            inside = codes[codes >> np.uint32(_HALF) == slot] & np.uint32((1 << _HALF) - 1)
            counts += np.bincount(inside, minlength=counts.size)
    return ranks, [
        (slot << _HALF) + int(np.searchsorted(np.cumsum(lower[slot]), rank - below[slot], side="right"))
        for rank, slot in zip(ranks, slots, strict=True)
    ]


def study(
    plan: Numbers, people: Partitions, truth: NumbersTruth, result: NumbersResult, repeats: Repeats
) -> dict[str, Rows]:
    """Tables: numbers (means and quantiles) of the one run; means over repetitions."""
    means, quantiles = mean_rows(plan, result), quantile_rows(result.quantiles)
    nothing = [None] * len(means["attribute"])
    parts = [beside({**means, "probability": nothing}, "mean", [truth.means[name] for name in means["attribute"]])]
    if quantiles:
        keys = zip(quantiles["attribute"], quantiles["probability"], strict=True)
        parts.append(beside(quantiles, "quantile", [truth.quantiles[key] for key in keys]))
    means_studied, covered = _repeated(plan, people, truth, repeats)
    return {"numbers": joined(parts), "means": means_studied, **({"coverage": covered} if covered else {})}


def _repeated(plan: Numbers, people: Partitions, truth: NumbersTruth, repeats: Repeats) -> tuple[Rows, Rows]:
    """Tables means, over repeated draws in memory, and coverage: attribute × method × class."""
    repeat = REPEATS if repeats.repeat is None else repeats.repeat
    if not repeat:
        return {}, {}
    fields = plan.vault_fields
    most, held = max(1, STUDIED_CODES // len(fields)), 0
    kept: list[list[NDArray[Any]]] = [[] for _ in (plan.choice_field, *fields)]
    for rows in people([plan.choice_field, *fields]):
        for column, name in zip(kept, (plan.choice_field, *fields), strict=True):
            column.append(rows[name][: most - held])
        held += kept[0][-1].size
        if held >= most:
            break
    levels, *columns = (np.concatenate(column) for column in kept)
    weights = np.stack(columns[plan.columns :]) if len(columns) > plan.columns else None
    studied = Studied(
        plan,
        levels.astype(np.uint8),
        np.stack(columns[: plan.columns]).astype(np.uint32),
        weights,
        repeats.stream("study numbers"),
        np.random.default_rng(repeats.seed),
    )
    first, *others = studied.dealings(keep_levels=repeats.keep_levels, gamma=repeats.dependence)
    means = study_means(studied, first, plan.recipe, repeat)
    each = min(repeat, max(LEAST_REPEATS, 2 * repeat // max(len(others), 1)))
    studies = [(first.choice, one) for one in means]
    studies += [(other.choice, one) for other in others for one in study_means(studied, other, plan.recipe, each)]
    bounds = {question.attribute: question.bounds for question in plan.questions}
    covered = []
    for choice, one in studies:
        name = _class(bounds[one.attribute], truth.means[one.attribute])
        if one.repeats:
            covered.append(coverage_row(one.attribute, one.method, choice, name, {name: one.coverage}, one.repeats))
    for dealing in (first, *others):
        for attribute, method, name, rate, times in study_quantiles(studied, dealing, plan.recipe, each):
            covered.append(coverage_row(attribute, method, dealing.choice, name, {name: rate}, times))
    return stacked([{name: [value] for name, value in vars(one).items()} for one in means]), stacked(covered)


def _class(bounds: Bounds, mean: float) -> str:
    """Near a bound nearly everybody must be there, and few people elsewhere decide."""
    return "mean near a bound" if abs(mean - bounds.decode(0.0)) > _NEAR * bounds.half_width else "mean"
