"""Repeated draws of means with the truth beside them, for evaluations: how far off each estimator is."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pldp.channels.numeric.domain import Codes, positions
from pldp.channels.randomness import Keystream
from pldp.estimate.inference import Recipe
from pldp.questions.numbers.distribution import estimate_quantiles
from pldp.questions.numbers.estimate import estimate_means
from pldp.questions.numbers.means import ESTIMATORS
from pldp.questions.numbers.plan import DISTRIBUTION, MEAN, NumbersPlan
from pldp.questions.numbers.predict import predict_mean
from pldp.questions.numbers.reports import NumberCounts, Weights, count_numbers, report_numbers

MOST_REPEATS = 200
QUANTILE_REPEATS = 40
_MOST_REPORTS = 1 << 27
"""Reports drawn in all, so that a large source does not take hours."""


@dataclass(frozen=True)
class MeanStudy:
    """One attribute and estimator over the repetitions, in the attribute's units."""

    attribute: str
    method: str
    repeats: int
    users: int
    rmse: float
    predicted: float
    bias: float
    coverage: float


def study_means(
    plan: NumbersPlan,
    levels: NDArray[np.uint8],
    codes: Codes,
    weights: Weights | None,
    repeats: int,
    recipe: Recipe,
    stream: Keystream,
) -> tuple[MeanStudy, ...]:
    """`codes` and `weights` have one row an attribute, one column a user."""
    users = levels.size
    sizes = np.bincount(levels, minlength=len(plan.levels))
    estimates: dict[str, list[NDArray[np.float64]]] = {method: [] for method in ESTIMATORS}
    recipe = replace(recipe, population=False)  # the truth is that of these users
    for counts in _drawn(plan, levels, codes, weights, min(repeats, MOST_REPEATS), stream):
        for method, runs in estimates.items():
            means = [result.mean for result in estimate_means(plan, counts, recipe, method)]
            runs.append(np.array([(mean.mean, mean.ci_low, mean.ci_high) for mean in means]))
    return _summary(_with_truth(plan, codes), codes, sizes, users, {m: np.stack(runs) for m, runs in estimates.items()})


def _drawn(
    plan: NumbersPlan,
    levels: NDArray[np.uint8],
    codes: Codes,
    weights: Weights | None,
    repeats: int,
    stream: Keystream,
) -> Iterator[list[NumberCounts]]:
    """The counts of every level, again and again."""
    sizes = np.bincount(levels, minlength=len(plan.levels))
    reports = sum(int(n) * level.sampled for n, level in zip(sizes, plan.levels, strict=True))
    members = [np.flatnonzero(levels == level) for level in range(len(plan.levels))]
    people = [(codes[:, at], None if weights is None else weights[:, at]) for at in members]
    for _ in range(max(2, min(repeats, _MOST_REPORTS // max(reports, 1)))):
        yield [
            count_numbers(plan, level, report_numbers(plan, level, *answers, stream))
            for level, answers in enumerate(people)
        ]


def study_quantiles(
    plan: NumbersPlan,
    levels: NDArray[np.uint8],
    codes: Codes,
    weights: Weights | None,
    repeats: int,
    recipe: Recipe,
    stream: Keystream,
) -> list[tuple[str, str, str, float, int]]:
    """Attribute, method, class, coverage of people's own quantiles, repetitions; as `study_means`, fewer times."""
    asked = [i for i, question in enumerate(plan.questions) if question.kind == DISTRIBUTION]
    if not asked:
        return []
    recipe = replace(recipe, population=False)
    truths = {i: _own(plan, i, codes) for i in asked}
    held, done = {i: np.zeros(len(truths[i])) for i in asked}, 0
    methods: dict[int, str] = {}
    for counts in _drawn(plan, levels, codes, weights, min(repeats, QUANTILE_REPEATS), stream):
        done += 1
        for i in asked:
            # Intervals need no bootstrap; it is for the bins' errors.
            estimated = estimate_quantiles(plan, counts, i, recipe, np.random.default_rng(done), repeats=2)
            methods[i] = estimated.method
            ends = [(one.ci_low, one.ci_high) for one in estimated.quantiles]
            held[i] += [low <= at <= high for (low, high), at in zip(ends, truths[i], strict=True)]
    return [
        (plan.questions[i].attribute, methods[i], f"quantile {p:g}", float(rate), done)
        for i in asked
        for p, rate in zip(plan.questions[i].probabilities, held[i] / done, strict=True)
    ]


def _own(plan: NumbersPlan, asked: int, codes: Codes) -> list[float]:
    """People's own quantiles: the least value that so many have or stay below."""
    question = plan.questions[asked]
    sorted_ = np.sort(positions(codes[question.column]))
    ranks = [max(math.ceil(p * sorted_.size), 1) - 1 for p in question.probabilities]
    return [question.bounds.decode(float(sorted_[rank])) for rank in ranks]


def _with_truth(plan: NumbersPlan, codes: Codes) -> NumbersPlan:
    """The plan with the values' true moments in place of those that it assumed, to predict from."""
    x = positions(codes)
    moments = zip(x.mean(axis=1), (x**2).mean(axis=1), strict=True)
    known = [{"mean": float(mean), "second_moment": float(moment)} for mean, moment in moments]
    questions = tuple(question.model_copy(update=known[question.column]) for question in plan.questions)
    return plan.model_copy(update={"questions": questions})


def _summary(
    plan: NumbersPlan, codes: Codes, sizes: NDArray[np.int64], users: int, estimates: dict[str, NDArray[np.float64]]
) -> tuple[MeanStudy, ...]:
    studies = []
    asked = [i for i, question in enumerate(plan.questions) if question.kind == MEAN]
    for place, i in enumerate(asked):
        question = plan.questions[i]
        truth = question.bounds.decode(float(positions(codes[question.column]).mean()))
        for method, runs in estimates.items():
            mean, low, high = runs[:, place].T
            kept = np.isfinite(mean)
            off = mean[kept] - truth
            studies.append(
                MeanStudy(
                    attribute=question.attribute,
                    method=method,
                    repeats=int(kept.sum()),
                    users=users,
                    rmse=float(np.sqrt(np.mean(off**2))),
                    predicted=predict_mean(plan, i, method, sizes) * question.bounds.half_width,
                    bias=float(off.mean()),
                    coverage=float(np.mean((low <= truth) & (truth <= high))),
                )
            )
    return tuple(studies)
