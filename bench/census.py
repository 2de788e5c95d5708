"""The check table of means: census of counties, both files, measured beside computed mean squared errors.

`python -m bench census` writes docs/census.md and its picture. The draws are the product's own, budgets dealt at random
as in pmpm's experiments, 100 repetitions a cell.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.common import ROOT, Measure, publish
from pldp.channels.numeric.domain import positions
from pldp.channels.randomness import Keystream
from pldp.papers.laboratory.datasets import DEFAULT_FOLDER, load
from pldp.papers.pmpm.dealing import random_mix
from pldp.papers.pmpm.draw import duchi_errors, squared_errors
from pldp.papers.pmpm.methods import BUDGETS, DUCHI, HYBRID, MPM, PERSONAL, TOTAL, Census, dimensions, duchi, plan_of
from pldp.questions.numbers.choice import predicted_mse
from pldp.questions.numbers.means import ESTIMATORS

REPEATS = 100
YEARS = (2015, 2017)
METHODS = (MPM, *PERSONAL, HYBRID)
PAGE, PICTURE = ROOT / "docs" / "census.md", ROOT / "docs" / "pictures" / "census.svg"
WORST_Z = 6.0
"""Standard errors between measured and computed, over more than 500 cells; Student's tail at 99 degrees."""
_HEAD = """# Means of the census of counties

Written by `python -m bench census`: mean squared error in [−1, 1] terms, over attributes and {repeats} repetitions.
Bounds are read off the data, the identifier is a column and budgets are dealt at random, as in pmpm's experiments.
MPM and PMPM sample as many attributes as the paper's rules say, HM the best number by Eq. 16. d counts columns from
the left. Duchi is the many-dimensional mechanism, whose every user reports on all attributes at once: one estimator.
No figure is further from its formula ([numbers, section 12](numeric.md#12-what-to-expect)) than chance explains.

![Mean squared error by budget, method and estimator](pictures/census.svg)"""
_COLOURS = ("#666666", "#9ecae1", "#4292c6", "#2171b5", "#08306b", "#31a354", "#d95f02")


@dataclass(frozen=True)
class Cell:
    """The mean squared error of one method and estimator, over attributes and repetitions."""

    year: int
    epsilon: int
    attributes: int
    method: str
    sampled: int
    estimator: str
    measured: float
    error: float
    computed: float


def main() -> bool:
    folder = ROOT / DEFAULT_FOLDER
    start = time.process_time()
    cells = [cell for year in YEARS for cell in _cells(year, Census.of(load(f"census-{year}", folder), True))]
    taken = time.process_time() - start
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(_picture(cells))
    PAGE.write_text(_page(cells))
    worst = max(abs(cell.measured - cell.computed) / cell.error for cell in cells)
    named = {(c.year, c.epsilon, c.attributes, c.method, c.estimator): c.measured for c in cells}
    ahead = [
        named[year, epsilon, d, DUCHI, "scaled"] / value
        for (year, epsilon, d, method, _), value in named.items()
        if method != DUCHI
    ]
    gained = [
        value / named[year, epsilon, d, method, "inverse-variance"]
        for (year, epsilon, d, method, estimator), value in named.items()
        if estimator == "scaled" and method in PERSONAL
    ]
    measures = [
        Measure("cells", len(cells)),
        Measure("measured against computed, worst of all cells", worst, " standard errors", WORST_Z, "≤"),
        Measure("mean squared error, Duchi in many dimensions / ours, least", min(ahead), "×", 1.0),
        Measure("PMPM: d/k-scaled / inverse variance, least", min(gained), "×", 1.0),
        Measure("CPU time", taken, " s"),
    ]
    note = f"{REPEATS} repetitions a cell, one process. Tables in {PAGE.relative_to(ROOT)}."
    return publish("census", "Census of counties", measures, note)


def _cells(year: int, census: Census) -> Iterator[Cell]:
    whole = census.codes.shape[1]
    places = [(epsilon, whole) for epsilon in BUDGETS]
    places += [(TOTAL, d) for d in dimensions(census) if d < whole]
    for epsilon, d in places:
        first = census.first(d)
        x = positions(first.codes)
        moments = [(float((column**2).mean()), float(column.mean())) for column in x.T]
        stream = Keystream.seeded(42, year, epsilon, d)
        for method in METHODS:
            plan = plan_of(method, epsilon, first, "scaled")
            mix = random_mix(plan.collection.classes, "hm" if method == HYBRID else "pm")
            errors = squared_errors(plan, first.codes, REPEATS, stream)
            for estimator in ESTIMATORS:
                computed = [
                    predicted_mse(estimator, mix, d, plan.sampled, len(x), second, mean) for second, mean in moments
                ]
                yield Cell(
                    year,
                    epsilon,
                    d,
                    method,
                    plan.sampled,
                    estimator,
                    *_mean(errors[estimator]),
                    float(np.mean(computed)),
                )
        mechanism = duchi(epsilon, first)
        variance = float((float(mechanism.scale) ** 2 - (x**2).mean()) / len(x))
        yield Cell(
            year,
            epsilon,
            d,
            DUCHI,
            d,
            "scaled",
            *_mean(duchi_errors(mechanism, first.codes, REPEATS, stream)),
            variance,
        )


def _mean(errors: np.ndarray) -> tuple[float, float]:
    return float(errors.mean()), float(errors.std(ddof=1) / np.sqrt(errors.size))


def _page(cells: list[Cell]) -> str:
    lines = [_HEAD.format(repeats=REPEATS)]
    for year in YEARS:
        of_year = [cell for cell in cells if cell.year == year]
        whole = max(cell.attributes for cell in of_year)
        lines += ["", f"## {year}: all {whole} columns, by budget"]
        lines += _table((c for c in of_year if c.attributes == whole), "epsilon", "ε")
        lines += ["", f"## {year}: ε = {TOTAL}, by number of columns"]
        lines += _table((c for c in of_year if c.epsilon == TOTAL), "attributes", "d")
    return "\n".join(lines) + "\n"


def _table(cells: Iterable[Cell], axis: str, sign: str) -> list[str]:
    listed = list(cells)
    places = sorted({getattr(cell, axis) for cell in listed})
    lines = [
        "",
        f"| method | estimator | {' | '.join(f'{sign} = {place}' for place in places)} |",
        f"| --- | --- |{' ---: |' * len(places)}",
    ]
    for method, estimator in dict.fromkeys((cell.method, cell.estimator) for cell in listed):
        row = {getattr(c, axis): c for c in listed if (c.method, c.estimator) == (method, estimator)}
        shown = " | ".join(_short(row[place].measured) for place in places)
        lines.append(f"| {method} | {'' if method == DUCHI else estimator} | {shown} |")
    return lines


def _short(value: float) -> str:
    return f"{value:.4f}" if value >= 1e-3 else f"{value:.5f}"


def _picture(cells: list[Cell]) -> str:
    import altair as alt
    import vl_convert

    from pldp.papers.laboratory.altair_charts import inline

    whole = {year: max(cell.attributes for cell in cells if cell.year == year) for year in YEARS}
    shown = [cell for cell in cells if cell.attributes == whole[cell.year]]
    rows: list[dict[str, Any]] = [
        {"year": f"{c.year}, {c.attributes} columns", "ε": c.epsilon, "MSE": c.measured, "method": c.method, "by": by}
        for c in shown
        for by in (ESTIMATORS if c.method == DUCHI else (c.estimator,))
    ]
    chart = (
        inline(
            rows,
            x=alt.X("ε:Q", scale=alt.Scale(zero=False), axis=alt.Axis(tickMinStep=1, grid=False)),
            y=alt.Y("MSE:Q", scale=alt.Scale(type="log"), axis=alt.Axis(format="~g", tickCount=5)),
            color=alt.Color("method:N", sort=None, scale=alt.Scale(domain=[*METHODS, DUCHI], range=_COLOURS)),
            column=alt.Column("by:N", sort=list(ESTIMATORS), title=None),
            row=alt.Row("year:N", title=None),
        )
        .mark_line(aria=False, strokeWidth=1.4)
        .properties(width=190, height=170, background="white")
        .configure(aria=False)
    )
    drawn = vl_convert.vegalite_to_svg(chart.to_dict(validate=False), allowed_base_urls=[])
    return str(drawn) + "\n"
