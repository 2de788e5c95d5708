"""What pmpm says in numbers and sentences besides its curves: constants, Table 2, who is better than whom. No draws."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy.optimize import brentq, minimize_scalar

from pldp.papers.model import Data, Point
from pldp.papers.pmpm.curves import REPORTS, SCALED
from pldp.papers.pmpm.methods import (
    BUDGETS,
    DUCHI,
    FITTED,
    IDENTIFIERS,
    MOST_PRINTED,
    MPM,
    PERSONAL,
    SIMPLE,
    TAUS,
    TOTAL,
    Census,
    average_of,
    dimensions,
    expected,
    sampled,
)
from pldp.questions.numbers.budgets import UNIFORM_MOMENT, BudgetClasses, average_variance, sampled_attributes

CONSTANTS, BEST, AVERAGE, AXIS = "Eq. 8 and 17", "Best k", "Eq. 13", "Axis of Figure 10"
OVER_BUDGETS, OVER_DIMENSIONS = "Section 5.4", "Section 5.5"
WORST, UNIFORM = "worst case", "uniform values"
PER_ATTRIBUTE, BEST_SHARE, SECOND_FROM = "best ε / k", "best k / ε", "least budget with k = 2"
TO_MPM, TO_DUCHI, REBOUND = "largest MSE / MPM's", "largest MSE / Duchi's", "largest MSE / that of the budget before"
GROWTH, BY_TAU = "smallest MSE / that of fewer attributes", "smallest MSE / that of the next smaller τ"
ANY = "any PMPM"
CLOSE = (PERSONAL[-1], SIMPLE)
"""Said to be sometimes above MPM: that turns on chance."""
REPEATS = 100
"""Repetitions behind the paper's own curves."""
_WORST_MOMENT = 1.0
_RULES = {"mpm": "⌊ε / 2.5⌋", "floor": "⌊0.28 ε⌋", "round": "0.28 ε rounded", "optimal": "exact, Eq. 16"}
_MANY = 32


def normalised(share: float, moment: float) -> float:
    """ε (Var + E[x²]) / d at k/ε = share: Figure 3's function, Eq. 16 for ε = d = 1."""
    return float(average_variance(1.0, 1, share, moment)) + moment


def best_share(moment: float) -> float:
    optimum = minimize_scalar(
        normalised, bounds=(0.05, 2.0), args=(moment,), method="bounded", options={"xatol": 1e-10}
    )
    return float(optimum.x)


def constants() -> list[Point]:
    points = [*_figure_3(UNIFORM, UNIFORM_MOMENT), *_figure_3(WORST, _WORST_MOMENT), *_figure_4(), *_average()]
    for rule, series in _RULES.items():
        points.append(_point(CONSTANTS, "", series, SECOND_FROM, _second_from(rule)))
        points += [
            _point(BEST, "", series, str(epsilon), sampled_attributes(rule, epsilon, _MANY)) for epsilon in BUDGETS
        ]
    example = BudgetClasses(Fraction(TOTAL), Fraction(3, 2), 2, 2)
    points.append(_point("Example 2", "", "τ = 1.5, ε = 10", "lowest budget", float(example.lowest)))
    points.append(_point("Example 2", "", "τ = 1.5, ε = 10", "highest budget", float(example.highest)))
    return points


def _point(place: str, panel: str, series: str, x: str, value: float, error: float = 0.0) -> Point:
    return Point(place=place, panel=panel, series=series, x=x, value=float(value), standard_error=error)


def _figure_3(series: str, moment: float) -> Iterator[Point]:
    best = best_share(moment)
    yield _point(CONSTANTS, "", series, BEST_SHARE, best)
    yield _point(CONSTANTS, "", series, PER_ATTRIBUTE, 1 / best)
    for share in np.round(np.linspace(0.1, 2.0, 39), 3).tolist():
        yield _point("Figure 3", "", series, f"{share:g}", normalised(share, moment))


def _figure_4() -> Iterator[Point]:
    """The extremes of a user's budgets; the paper does not say whether it divides or subtracts."""
    for tau, series in zip(TAUS, PERSONAL, strict=True):
        for epsilon in BUDGETS:
            k = sampled_attributes("floor", epsilon, _MANY)
            classes = BudgetClasses(Fraction(epsilon), tau, k, k)
            high, low = (np.exp(float(end)) for end in (classes.highest, classes.lowest))
            yield _point("Figure 4", "largest e^ε / smallest", series, str(epsilon), high / low)
            yield _point("Figure 4", "largest e^ε − smallest", series, str(epsilon), high - low)


def _average() -> Iterator[Point]:
    """Eq. 13 at E[ε_ij] = ε/k against the mean of Eq. 12 over the budgets that users deal at random."""
    for series in PERSONAL:
        mean = average_of(series, TOTAL, _MANY, UNIFORM_MOMENT)
        stated = float(average_variance(TOTAL, _MANY, sampled_attributes("floor", TOTAL, _MANY)))
        yield _point(AVERAGE, "", "by Eq. 13", series, stated)
        yield _point(AVERAGE, "", "mean of Eq. 12", series, mean)


def _second_from(rule: str) -> float:
    if rule == "optimal":
        return float(brentq(lambda e: np.diff(average_variance(e, _MANY, [1, 2]))[0], 3.0, 9.0, xtol=1e-12))
    low, high = 1.0, 9.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if sampled_attributes(rule, middle, _MANY) > 1 else (middle, high)
    return high


def sentences(dataset: str, data: Data) -> list[Point]:
    """Table 2, and what sections 5.4 and 5.5 say, by the errors that repetitions tend to."""
    year = f"Census {dataset[-4:]}"
    census = Census.of(data, identifier=True)
    names = data["names"].tolist()
    known = [j for j, name in enumerate(names) if name in IDENTIFIERS]
    distinct = sum(len(np.unique(data["values"][:, j])) == len(data["values"]) for j in known)
    facts = {
        "users n": len(data["values"]),
        "attributes d": len(names) - len(known),
        "numeric columns without gaps": len(names),
        "of these, one number a county": distinct,
    }
    points = [_point("Table 2", "", year, x, value) for x, value in facts.items()]
    second, _ = census.moments
    points += [_point("Eq. 14", "", year, "E[x²]", second), *_figure_3(year, second)]
    if dataset == "census-2015":
        points.append(_point("Eq. 14", "", UNIFORM, "E[x²]", _uniform_moment()))
    for estimator, panel in (("reports", REPORTS), ("scaled", SCALED)):
        points += _over_budgets(census, estimator, f"{year}, {panel}")
        points += _over_dimensions(census, estimator, f"{year}, {panel}")
        points += [
            _point(BEST, "", f"{year}, {estimator}", str(epsilon), sampled(FITTED, epsilon, census, estimator))
            for epsilon in BUDGETS
        ]
        if dataset == "census-2017":
            points += _axis(census, estimator, panel)
    return points


def _uniform_moment() -> float:
    """Eq. 14, by the midpoints of a million equal parts."""
    return float(np.mean(((np.arange(10**6) + 0.5) / 5e5 - 1) ** 2))


def _over_budgets(census: Census, estimator: str, panel: str) -> Iterator[Point]:
    methods = (MPM, *PERSONAL, SIMPLE, DUCHI)
    errors = {m: [expected(m, epsilon, census, estimator) for epsilon in BUDGETS] for m in methods}
    for method in (*PERSONAL, SIMPLE):
        ratio = _largest(errors[method], errors[MPM])
        chance = _paper_error(census, ratio) if method in CLOSE else 0.0
        yield _point(OVER_BUDGETS, panel, method, TO_MPM, ratio, chance)
        yield _point(OVER_BUDGETS, panel, method, TO_DUCHI, _largest(errors[method], errors[DUCHI]))
    for method in (MPM, *PERSONAL):
        yield _point(OVER_BUDGETS, panel, method, REBOUND, _largest(errors[method][1:], errors[method][:-1]))


def _over_dimensions(census: Census, estimator: str, panel: str) -> Iterator[Point]:
    parts = [census.first(attributes) for attributes in dimensions(census)]
    errors = {m: [expected(m, TOTAL, part, estimator) for part in parts] for m in (MPM, *PERSONAL, DUCHI)}
    for method in PERSONAL:
        yield _point(OVER_DIMENSIONS, panel, method, TO_MPM, _largest(errors[method], errors[MPM]))
        yield _point(OVER_DIMENSIONS, panel, method, TO_DUCHI, _largest(errors[method], errors[DUCHI]))
    for method in (MPM, *PERSONAL, DUCHI):
        yield _point(OVER_DIMENSIONS, panel, method, GROWTH, _smallest(errors[method][1:], errors[method][:-1]))
    least = min(_smallest(errors[large], errors[small]) for small, large in pairwise(PERSONAL))
    yield _point(OVER_DIMENSIONS, panel, ANY, BY_TAU, least, _paper_error(parts[0], least))


def _axis(census: Census, estimator: str, panel: str) -> Iterator[Point]:
    """Of all curves of Figure 10, over the dimensions that its axis has."""
    parts = [census.first(attributes) for attributes in dimensions(census) if attributes <= MOST_PRINTED]
    values = [expected(method, TOTAL, part, estimator) for method in (MPM, *PERSONAL) for part in parts]
    yield _point(AXIS, "", panel, "smallest value", min(values))
    yield _point(AXIS, "", panel, "largest value", max(values))


def _paper_error(census: Census, ratio: float) -> float:
    """Monte Carlo error of a ratio of two of the paper's curves.

    An MSE is a mean over d nearly independent squares of nearly normal errors: it varies by √(2/d) of itself.
    """
    return ratio * float(np.sqrt(2 * 2 / (census.codes.shape[1] * REPEATS)))


def _by_pairs(choose: Callable[[list[float]], float]) -> Callable[[Sequence[float], Sequence[float]], float]:
    return lambda above, below: choose([a / b for a, b in zip(above, below, strict=True)])


_largest, _smallest = _by_pairs(max), _by_pairs(min)
