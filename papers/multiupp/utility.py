"""multiupp 5.2: losses of the optimum, of equal scaling and the bound over ε (Figures 2 and 3), and solving time (4).

Profiles have Σ t_j = 1, uniform on the simplex: the paper says "randomly", no more. Noise is Laplace's, as in the
paper; ours on a grid is hardly smaller. Many more than ten draws are made, so that what ten of them show is known too.
"""

from __future__ import annotations

import time
from fractions import Fraction
from typing import TypedDict

import numpy as np

from pldp.papers.model import Data, Point, Unit
from pldp.papers.multiupp.dense import dense_catalogue
from pldp.questions.aggregates.budgets import TICK_BITS, allocate, equal_scaling, to_ticks, turning_point
from pldp.questions.aggregates.catalogue import Catalogue, Units
from pldp.questions.aggregates.metrics import (
    best_scales,
    kl_divergence,
    lower_bounds,
    mean_absolute_error,
    mean_absolute_error_loss,
    mean_squared_error,
    scales,
)
from pldp.questions.aggregates.objectives import OBJECTIVES, Floats

EPSILONS = tuple(Fraction(step, 20) for step in range(1, 9))
DRAWS = 10
"""Of the paper."""
NAMES = {"mae": "DP-MultiUPP (MAE)", "mse": "DP-MultiUPP (MSE)", "mael": "DP-MultiUPP (MAEL)"}
BASELINE, BOUND = "baseline", "lower bound"
FIGURES = {"mae": "Figure 2", "mse": "Figure 2", "mael": "Figure 3", "kl": "Figure 3"}
TITLES = {"mae": "MAE", "mse": "MSE", "mael": "MAEL", "kl": "KL"}
SETS = {"movielens": "MovieLens", "msnbc": "MSNBC"}
MEDIAN, MEAN = "median", "mean of ten draws"
DATA, CLAIMS, TIMES = "Section 5.1", "Section 5.2 in words", "Figure 4"
OBJECTIVE, HEAVY = "Which objective", "Means of 1/t"
GAIN = "baseline over DP-MultiUPP at ε = 0.05, mean of ten draws,"
WORST = "least gain over the baseline: any ten draws, ε and objective"
SETTLED = "largest loss over its bound where ε is above Theorem 2's"
RISING = "least factor by which the gain grows from one ε to the next smaller"
BEST = "share of the points of Figure 2 within 1 % of the best, minimised:"
TENTHS = {share: f"gain in MAE, mean of ten draws: {share:.0%} of tens are below" for share in (0.01, 0.5, 0.99)}
SLOWEST = "seconds of the slowest solve"
_EQUAL = 0.01  # what no figure shows
_RESAMPLES = 200

Losses = dict[str, dict[str, Floats]]
"""By way to spend, then by measure: one number a draw."""


def draw_profiles(attributes: int, draws: int, rng: np.random.Generator) -> Units:
    """Σ t = 1 in ticks."""
    shares = rng.dirichlet(np.ones(attributes), draws)
    return (shares * 2**TICK_BITS).astype(np.int64)


def catalogue_of(dataset: str, data: Data) -> Catalogue:
    """MovieLens' films by genre; MSNBC's pages, each of one category."""
    names = [str(name) for name in data["names"]]
    matrix = data["genres"].astype(np.uint8) if dataset == "movielens" else np.eye(len(names), dtype=np.uint8)
    return dense_catalogue(names, matrix)


def losses(catalogue: Catalogue, budgets: Units, epsilon: Fraction) -> Losses:
    best = best_scales(catalogue, budgets)
    ticks = {name: allocate(catalogue, budgets, to_ticks(epsilon), one).ticks for name, one in OBJECTIVES.items()}
    ticks[BASELINE] = equal_scaling(catalogue, budgets, to_ticks(epsilon))
    by_objective: Losses = {BOUND: {**lower_bounds(best), "kl": np.zeros(len(budgets))}}
    for minimised, spent in ticks.items():
        used = scales(catalogue, spent)
        by_objective[minimised] = {
            "mae": mean_absolute_error(used),
            "mse": mean_squared_error(2 * np.square(used)),
            "mael": np.maximum(mean_absolute_error_loss(used, best), 0),
            "kl": np.maximum(kl_divergence(best, used), 0),
        }
    return by_objective


def run_utility(unit: Unit, data: Data) -> list[Point]:
    """Curves of Figures 2 and 3 on one data set: medians over all draws, and the mean of the first ten."""
    dataset = str(unit.dataset)
    catalogue, rng = catalogue_of(dataset, data), np.random.default_rng(unit.seed)
    budgets = draw_profiles(len(catalogue.attributes), unit.repeats, rng)
    by_epsilon = {epsilon: losses(catalogue, budgets, epsilon) for epsilon in EPSILONS}
    points = [
        Point(place=FIGURES[measure], panel=f"{SETS[dataset]}, {TITLES[measure]}, {kind}", x=_x(epsilon), **shown)
        for epsilon, by_objective in by_epsilon.items()
        for minimised, measures in by_objective.items()
        for measure, each in measures.items()
        for kind, shown in (
            (MEDIAN, _median(NAMES.get(minimised, minimised), each, rng)),
            # A mean that does not exist has no error either.
            (MEAN, {**_mean(NAMES.get(minimised, minimised), each[:DRAWS]), "standard_error": 0.0}),
        )
    ]
    turn = turning_point(catalogue, budgets).astype(np.float64) * 2.0**-TICK_BITS
    return [
        *points,
        *_claims(SETS[dataset], by_epsilon, turn),
        *(_objectives(by_epsilon, rng) if dataset == "movielens" else []),
    ]


def _claims(name: str, by_epsilon: dict[Fraction, Losses], turn: Floats) -> list[Point]:
    """What 5.2 says in words, as numbers; means of ten draws where it speaks of averages."""
    first, last, overall = by_epsilon[EPSILONS[0]], by_epsilon[EPSILONS[-1]], ("mae", "mse")
    cells = [
        (by_objective, objective, measure)
        for by_objective in by_epsilon.values()
        for objective in OBJECTIVES
        for measure in overall
    ]
    settled = turn <= float(EPSILONS[-1])
    ratios = {m: _tens(first[BASELINE][m]) / _tens(first[m][m]) for m in OBJECTIVES}
    rises = [
        np.median(by_objective[BASELINE]["mae"] / by_objective["mae"]["mae"]) for by_objective in by_epsilon.values()
    ]
    best = {
        one: [
            np.median(by_objective[one][m] / np.min([by_objective[o][m] for o in OBJECTIVES], axis=0)) <= 1 + _EQUAL
            for by_objective in by_epsilon.values()
            for m in overall
        ]
        for one in OBJECTIVES
    }
    excess = [
        (by_objective[BASELINE]["mael"].mean(), by_objective["mael"]["mael"].mean())
        for by_objective in by_epsilon.values()
    ]
    claimed = {
        WORST: min(
            float((_tens(by_objective[BASELINE][m]) / _tens(by_objective[o][m])).min()) for by_objective, o, m in cells
        ),
        SETTLED: max(float((last[o][m] / last[BOUND][m])[settled].max(initial=1)) for o in OBJECTIVES for m in overall),
        RISING: float(np.min(np.divide(rises[:-1], rises[1:]))),
        **{f"{BEST} {TITLES[one]}": float(np.mean(share)) for one, share in best.items()},
        "largest difference between objectives, any draw": max(
            float(np.abs(by_objective[o][m] / by_objective["mse"][m] - 1).max()) for by_objective, o, m in cells
        ),
        "gain in MAEL, largest over ε": max(
            (float(above / below) for above, below in excess if below > 0), default=1.0
        ),
        **{x: float(np.quantile(ratios["mae"], share)) for share, x in TENTHS.items()},
    }
    return [
        *(Point(place=CLAIMS, x=f"{GAIN} {TITLES[m]}", **_mean(name, ratio)) for m, ratio in ratios.items()),
        *(Point(place=CLAIMS, series=name, x=x, value=value) for x, value in claimed.items()),
    ]


def _objectives(by_epsilon: dict[Fraction, Losses], rng: np.random.Generator) -> list[Point]:
    """How much more than the least a measure is if another one was minimised; draw by draw, so pairs."""
    return [
        Point(
            place=OBJECTIVE,
            panel=f"ε = {_x(epsilon)}",
            x=TITLES[measure],
            **_median(
                NAMES[objective],
                by_epsilon[epsilon][objective][measure] / by_epsilon[epsilon][measure][measure] - 1,
                rng,
            ),
        )
        for epsilon in EPSILONS[:4]
        for objective in OBJECTIVES
        for measure in OBJECTIVES
    ]


def run_time(unit: Unit, data: Data) -> list[Point]:
    """Seconds of one user's solve, medians over the draws; the catalogue is reduced once, before."""
    name = SETS[str(unit.dataset)]
    begun = time.perf_counter()
    catalogue = catalogue_of(str(unit.dataset), data)
    slowest = {"seconds to reduce the catalogue": time.perf_counter() - begun, SLOWEST: 0.0}
    budgets = draw_profiles(len(catalogue.attributes), unit.repeats, np.random.default_rng(unit.seed))
    points = []
    for minimised, objective in OBJECTIVES.items():
        for epsilon in EPSILONS:
            taken = []
            for row in budgets:
                begun = time.perf_counter()
                allocate(catalogue, row[None], to_ticks(epsilon), objective)
                taken.append(time.perf_counter() - begun)
            slowest[SLOWEST] = max(slowest[SLOWEST], *taken)
            middle = float(np.median(taken))
            points.append(
                Point(place=TIMES, panel=name, series=NAMES[minimised], x=_x(epsilon), value=middle, repeats=len(taken))
            )
    return [*points, *(Point(place=CLAIMS, series=name, x=x, value=value) for x, value in slowest.items())]


def run_heavy(unit: Unit, data: Data) -> list[Point]:
    """Mean and median of the lower bound of MAE over more and more draws: 1/t_j has no expectation."""
    rng = np.random.default_rng(unit.seed)
    shares = rng.dirichlet(np.ones(len(data["names"])), unit.repeats)
    loss = (1 / shares).mean(axis=1)
    sizes = [10**power for power in range(1, int(np.log10(unit.repeats)) + 1)]
    panel = f"{SETS[str(unit.dataset)]}, lower bound of MAE"
    return [
        Point(place=HEAVY, panel=panel, series=series, x=str(size), value=float(of(loss[:size])), repeats=size)
        for size in sizes
        for series, of in (("mean", np.mean), ("median", np.median))
    ]


def run_counts(unit: Unit, data: Data) -> list[Point]:
    """What 5.1 says about the data."""
    name = SETS[str(unit.dataset)]
    if unit.dataset == "movielens":
        counted = {
            "ratings": data["rating"].size,
            "users": np.unique(data["user"]).size,
            "items": len(data["genres"]),
            "items without attribute": int((data["genres"].sum(axis=1) == 0).sum()),
        }
    else:
        visits = int((data["counts"].sum(axis=1) * data["users"]).sum())
        counted = {"ratings": visits, "users": int(data["users"].sum())}
    counted["attributes"] = len(data["names"])
    return [Point(place=DATA, series=name, x=x, value=float(value)) for x, value in counted.items()]


def _x(epsilon: Fraction) -> str:
    return f"{float(epsilon):g}"


def _tens(each: Floats) -> Floats:
    """Means of ten draws, which is what the paper can have printed."""
    return each.reshape(-1, DRAWS).mean(axis=1)


class _Shown(TypedDict):
    series: str
    value: float
    standard_error: float
    repeats: int


def _mean(series: str, each: Floats) -> _Shown:
    error = float(each.std(ddof=1) / np.sqrt(each.size))
    return {"series": series, "value": float(each.mean()), "standard_error": error, "repeats": each.size}


def _median(series: str, each: Floats, rng: np.random.Generator) -> _Shown:
    again = np.median(rng.choice(each, (_RESAMPLES, each.size)), axis=1)
    error = float(again.std(ddof=1))
    return {"series": series, "value": float(np.median(each)), "standard_error": error, "repeats": each.size}
