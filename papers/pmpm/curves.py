"""pmpm's Figures 5–12: mean squared errors over the budget and over the number of attributes, simulated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pldp.channels.numeric.domain import Floats
from pldp.channels.randomness import Keystream
from pldp.papers.model import Data, Point, Unit
from pldp.papers.pmpm.draw import duchi_errors, squared_errors
from pldp.papers.pmpm.methods import (
    BUDGETS,
    DUCHI,
    FITTED,
    MPM,
    OURS,
    PERSONAL,
    SIMPLE,
    TOTAL,
    Census,
    dimensions,
    duchi,
    plan_of,
)

FIGURES = {
    ("census-2015", "budget"): ("Figure 5", "Figure 7"),
    ("census-2017", "budget"): ("Figure 6", "Figure 8"),
    ("census-2015", "dimension"): ("Figure 9", "Figure 11"),
    ("census-2017", "dimension"): ("Figure 10", "Figure 12"),
}
"""With MPM, and with Duchi."""
REPORTS, SCALED, WEIGHTED = "mean over the reports", "scaled by d/k", "inverse variance"
NO_IDENTIFIER = "mean over the reports, without the identifier"
PANELS = {"reports": REPORTS, "scaled": SCALED, "inverse-variance": WEIGHTED}
OWN_PANELS = {"reports": "ours, mean over the reports", "scaled": "ours, scaled by d/k"}
BESIDE = (MPM, PERSONAL[0])
"""Of the paper's methods those that stand beside ours."""
METHODS = (*PERSONAL, SIMPLE, MPM, *OURS, DUCHI)
"""The slowest first."""
AS_PRINTED = (*PERSONAL, MPM, DUCHI)
"""Also without the identifier."""


def curve(unit: Unit, data: Data) -> list[Point]:
    """One method over all budgets or dimensions."""
    method, sweep, identifier = (unit.arguments[name] for name in ("method", "sweep", "identifier"))
    census = Census.of(data, bool(identifier))
    points: list[Point] = []
    for x in BUDGETS if sweep == "budget" else dimensions(census):
        epsilon, people = (x, census) if sweep == "budget" else (TOTAL, census.first(x))
        stream = Keystream.seeded(unit.seed, str(unit.dataset), str(sweep), str(method), int(identifier), x)
        estimators = tuple(OWN_PANELS if method in OURS else PANELS) if identifier else ("reports",)
        for estimator, errors in _errors(str(method), epsilon, people, unit.repeats, stream, estimators).items():
            points += _points(unit, estimator, str(x), errors)
    return points


def _errors(
    method: str, epsilon: int, census: Census, repeats: int, stream: Keystream, estimators: Sequence[str]
) -> dict[str, Floats]:
    if method == DUCHI:  # everybody reports on everything: there is one estimate
        return {"reports": duchi_errors(duchi(epsilon, census), census.codes, repeats, stream)}
    errors = squared_errors(plan_of(method, epsilon, census, "reports"), census.codes, repeats, stream, estimators)
    if method == FITTED:  # here each estimate has a best k of its own
        scaled = plan_of(method, epsilon, census, "scaled")
        errors |= squared_errors(scaled, census.codes, repeats, stream, ("scaled",))
    return errors


def _points(unit: Unit, estimator: str, x: str, errors: Floats) -> Iterator[Point]:
    method, identifier = str(unit.arguments["method"]), bool(unit.arguments["identifier"])
    with_mpm, with_duchi = FIGURES[str(unit.dataset), str(unit.arguments["sweep"])]
    panel = PANELS[estimator] if identifier else NO_IDENTIFIER
    shown = []
    # Duchi's errors are twenty times as large: beside them nothing else could be told apart.
    if method in (*PERSONAL, SIMPLE, MPM):
        shown.append((with_mpm, panel))
    if method in (*OURS, *BESIDE) and identifier and estimator in OWN_PANELS:
        shown.append((with_mpm, OWN_PANELS[estimator]))
    if method in (*PERSONAL, DUCHI) and estimator == "reports":
        shown.append((with_duchi, panel))
    for place, panel_name in shown:
        yield Point(
            place=place,
            panel=panel_name,
            series=method,
            x=x,
            value=float(errors.mean()),
            standard_error=float(errors.std(ddof=1) / np.sqrt(errors.size)),
            repeats=errors.size,
        )
