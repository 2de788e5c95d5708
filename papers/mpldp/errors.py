"""mpldp's errors by the exact aggregate sampler: NSE of every combination, the maximum error of OP step by step."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from pldp.channels.protocol import Counts, Floats
from pldp.channels.unary import BRR
from pldp.estimate.allocation import optimal_shares
from pldp.estimate.combine import CLASSIC, Levels, combine_linear, estimate_levels
from pldp.estimate.op import perturbation_method, smallest_maximum
from pldp.estimate.simulate import draw_levels, draw_support
from pldp.papers.model import Point

CELLS = (5, 10, 15, 20, 25)
SIZES = (10_000, 1_000)
EPSILONS = tuple(half / 2 for half in range(2, 13))
LEVELS = (Fraction(1, 3), Fraction(1, 2), Fraction(1))
"""high, mid, low as parts of an attribute's budget."""
ITERATIONS = 20
LAST = ", squared error of k = 25 over 5"
"""Behind the panel of Table 3 that shows what it seems to be."""
_EXACT_REPEATS = 60
"""`op-exact` solves a linear program a repetition and attribute, so it runs on some of them only."""
_NAMES = {"sum": "BRR", "oc": "OC", "oc+": "oc+", "op": "OP"}

TOTALS = {
    "n = 10000": (1.1854, 1.5092, 2.0074, 2.5052, 3.0030, 3.5020, 4.0022, 4.5010, 5.0008, 5.5008, 5.9994),
    "n = 1000": (1.0122, 1.5090, 2.0062, 2.5052, 2.9966, 3.5022, 4.0002, 4.4988, 5.0010, 5.5012, 6.0004),
}
"""Twice the sum of every row of Table 2, ε = 1 … 6: what the five attributes would spend together."""
_ROUNDING = math.sqrt(len(CELLS)) * 1e-4 / math.sqrt(3)
"""Standard deviation of such a total: five numbers, each doubled, rounded to four digits."""


def block_uniform(n: int, k: int) -> Counts:
    """Algorithm 4: value j for users round((j − 1)n/k + 1) … round(jn/k)."""
    ends = np.array([math.floor(j * n / k + 0.5) for j in range(k + 1)])
    return np.diff(ends)


def algorithm_4_points() -> list[Point]:
    """The fewest and most users that have a value."""
    points = []
    for n in SIZES:
        for k in CELLS:
            counts = block_uniform(n, k)
            for series, value in (("fewest", counts.min()), ("most", counts.max()), ("all", counts.sum())):
                points.append(Point(place="Algorithm 4", panel=f"n = {n}", series=series, x=str(k), value=float(value)))
    return points


def table_2_points() -> list[Point]:
    """Half of every budget, for ε and for the total that the row itself has."""
    points = []
    for panel, totals in TOTALS.items():
        for epsilon, total in zip(EPSILONS, totals, strict=True):
            for part, at, error in ((panel, epsilon, 0.0), (f"{panel}, for the total it prints", total, _ROUNDING)):
                for k, share in zip(CELLS, optimal_shares(at, CELLS), strict=True):
                    value, spread = at * share / 2, error * share / 2
                    points.append(
                        Point(
                            place="Table 2",
                            panel=part,
                            series=f"k = {k}",
                            x=f"{epsilon:g}",
                            value=float(value),
                            standard_error=float(spread),
                        )
                    )
    return points


def draws(n: int, epsilon: float, repeats: int, rng: np.random.Generator) -> Iterator[tuple[int, Floats, Levels]]:
    """Every attribute's number of values, true shares, and levels as estimated in every repetition."""
    sizes = np.full(len(LEVELS), n // len(LEVELS))
    sizes[: n % len(LEVELS)] += 1
    for k, share in zip(CELLS, optimal_shares(epsilon, CELLS), strict=True):
        counts = block_uniform(n, k)
        protocols = tuple(BRR.for_budget(k, Fraction(float(epsilon * share)) * part) for part in LEVELS)
        dealt = draw_levels(counts, sizes, repeats, rng)
        yield k, counts / n, estimate_levels(draw_support(dealt, protocols, rng), sizes, protocols)


def error_points(n: int, epsilon: float, repeats: int, seed: int) -> list[Point]:
    """Figures 3 and 4 and Table 3 at one n and ε."""
    rng = np.random.default_rng([seed, n])
    squares = {name: np.zeros(repeats) for name in _NAMES.values()}
    largest, last = np.zeros((repeats, ITERATIONS)), np.zeros((repeats, ITERATIONS))
    some = min(repeats // 4, _EXACT_REPEATS)
    exact = np.zeros(some)
    for _, truth, levels in draws(n, epsilon, repeats, rng):
        for method in CLASSIC:
            squares[_NAMES[method]] += n * ((combine_linear(method, levels).frequency - truth) ** 2).sum(axis=-1)
        for step in range(ITERATIONS):  # the first iteration is the regression itself
            fitted = perturbation_method(levels.frequencies, truth, step)
            last[:, step] = n * np.abs(fitted - truth).max(axis=-1)
            largest[:, step] += last[:, step] / len(CELLS)
        squares["OP"] += n * ((fitted - truth) ** 2).sum(axis=-1)
        for place in range(some):
            best = smallest_maximum(levels.frequencies[place], truth)
            exact[place] += n * np.abs(best - truth).max() / len(CELLS)
    return [*_nse(n, epsilon, squares), *_maxima(n, epsilon, largest, last, exact)]


def _nse(n: int, epsilon: float, squares: dict[str, Floats]) -> list[Point]:
    """log10 of the mean NSE; its error by the delta method."""
    points = []
    for place, names in (("Figure 3", ("BRR", "OC", "oc+")), ("Figure 4", ("BRR", "OC", "OP", "oc+"))):
        for name in names:
            nse = squares[name]
            error = nse.std(ddof=1) / math.sqrt(nse.size) / nse.mean() / math.log(10)
            points.append(
                Point(
                    place=place,
                    panel=f"n = {n}",
                    series=name,
                    x=f"{epsilon:g}",
                    value=float(np.log10(nse.mean())),
                    standard_error=float(error),
                    repeats=nse.size,
                )
            )
    return points


def saving_points(repeats: int, seed: int) -> list[Point]:
    """Section VI-A: 1 − OC/BRR at every n and ε, and over all of them."""
    rng = np.random.default_rng(seed)
    points = []
    for n in SIZES:
        for epsilon in EPSILONS:
            base, ours = np.zeros(repeats), np.zeros(repeats)
            for _, truth, levels in draws(n, epsilon, repeats, rng):
                base += ((combine_linear("sum", levels).frequency - truth) ** 2).sum(axis=-1)
                ours += ((combine_linear("oc", levels).frequency - truth) ** 2).sum(axis=-1)
            ratio = ours.mean() / base.mean()
            spread = (ours - ratio * base).std(ddof=1) / base.mean()  # that of a ratio, over the same repetitions
            points.append(_saving(f"n = {n}", f"{epsilon:g}", 1 - ratio, spread, repeats))
    overall = float(np.mean([point.value for point in points]))
    spread = math.sqrt(sum(point.standard_error**2 for point in points) * repeats) / len(points)
    return [*points, _saving("overall", "all n and ε", overall, spread, repeats)]


def _saving(panel: str, x: str, value: float, spread: float, repeats: int) -> Point:
    error = spread / math.sqrt(repeats)
    return Point(
        place="Section VI-A", panel=panel, series="OC", x=x, value=value, standard_error=error, repeats=repeats
    )


def _maxima(n: int, epsilon: float, largest: Floats, last: Floats, exact: Floats) -> list[Point]:
    """Mean over runs of log10 of the maximum error, itself a mean over the attributes, as the text tells Table 3.

    And what Table 3 seems to be: the square of the last attribute's alone, divided by the number of attributes.
    """
    logs, limit, alone = np.log10(largest), np.log10(exact), np.log10(last**2 / len(CELLS))
    series = f"ε = {epsilon:.1f}"
    points = []
    for step in range(ITERATIONS):
        points.append(_mean("Table 3", f"n = {n}", series, str(step + 1), logs[:, step]))
        points.append(_mean("Table 3", f"n = {n}{LAST}", series, str(step + 1), alone[:, step]))
    points.append(_mean("Table 3", f"n = {n}", series, "op-exact", limit))
    if epsilon in (1.0, 6.0):
        panel = f"n = {n}, ε = {epsilon:g}"
        for step in range(ITERATIONS):
            points.append(_mean("Table 3, limit", panel, "OP", str(step + 1), logs[:, step]))
            points.append(_mean("Table 3, limit", panel, "op-exact", str(step + 1), limit))
    return points


def _mean(place: str, panel: str, series: str, x: str, values: Floats) -> Point:
    return Point(
        place=place,
        panel=panel,
        series=series,
        x=x,
        value=float(values.mean()),
        standard_error=float(values.std(ddof=1) / math.sqrt(values.size)),
        repeats=values.size,
    )
