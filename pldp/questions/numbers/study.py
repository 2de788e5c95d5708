"""Repeated draws of means with the truth beside them, for evaluations: how far off each estimator is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from pldp.channels.numeric.domain import Codes, positions
from pldp.channels.randomness import Keystream
from pldp.estimate.dealing import AS_STATED, BY_CHANCE, SIDES, above, people_by_value
from pldp.estimate.inference import Recipe
from pldp.questions.numbers.distribution import estimate_quantiles
from pldp.questions.numbers.estimate import estimate_means
from pldp.questions.numbers.means import ESTIMATORS
from pldp.questions.numbers.plan import DISTRIBUTION, MEAN, NumbersPlan
from pldp.questions.numbers.predict import predict_mean
from pldp.questions.numbers.reports import NumberCounts, Weights, count_numbers, report_numbers

MOST_REPEATS = 200
QUANTILE_REPEATS = 40
LEAST_REPEATS = 20
"""Of every attribute that levels are dealt by, however many there are."""
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


@dataclass(frozen=True)
class Dealing:
    """How levels are dealt in repetitions, and the column of codes whose attribute they are dealt by; None for none."""

    choice: str
    deal: Callable[[], NDArray[np.uint8]]
    column: int | None = None


@dataclass(frozen=True)
class Studied:
    """People whose reports are drawn again and again; codes and weights have one row an attribute."""

    plan: NumbersPlan
    levels: NDArray[np.uint8]
    codes: Codes
    weights: Weights | None
    stream: Keystream
    rng: np.random.Generator

    def dealings(self, *, keep_levels: bool, gamma: float | None) -> list[Dealing]:
        """By chance, or as people chose; and where Γ is given by whether an attribute's number is large."""
        by_chance = Dealing(BY_CHANCE, lambda: self.rng.permutation(self.levels))
        dealings = [Dealing(AS_STATED, lambda: self.levels) if keep_levels else by_chance]
        for column, codes in enumerate(self.codes if gamma is not None else ()):
            leaning = above(codes, gamma or 1.0)
            for choice, side in SIDES.items() if leaning.any() else ():
                deal = partial(people_by_value, self.levels, leaning, gamma or 1.0, side, self.rng)
                dealings.append(Dealing(choice, deal, column))
        return dealings

    def drawn(self, dealing: Dealing, repeats: int) -> Iterator[list[NumberCounts]]:
        """The counts of every level, again and again."""
        sizes = np.bincount(self.levels, minlength=len(self.plan.levels))
        reports = sum(int(n) * level.sampled for n, level in zip(sizes, self.plan.levels, strict=True))
        for _ in range(max(2, min(repeats, _MOST_REPORTS // max(reports, 1)))):
            levels, counts = dealing.deal(), []
            for level in range(len(self.plan.levels)):
                at = np.flatnonzero(levels == level)
                people = self.codes[:, at], None if self.weights is None else self.weights[:, at]
                counts.append(count_numbers(self.plan, level, report_numbers(self.plan, level, *people, self.stream)))
            yield counts


def study_means(people: Studied, dealing: Dealing, recipe: Recipe, repeats: int) -> tuple[MeanStudy, ...]:
    """Every attribute and estimator; of the attribute alone that levels are dealt by."""
    plan = people.plan
    estimates: dict[str, list[NDArray[np.float64]]] = {method: [] for method in ESTIMATORS}
    recipe = replace(recipe, population=False)  # the truth is that of these users
    for counts in people.drawn(dealing, min(repeats, MOST_REPEATS)):
        for method, runs in estimates.items():
            means = [result.mean for result in estimate_means(plan, counts, recipe, method)]
            runs.append(np.array([(mean.mean, mean.ci_low, mean.ci_high) for mean in means]))
    sizes = np.bincount(people.levels, minlength=len(plan.levels))
    stacked = {method: np.stack(runs) for method, runs in estimates.items()}
    asked = [i for i, one in enumerate(plan.questions) if one.kind == MEAN]
    judged = [i for i in asked if dealing.column in (None, plan.questions[i].column)]
    return _summary(_with_truth(plan, people.codes), people.codes, sizes, asked, judged, stacked)


def study_quantiles(
    people: Studied, dealing: Dealing, recipe: Recipe, repeats: int
) -> list[tuple[str, str, str, float, int]]:
    """Attribute, method, class, coverage of people's own quantiles, repetitions; as `study_means`, fewer times."""
    plan = people.plan
    asked = [i for i, one in enumerate(plan.questions) if one.kind == DISTRIBUTION]
    asked = [i for i in asked if dealing.column in (None, plan.questions[i].column)]
    if not asked:
        return []
    recipe = replace(recipe, population=False)
    truths = {i: _own(plan, i, people.codes) for i in asked}
    held, done = {i: np.zeros(len(truths[i])) for i in asked}, 0
    methods: dict[int, str] = {}
    for counts in people.drawn(dealing, min(repeats, QUANTILE_REPEATS)):
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
    plan: NumbersPlan,
    codes: Codes,
    sizes: NDArray[np.int64],
    asked: list[int],
    judged: list[int],
    estimates: dict[str, NDArray[np.float64]],
) -> tuple[MeanStudy, ...]:
    """Of the questions that are judged, which are some of those that were asked."""
    studies = []
    for i in judged:
        question = plan.questions[i]
        truth = question.bounds.decode(float(positions(codes[question.column]).mean()))
        for method, runs in estimates.items():
            mean, low, high = runs[:, asked.index(i)].T
            kept = np.isfinite(mean)
            off = mean[kept] - truth
            studies.append(
                MeanStudy(
                    attribute=question.attribute,
                    method=method,
                    repeats=int(kept.sum()),
                    users=int(sizes.sum()),
                    rmse=float(np.sqrt(np.mean(off**2))),
                    predicted=predict_mean(plan, i, method, sizes) * question.bounds.half_width,
                    bias=float(off.mean()),
                    coverage=float(np.mean((low <= truth) & (truth <= high))),
                )
            )
    return tuple(studies)
