"""mpldp: the split of the budget, the error of combining levels, the largest error over iterations, and their cost.

The paper's setting (Section VI): five attributes of 5, 10, 15, 20 and 25 values, Algorithm 4's data, three levels that
equally many users choose, n = 1,000 and 10,000, total budgets 1 … 6. It prints no repetitions; Table 3 does not fall
evenly with the budget, as the mean of many runs would, so every printed figure is taken for one run.
"""

from __future__ import annotations

from pldp.papers.model import Data, Picture, Point, Unit
from pldp.papers.mpldp.cost import cost_points
from pldp.papers.mpldp.errors import (
    EPSILONS,
    SIZES,
    algorithm_4_points,
    error_points,
    saving_points,
    table_2_points,
)
from pldp.papers.mpldp.notes import NOTES as NOTES
from pldp.papers.mpldp.reasons import REASONS as REASONS

QUICK, FULL = 40, 400
_TABLE_3, _COST = "Table 3", "Section V-B"


def units(quick: bool) -> list[Unit]:
    repeats = QUICK if quick else FULL
    errors = [
        Unit(paper="mpldp", experiment="errors", arguments={"n": n, "epsilon": epsilon}, repeats=repeats, seed=seed)
        for seed, (n, epsilon) in enumerate((n, epsilon) for n in SIZES for epsilon in EPSILONS)
    ]
    cost = [
        Unit(paper="mpldp", experiment="cost", arguments={"over": over}, repeats=2 if quick else 5, seed=100)
        for over in ("values", "levels", "iterations")
    ]
    saving = Unit(paper="mpldp", experiment="saving", repeats=repeats, seed=200)
    exact = [Unit(paper="mpldp", experiment=name) for name in ("table 2", "algorithm 4")]
    return [saving, *errors, *cost, *exact]


def run(unit: Unit, data: Data) -> list[Point]:
    match unit.experiment:
        case "errors":
            return error_points(int(unit.arguments["n"]), float(unit.arguments["epsilon"]), unit.repeats, unit.seed)
        case "saving":
            return saving_points(unit.repeats, unit.seed)
        case "cost":
            return cost_points(str(unit.arguments["over"]), unit.repeats, unit.seed)
        case "table 2":
            return table_2_points()
        case "algorithm 4":
            return algorithm_4_points()
    raise ValueError(f"mpldp has no experiment {unit.experiment!r}")


PICTURES = (
    Picture(
        place="Table 2", title="the budget of each attribute, halved", x_title="ε", y_title="ε_i / 2", kind="table"
    ),
    Picture(place="Figure 3", title="error of sum, OC and oc+", x_title="ε", y_title="log10 NSE"),
    Picture(place="Figure 4", title="error of sum, OC, OP and oc+", x_title="ε", y_title="log10 NSE"),
    Picture(
        place="Section VI-A", title="what OC saves", x_title="ε", y_title="reduction of the squared error", kind="table"
    ),
    Picture(
        place=_TABLE_3, title="maximum error over iterations", x_title="iteration", y_title="log10 error", kind="table"
    ),
    Picture(
        place="Table 3, limit",
        title="how far OP comes",
        x_title="iteration",
        y_title="log10 of the maximum error",
    ),
    Picture(place="Algorithm 4", title="the data", x_title="k", y_title="users of a value", kind="table"),
    Picture(place=_COST, title="cost of OP", x_title="grows with", y_title="exponent", kind="table"),
)
