"""Errors and intervals of means that the proof expects of its made-up people, by docs/numeric.md, section 8.

All of them stand at a bound, so E[x²] = 1 and a report of a class has the variance E[y²] − mean², E[y²] by the law that
is computed again from ε.
"""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING

import numpy as np

from pldp.channels.protocol import Floats
from pldp.proof.compared import NEAR, Compared, errors_between
from pldp.proof.numeric import numeric_law

if TYPE_CHECKING:
    from pldp.estimate.inference import Recipe
    from pldp.questions.numbers.question import Numbers

_GRID = 2.0**-15
"""Half a step of the grid that values are rounded to at random: no error is below that of a mean of such."""
_REACH = 1.96


@dataclass(frozen=True)
class Known:
    """Of one attribute: by level its people and its mean, and by class E[y²]; every class has as many reports."""

    each: int
    users: Floats
    means: Floats
    squares: list[Floats]
    gains: list[Floats]

    @classmethod
    def of(cls, plan: Numbers, asked: int, each: int, means: list[float]) -> Known:
        squares, gains = [], []
        for level in plan.levels:
            used = [(one.mechanisms[asked].realised, float(one.budget)) for one in level.classes]
            laws = [(mechanism.scales, numeric_law(mechanism, epsilon, 1.0)) for mechanism, epsilon in used]
            parts = [[float(s) ** 2 * one.square for s, one in zip(*both, strict=True)] for both in laws]
            squares.append(np.array([sum(part) for part in parts]))
            gains.append(np.array([float(mechanism.gain) for mechanism, _ in used]))
        users = [each * len(plan.questions) * len(level.classes) // level.sampled for level in plan.levels]
        return cls(each, np.array(users, dtype=np.float64), np.array(means), squares, gains)

    @property
    def reports(self) -> int:
        return self.each * sum(map(len, self.squares))


@dataclass(frozen=True)
class Stated:
    """A published row, in [−1, 1] terms; what `budgets` leave to double precision of its mean."""

    what: str
    error: float
    low: float
    high: float
    blur: float


def compared(stated: Stated, known: Known, method: str, recipe: Recipe) -> list[Compared]:
    """Its standard error, and both ends."""
    m, population = known.reports, recipe.population
    z = NormalDist().inv_cdf(0.5 + recipe.confidence / 2)
    z += (z**3 + z) / (4 * (m - 1))  # Student's, of so many reports
    ends = np.array([stated.low, stated.high])
    if method == "inverse-variance":
        mean, variance, at_ends = _pooled(known, ends, population=population)
        reach = z * np.maximum(np.sqrt(at_ends), _GRID / np.sqrt(m))
    else:
        mean, variance = _by_level(known, method, population=population)
        reach = z * np.sqrt(max(variance, _GRID**2 / m) + _lacking(known, method, mean, ends, population=population))
    variance = max(variance, _GRID**2 / m)
    # An end is where the test begins to reject; at a bound nothing may be rejected.
    beyond = reach - np.abs(ends - mean)
    off = np.where(np.abs(ends) < 1, np.abs(beyond), np.maximum(-beyond, 0)) - NEAR * reach
    return [
        errors_between(f"error of {stated.what}", stated.error**2 * m, variance * m, 8 * stated.blur),
        Compared.between(f"interval of {stated.what}", np.maximum(off, 0), 0.0, stated.blur),
    ]


def _lacking(known: Known, method: str, mean: float, ends: Floats, *, population: bool) -> Floats:
    """What each end adds for people at the bound beyond it whom nobody asked: their share times what one of them adds
    to S², which is at most 1 − f²; a whole n_l/m_l − 1 of it at the level that was asked least, of a population one
    more. Of the scaled sum sampling adds E[x²], which is one already unless reports of one bit do not tell it."""
    n = known.users.sum()
    asked = known.each * np.array([squares.size for squares in known.squares])
    sampled = float((known.users / asked).max() - 1)
    spread = _spreads(known, mean) @ known.users / n
    unseen = spread + np.abs(ends - mean) * (1 + mean * np.sign(mean - ends))
    more = np.maximum(np.minimum(unseen, 1 - ends**2) - spread, 0.0)
    moment = np.maximum(more + ends**2 - mean**2, 0.0) if method == "scaled" else more
    return np.asarray((sampled * moment + population * more) / n)


def _spreads(known: Known, mean: float) -> Floats:
    """S² by level, about the mean of all. Reports of one bit say nothing of E[x²]: then it is no more than the mean's
    square."""
    parts = zip(known.means, known.users, known.gains, strict=True)
    return np.array([(at - mean) ** 2 + (1 - at**2) * gains.any() * n / (n - 1) for at, n, gains in parts])


def _by_level(known: Known, method: str, *, population: bool) -> tuple[float, float]:
    """Every level by itself, weighed by its people: (v̄ + S²)/m − S²/n, or E[y²]/m − E[x²]/n of the scaled sum."""
    part = known.users / known.users.sum()
    mean = float(part @ known.means)
    variances = []
    for at, n, squares, gains in zip(known.means, known.users, known.squares, known.gains, strict=True):
        moment = 1.0 if gains.any() else at**2
        m, square, spread = known.each * squares.size, squares.mean(), (moment - at**2) * n / (n - 1)
        variances.append(square / m - moment / n if method == "scaled" else (square - at**2) / (m - 1) - spread / n)
    drawn = part @ _spreads(known, mean) / known.users.sum() if population else 0.0
    return mean, float(part**2 @ np.array(variances) + drawn)


def _pooled(known: Known, ends: Floats, *, population: bool) -> tuple[float, float, Floats]:
    """All classes in one, Σ w² (E[y²] − mean²)/n_c − S²/n, and the same at each end.

    Weights are ∝ n_c/(v_c + S²) at the largest S² that the test reckons with, of people who are all at a bound:
    1 − f² at the end nearer to nothing.
    """
    squares, gains, n = np.concatenate(known.squares), np.concatenate(known.gains), known.users.sum()
    mean, square_known = float(known.means[0]), bool(gains.any())

    def variance(weights: Floats, at: Floats, spread: Floats, *, drawn: bool = population) -> Floats:
        noise = (weights**2 * (squares - at[..., None] ** 2)).sum(axis=-1) / known.each
        return np.maximum(np.asarray(noise - (0.0 if drawn else spread / (n - 1))), 0.0)

    at, seen = np.array(mean), np.array((1 - mean**2) * square_known)
    reach = _REACH * float(np.sqrt(variance(np.full(squares.size, 1 / squares.size), at, seen, drawn=False)))
    more = (mean**2 - min(abs(abs(mean) - reach), 1.0) ** 2) * square_known
    weights = 1 / (squares - mean**2 + gains * more)
    weights /= weights.sum()
    # Reports of one bit: an end is explained by people at the bound beyond it of whom no report tells.
    unseen = 2.0 if square_known else np.abs(ends - mean) * (1 + mean * np.sign(mean - ends))
    return mean, float(variance(weights, at, seen)), variance(weights, ends, np.minimum(unseen, 1 - ends**2))
