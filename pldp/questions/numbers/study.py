"""Repeated draws of means with the truth beside them, for evaluations: how far off each estimator is."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pldp.channels.numeric.domain import Codes, positions
from pldp.channels.randomness import Keystream
from pldp.estimate.inference import Recipe
from pldp.questions.numbers.estimate import estimate_means
from pldp.questions.numbers.means import ESTIMATORS
from pldp.questions.numbers.plan import MEAN, NumbersPlan
from pldp.questions.numbers.predict import predict_mean
from pldp.questions.numbers.reports import Weights, count_numbers, report_numbers

MOST_REPEATS = 200
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
    reports = sum(int(n) * level.sampled for n, level in zip(sizes, plan.levels, strict=True))
    repeats = max(2, min(repeats, MOST_REPEATS, _MOST_REPORTS // max(reports, 1)))
    own = [np.flatnonzero(levels == level) for level in range(len(plan.levels))]
    people = [(codes[:, at], None if weights is None else weights[:, at]) for at in own]
    found: dict[str, list[NDArray[np.float64]]] = {method: [] for method in ESTIMATORS}
    recipe = replace(recipe, population=False)  # the truth is that of these users
    for _ in range(repeats):
        counts = [
            count_numbers(plan, level, report_numbers(plan, level, *given, stream))
            for level, given in enumerate(people)
        ]
        for method, runs in found.items():
            means = [result.mean for result in estimate_means(plan, counts, recipe, method)]
            runs.append(np.array([(mean.mean, mean.ci_low, mean.ci_high) for mean in means]))
    return _summary(_with_truth(plan, codes), codes, sizes, users, {m: np.stack(runs) for m, runs in found.items()})


def _with_truth(plan: NumbersPlan, codes: Codes) -> NumbersPlan:
    """The plan with the values' true moments in place of those that it assumed, to predict from."""
    x = positions(codes)
    moments = zip(x.mean(axis=1), (x**2).mean(axis=1), strict=True)
    known = [{"mean": float(mean), "second_moment": float(moment)} for mean, moment in moments]
    questions = tuple(question.model_copy(update=known[question.column]) for question in plan.questions)
    return plan.model_copy(update={"questions": questions})


def _summary(
    plan: NumbersPlan, codes: Codes, sizes: NDArray[np.int64], users: int, found: dict[str, NDArray[np.float64]]
) -> tuple[MeanStudy, ...]:
    studies = []
    asked = [i for i, question in enumerate(plan.questions) if question.kind == MEAN]
    for place, i in enumerate(asked):
        question = plan.questions[i]
        truth = question.bounds.decode(float(positions(codes[question.column]).mean()))
        for method, runs in found.items():
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
