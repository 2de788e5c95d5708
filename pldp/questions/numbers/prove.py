"""Numbers prove their mechanisms and means: see docs/methods.md, section 17."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from pldp.channels.numeric.laplace import Laplace
from pldp.channels.numeric.mechanism import Tally
from pldp.channels.numeric.window import Window
from pldp.channels.randomness import Keystream
from pldp.proof.compared import Compared
from pldp.proof.laws import off
from pldp.proof.numeric import blur, bucket_law, numeric_law, steps, window_chances, window_gap
from pldp.proof.trial import Trial
from pldp.questions.madeup import NoReports
from pldp.questions.numbers.distribution import pools
from pldp.questions.numbers.estimate import FALLBACK, NumbersResult, estimate_means, users_of
from pldp.questions.numbers.plan import DISTRIBUTION, MEAN, Question
from pldp.questions.numbers.prove_errors import Known, Stated, compared
from pldp.questions.numbers.ramps import Class, Design
from pldp.questions.numbers.reports import NumberCounts
from pldp.questions.question import ANSWER

if TYPE_CHECKING:
    from pldp.questions.numbers.question import Numbers

PLACES = ((1.0, 8), (-1.0, 8), (0.5, 1))
"""Where made-up people stand in [−1, 1], and how many parts of them: means tell most of ε at the bounds."""
ALONE = ("reports", "scaled")
"""Estimators that weigh levels by their people alone."""
EACH = 720_720
"""Expected reports of every question and class."""


def recomputed(plan: Numbers) -> Iterator[Compared]:
    """The chances and moments of every mechanism beside those computed again from ε by other code."""
    for name, epsilon, mechanism in _channels(plan):
        if isinstance(mechanism, Window):
            chances = mechanism.inside, mechanism.outside, mechanism.inside - mechanism.outside
            shape = mechanism.bits, mechanism.window, epsilon
            again = np.array([*window_chances(*shape), window_gap(*shape)])
            yield Compared(name, off(np.array(chances, dtype=np.float64), again, steps(mechanism)))
        else:
            apart = [_unbiased(mechanism, epsilon, x) for x, _ in PLACES]
            yield Compared.between(name, apart, 0.0, 2 * blur(mechanism, epsilon))


def _unbiased(mechanism: Any, epsilon: float, x: float) -> float:
    """How far its scales are from making E y = x, and its gain and base from E y², under the law computed again."""
    if isinstance(mechanism, Laplace):
        # Its length is whole, so its ε lies below the stated one by up to a step, and by no more.
        exact = (1 << mechanism.bits + 10) / mechanism.length
        if not 0 <= epsilon / exact - 1 <= 2 / mechanism.length:
            return abs(epsilon / exact - 1)
        epsilon = exact
    law = numeric_law(mechanism, epsilon, x)
    scales = [float(scale) for scale in mechanism.scales]
    mean = sum(scale * part.mean for scale, part in zip(scales, law, strict=True))
    square = sum(scale**2 * part.square for scale, part in zip(scales, law, strict=True))
    expected_square = float(mechanism.gain) * x * x + float(mechanism.base)
    return max(abs(mean - x), abs(square / expected_square - 1))


def _channels(plan: Numbers) -> Iterator[tuple[str, float, Any]]:
    """Every mechanism that is different from the others, with its ε."""
    seen: set[tuple[Any, ...]] = set()
    for level in plan.levels:
        for one in level.classes:
            for used in one.mechanisms:
                key = (one.budget, used.mechanism, *used.parameters.values())
                if key not in seen:
                    seen.add(key)
                    yield f"{used.mechanism} at {level.level}", float(one.budget), used.realised


def recovered(plan: Numbers) -> Iterator[Compared]:
    """Means by the plan's estimator and by the one it falls back to, and the ramps behind intervals of quantiles. Their
    points are a likelihood's: channels are compared, and the numbers of reports rehearsed."""
    yield from (_ramps(plan, i) for i, question in enumerate(plan.questions) if question.kind == DISTRIBUTION)
    truth = dict(enumerate(np.linspace(-0.75, 0.5, len(plan.questions)).tolist()))
    for method in dict.fromkeys((plan.estimator, FALLBACK)):
        # Whoever estimates every level by itself needs nothing of choices: levels that differ show each one's weight.
        by_level = _by_level(plan, truth, leaning=method in ALONE)
        counts = [_expected(plan, level, means) for level, means in enumerate(by_level)]
        if method == plan.estimator and not any(question.kind == DISTRIBUTION for question in plan.questions):
            means = plan.combine(ANSWER, dict(zip(plan.codes, counts, strict=True)), NoReports()).means
        else:
            means = estimate_means(plan, counts, plan.recipe, method)
        rows = plan.tables(NumbersResult(tuple(counts), users_of(plan, counts), means, ()))["means"]
        published = {name: {key: rows[key][row] for key in rows} for row, name in enumerate(rows["attribute"])}
        people = np.array([len(level.classes) / level.sampled for level in plan.levels])
        for i, question in enumerate(plan.questions):
            if question.kind == MEAN:
                row, blurred = published[question.attribute], _blur(plan, i)
                there, *ends = (_inside(question, row[column]) for column in ("mean", "ci_low", "ci_high"))
                level_means = [means[i] for means in by_level]
                whole = people @ np.array(level_means) / people.sum()
                what = f"{question.attribute} by {method}"
                yield Compared.between(what, there, whole, blurred)
                if row["method"] in ALONE or plan.recipe.level_weight_cap is None:
                    error = row["standard_error"] / question.bounds.half_width
                    yield from compared(
                        Stated(what, error, ends[0], ends[1], blurred),
                        Known.of(plan, i, EACH, level_means),
                        row["method"],
                        plan.recipe,
                    )


def _inside(question: Question, value: float) -> float:
    """In [−1, 1] terms."""
    return (value - question.lower) / question.bounds.half_width - 1


def _ramps(plan: Numbers, asked: int) -> Compared:
    """People at every eighth edge, more of them at the higher ones: each ramp's mean tells how many lie below its edge,
    within what the ramp bends, which its interval is charged with."""
    question, slack = plan.questions[asked], 0.0
    places = np.arange(0, question.resolution + 1, question.resolution // 8)
    people = np.arange(1.0, places.size + 1) / np.arange(1.0, places.size + 1).sum()
    classes = []
    for number, level in enumerate(plan.levels):
        for one, window in zip(level.classes, plan.windows(asked, number), strict=True):
            bins = question.resolution
            law = np.array([bucket_law(window, float(one.budget), 2 * at / bins - 1, bins) for at in places.tolist()])
            slack = max(slack, blur(window, float(one.budget)))
            # Beyond a whole number by a little, of which the whole is taken.
            classes.append(Class(number, window, EACH * (1 + 1e-14) * (people @ law)))
    pilot = np.full(question.resolution + 1, 1 / (question.resolution + 1))
    users = [EACH * len(level.classes) for level in plan.levels]
    design = Design.of(classes, users, question.resolution, pilot, independent=pools(plan.recipe))
    ramps = design.ramps(1, None)[1]
    below = (places < np.arange(ramps.mean.size)[:, None]) @ people
    return Compared.between(
        f"ramps of {question.attribute}", np.maximum(np.abs(ramps.mean - below) - ramps.excess, 0), 0.0, slack
    )


def _by_level(plan: Numbers, truth: dict[int, float], *, leaning: bool) -> list[dict[int, float]]:
    shifts = [0.25 * leaning * level / len(plan.levels) for level in range(len(plan.levels))]
    return [{i: mean + shift for i, mean in truth.items()} for shift in shifts]


def _blur(plan: Numbers, asked: int) -> float:
    used = ((one.mechanisms[asked].realised, float(one.budget)) for level in plan.levels for one in level.classes)
    return max(blur(mechanism, epsilon) for mechanism, epsilon in used)


def _expected(plan: Numbers, level: int, truth: dict[int, float]) -> NumberCounts:
    means: dict[tuple[int, int], Tally] = {}
    for number, one in enumerate(plan.levels[level].classes):
        for i, used in enumerate(one.mechanisms):
            if plan.questions[i].kind != MEAN:
                continue
            # Half of the people stand at each bound of the grid around the truth: both on the grid of any mechanism.
            ends = [numeric_law(used.realised, float(one.budget), x) for x in (-1.0, 1.0)]
            high = EACH * (truth[i] + 1) / 2
            sizes = (EACH - high, high)
            columns = [
                tuple(
                    sum(n * getattr(law[scale], part) for n, law in zip(sizes, ends, strict=True))
                    for scale in range(len(ends[0]))
                )
                for part in ("chance", "mean", "square")
            ]
            means[i, number] = Tally(*columns)
    groups = len(plan.questions) * len(plan.levels[level].classes)
    return NumberCounts(groups * EACH, 0, means, {})


def rehearsed(plan: Numbers, stream: Keystream, cells: int) -> Iterator[Trial]:
    """Trials of the kernels with made-up people, at most `cells` cells drawn; the module loads when they are asked
    for."""
    from pldp.questions.numbers.rehearse import rehearse

    return rehearse(plan, stream, cells)
