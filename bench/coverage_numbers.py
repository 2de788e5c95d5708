"""How often 95 % intervals of means and quantiles hold people's own, over surveys that are hard on them.

`rows()` has one entry a setting and class: near a bound for means, which quantile for the others. Every repetition goes
through the release's own draw, count and estimate for `kind: number`; counts of bins are drawn from their exact law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from pldp.channels.numeric.domain import Floats, positions
from pldp.channels.protocol import Counts
from pldp.channels.randomness import Keystream
from pldp.estimate.combine import estimate_levels
from pldp.estimate.guarded import worst_tilt
from pldp.estimate.invert import ANYTHING, Cover
from pldp.estimate.simulate import draw_levels, draw_support, whole_counts
from pldp.questions.histograms.cumulative import edge_tests, quantile_edges
from pldp.questions.histograms.question import Histograms
from pldp.questions.numbers.distribution import estimate_quantiles
from pldp.questions.numbers.estimate import estimate_means
from pldp.questions.numbers.plan import DISTRIBUTION
from pldp.questions.numbers.question import Numbers
from pldp.questions.numbers.reports import count_numbers, report_numbers
from pldp.questions.people.spec import Spec
from pldp.questions.plan import Plan
from pldp.questions.resolve import make_plan

LEVELS = {"high": "1/6", "mid": "1/3", "low": 1}
SHARES = np.array([0.5, 0.3, 0.2])
PROBABILITIES = (0.1, 0.5, 0.9, 0.99)
Values = Callable[[np.random.Generator, int], Floats]
VALUES: dict[str, Values] = {
    "all at 0": lambda rng, n: np.zeros(n),
    "0.5 % at 100, else 0": lambda rng, n: np.where(rng.random(n) < 0.005, 100.0, 0.0),
    "2 % at 100, else 0": lambda rng, n: np.where(rng.random(n) < 0.02, 100.0, 0.0),
    "half at 0, half at 100": lambda rng, n: np.where(rng.random(n) < 0.5, 100.0, 0.0),
    "skewed": lambda rng, n: np.clip(rng.lognormal(2.5, 0.8, n), 0, 99.99),
    "in tens": lambda rng, n: np.round(np.clip(rng.lognormal(2.5, 0.8, n), 0, 99.99) / 10) * 10,
    "whole numbers": lambda rng, n: np.floor(np.clip(rng.normal(40, 12, n), 0, 99)),
}
MEANS: tuple[tuple[str, int, float, float | None], ...] = (
    ("0.5 % at 100, else 0", 200, 20, 1.0),
    ("0.5 % at 100, else 0", 200, 20, None),
    ("2 % at 100, else 0", 300, 40, 1.0),
    ("2 % at 100, else 0", 300, 40, None),
    ("0.5 % at 100, else 0", 2000, 20, 1.0),
    ("2 % at 100, else 0", 2000, 1, 1.0),
    ("all at 0", 200, 6, 1.0),
    ("half at 0, half at 100", 200, 6, 1.0),
    ("skewed", 200, 20, 1.0),
    ("skewed", 2000, 6, 1.0),
)
QUANTILES: tuple[tuple[str, int, float, float | None], ...] = (
    ("in tens", 2000, 6, 1.0),
    ("in tens", 20_000, 6, 1.0),
    ("whole numbers", 20_000, 12, 1.0),
    ("skewed", 2000, 2, 1.0),
    ("skewed", 20_000, 6, 1.3),
)
BINNED: tuple[tuple[str, int, float, int, float | None], ...] = (
    ("skewed", 2000, 6, 33, 1.0),
    ("in tens", 20_000, 6, 33, 1.0),
    ("skewed", 20_000, 6, 33, 1.3),
    ("skewed", 20_000, 20, 33, 1.3),
    ("skewed", 2000, 2, 100, 1.3),
    ("skewed", 20_000, 6, 33, None),
)


@dataclass
class Tally:
    """Of one class: how often the interval held, and how long all were together."""

    covered: int = 0
    length: float = 0.0

    def add(self, low: float, high: float, truth: float) -> None:
        self.covered += low - 1e-6 <= truth <= high + 1e-6
        self.length += high - low


MEANS_DRAWN, QUANTILES_DRAWN, BINNED_DRAWN = 400, 200, 2000


def pieces() -> Iterator[tuple[str, Callable[[], list[dict[str, Any]]]]]:
    """A survey each."""
    for one in MEANS:
        yield f"mean, {', '.join(map(str, one))}", partial(_means, *one, MEANS_DRAWN)
    for one in QUANTILES:
        yield f"quantile, {', '.join(map(str, one))}", partial(_quantiles, *one, QUANTILES_DRAWN)
    for survey in BINNED:
        yield f"binned, {', '.join(map(str, survey))}", partial(_binned, *survey, BINNED_DRAWN)


def rows() -> list[dict[str, Any]]:
    """setting, class, repetitions, covered (a share) and mean length; `length_of_reports` for means beside it."""
    return [row for _, piece in pieces() for row in piece()]


def _plan(attribute: dict[str, Any], users: int, epsilon: float, gamma: float | None) -> Plan:
    declared = "unknown" if gamma is None else gamma
    spec = {
        "name": "coverage",
        "source": {"path": "people.csv", "one_row_per_user": True},
        "attributes": [{"name": "x", **attribute}],
        "levels": {"column": "level", "choices": LEVELS, "dependence": declared},
        "budget": {"total": epsilon},
        "expected": {"users": users},
    }
    return make_plan(Spec.model_validate(spec))


def tilted(x: Floats, cut: float, gamma: float, side: int = 1) -> tuple[Floats, Floats]:
    """Shares of the levels among people up to the cut and beyond, as far from each other as Γ allows."""
    beyond = float((x > cut).mean())
    tilt = worst_tilt(side * np.arange(3.0)[:, None], SHARES, np.array([beyond]), gamma)[:, 0]
    above = SHARES * tilt
    return (SHARES - beyond * above) / (1 - beyond), above


def _levels(rng: np.random.Generator, x: Floats, gamma: float | None) -> Counts:
    """Who chose what: blindly at Γ = 1, else as badly as Γ allows (2 where it is unknown), the median apart."""
    below, above = (SHARES, SHARES) if gamma == 1 else tilted(x, float(np.median(x)), gamma or 2.0)
    chances = np.where((x > np.median(x))[:, None], above, below).cumsum(axis=1)
    return np.minimum((rng.random(x.size)[:, None] > chances).sum(axis=1), 2)


def _drawn(
    plan: Numbers, values: str, users: int, gamma: float | None, repeats: int
) -> Iterator[tuple[Floats, Any, Any]]:
    """Values, counts by level, and the number of the repetition."""
    rng = np.random.default_rng(7)
    bounds = plan.questions[0].bounds
    for repeat in range(repeats):
        x = VALUES[values](rng, users)
        codes, levels = bounds.encode(x)[None], _levels(rng, x, gamma)
        stream = Keystream.seeded(7, values, repeat)
        reports = [report_numbers(plan, level, codes[:, levels == level], None, stream) for level in range(3)]
        yield positions(codes[0]), [count_numbers(plan, level, one) for level, one in enumerate(reports)], repeat


def _numbers(plan: Plan) -> Numbers:
    return next(question for question in plan.questions if isinstance(question, Numbers))


def _means(values: str, users: int, epsilon: float, gamma: float | None, repeats: int) -> list[dict[str, Any]]:
    plan = _numbers(_plan({"kind": "number", "bounds": [0, 100]}, users, epsilon, gamma))
    bounds, tally, plain = plan.questions[0].bounds, Tally(), 0.0
    for x, counts, _ in _drawn(plan, values, users, gamma, repeats):
        mean = estimate_means(plan, counts, plan.recipe)[0].mean
        tally.add(mean.ci_low, mean.ci_high, bounds.decode(float(x.mean())))
        other = estimate_means(plan, counts, plan.recipe, "reports")[0].mean
        plain += other.ci_high - other.ci_low
    near = "mean near a bound" if values.startswith(("all", "0.5", "2")) else "mean"
    return [{**_row("mean", values, users, epsilon, gamma, near, tally, repeats), "length_of_reports": plain / repeats}]


def _quantiles(values: str, users: int, epsilon: float, gamma: float | None, repeats: int) -> list[dict[str, Any]]:
    asked = {"kind": "number", "bounds": [0, 100], "quantiles": list(PROBABILITIES)}
    plan = _numbers(_plan(asked, users, epsilon, gamma))
    place = next(i for i, question in enumerate(plan.questions) if question.kind == DISTRIBUTION)
    tallies = [Tally() for _ in PROBABILITIES]
    for x, counts, repeat in _drawn(plan, values, users, gamma, repeats):
        result = estimate_quantiles(plan, counts, place, plan.recipe, np.random.default_rng(repeat), 2)
        for tally, one in zip(tallies, result.quantiles, strict=True):
            tally.add(one.ci_low, one.ci_high, plan.questions[place].bounds.decode(own_quantile(x, one.probability)))
    return [
        _row("number", values, users, epsilon, gamma, f"quantile {p:g}", tally, repeats)
        for p, tally in zip(PROBABILITIES, tallies, strict=True)
    ]


def own_quantile(x: Floats, probability: float) -> float:
    """The least value that so many people have or stay below."""
    rank = max(math.ceil(Fraction(str(probability)) * x.size), 1)
    return float(np.sort(x)[rank - 1])


def _binned(
    values: str, users: int, epsilon: float, bins: int, gamma: float | None, repeats: int
) -> list[dict[str, Any]]:
    edges = np.linspace(0, 100, bins + 1)
    asked = {"kind": "binned", "bounds": [0, 100], "bins": bins, "quantiles": list(PROBABILITIES)}
    questions = _plan(asked, users, epsilon, gamma).questions
    attribute = next(one.attributes[0] for one in questions if isinstance(one, Histograms))
    rng = np.random.default_rng(7)
    x = VALUES[values](rng, users)
    place = np.searchsorted(edges[1:-1], x, side="right")
    tallies = [Tally() for _ in PROBABILITIES]
    # As badly as Γ allows at the very edges between which each quantile lies, in both directions.
    cuts = sorted({float(edges[np.searchsorted(edges, own_quantile(x, p))]) for p in PROBABILITIES})
    choices = [(50.0, SHARES, SHARES)] if gamma == 1 else [
        (cut, *tilted(x, cut, gamma or 2.0, side)) for cut in cuts for side in (1, -1) if 0 < cut < x.max()
    ]  # fmt: skip
    for cut, below, above in choices:
        parts = [
            draw_levels(
                np.bincount(place[members], minlength=bins), whole_counts(shares, int(members.sum())), repeats, rng
            )
            for members, shares in ((x <= cut, below), (x > cut, above))
        ]
        dealt = parts[0] + parts[1]
        sizes, protocols = dealt[0].sum(axis=1), attribute.protocols
        levels = estimate_levels(draw_support(dealt, protocols, rng), sizes, protocols)
        method, cover = ("sum", Cover(ANYTHING)) if gamma is None else ("guarded", Cover(gamma))
        ends = quantile_edges(edge_tests(levels, PROBABILITIES, method, cover), levels.frequencies, PROBABILITIES)
        for i, p in enumerate(PROBABILITIES):
            for low, high in zip(*(edges[end[:, i]] for end in ends), strict=True):
                tallies[i].add(float(low), float(high), own_quantile(x, p))
    done = repeats * len(choices)
    return [
        _row(f"binned, {bins} bins", values, users, epsilon, gamma, f"quantile {p:g}", tally, done)
        for p, tally in zip(PROBABILITIES, tallies, strict=True)
    ]


def _row(
    kind: str, values: str, users: int, epsilon: float, gamma: float | None, name: str, tally: Tally, repeats: int
) -> dict[str, Any]:
    declared = "unknown" if gamma is None else f"{gamma:g}"
    return {
        "setting": f"{kind}, {values}, n {users:,}, ε {epsilon:g}, Γ {declared}",
        "class": name,
        "repetitions": repeats,
        "covered": tally.covered / repeats,
        "length": tally.length / repeats,
    }


def main() -> bool:
    measured = rows()
    for row in measured:
        print(f"{row['setting']:<60} {row['class']:<20} {row['covered']:.3f} {row['length']:.2f}")
    return all(row["covered"] > 0.95 - 4 * np.sqrt(0.0475 / row["repetitions"]) for row in measured)
