"""pmpm: the sampling constant, personal budgets, and mean squared errors on two censuses of counties."""

from __future__ import annotations

from pldp.papers.model import Data, Fact, Picture, Point, Points, Reason, Unit
from pldp.papers.pmpm.curves import (
    AS_PRINTED,
    FIGURES,
    METHODS,
    NO_IDENTIFIER,
    OWN_PANELS,
    REPORTS,
    SCALED,
    WEIGHTED,
    curve,
)
from pldp.papers.pmpm.exact import (
    AVERAGE,
    AXIS,
    BEST,
    CONSTANTS,
    OVER_BUDGETS,
    OVER_DIMENSIONS,
    PER_ATTRIBUTE,
    TO_MPM,
    WORST,
    best_share,
    constants,
    normalised,
    sentences,
)
from pldp.papers.pmpm.methods import PERSONAL, SIMPLE
from pldp.papers.pmpm.notes import NOTES

__all__ = ["NOTES", "PICTURES", "REASONS", "run", "units"]

REPEATS, QUICK_REPEATS = 100, 5
SEED = 3
DATASETS = ("census-2015", "census-2017")
_FLAT = 0.002
"""Of the least variance: what cannot be seen in a plot of it."""


def units(quick: bool) -> list[Unit]:
    repeats = QUICK_REPEATS if quick else REPEATS
    curves = [
        Unit(
            paper="pmpm",
            experiment="curve",
            arguments={"method": method, "sweep": sweep, "identifier": identifier},
            dataset=dataset,
            repeats=repeats,
            seed=SEED,
        )
        for method in METHODS
        for dataset, sweep in FIGURES
        for identifier in (1, 0)
        if identifier or method in AS_PRINTED
    ]
    said = [Unit(paper="pmpm", experiment="sentences", dataset=dataset) for dataset in DATASETS]
    return [*curves, *said, Unit(paper="pmpm", experiment="constants")]


def run(unit: Unit, data: Data) -> list[Point]:
    match unit.experiment:
        case "constants":
            return constants()
        case "sentences":
            return sentences(str(unit.dataset), data)
        case _:
            return curve(unit, data)


def _identifier(fact: Fact, points: Points) -> bool:
    return points["Table 2", "", fact.series, "of these, one number a county"].value == 1


def _flat(fact: Fact, points: Points) -> bool:
    """Whether the printed constant costs no more than a plot can show."""
    least = normalised(best_share(1.0), 1.0)
    return fact.printed > 0 and normalised(1 / fact.printed, 1.0) <= (1 + _FLAT) * least


def _not_evenly(fact: Fact, points: Points) -> bool:
    """Whether budgets dealt evenly cannot have given what is said, by three of the paper's own Monte Carlo errors."""
    evenly = points[fact.place, fact.panel, fact.series, fact.x]
    return fact.claim == "at least" and evenly.value + 3 * evenly.standard_error < fact.printed


REASONS = (
    Reason(
        key="the identifier",
        sentence="The county's number was counted as an attribute: with it there are as many numeric columns without "
        "gaps as printed. It says nothing of the county's people; figures with it and without it stand below.",
        basis="inferred",
        shown_by="the printed number of attributes, which the file's columns reach only with it",
        applies=lambda fact: (fact.place, fact.x) == ("Table 2", "attributes d"),
        check=_identifier,
        instead=lambda fact, points: points.get(("Table 2", "", fact.series, "numeric columns without gaps")),
    ),
    Reason(
        key="a flat minimum",
        sentence="2.5 was read off a plot: the least worst-case variance is at 2.42, and 2.5 costs under 0.2 % more.",
        basis="verified",
        shown_by="the least of Eq. 16's worst-case variance, computed",
        applies=lambda fact: (fact.place, fact.series, fact.x) == (CONSTANTS, WORST, PER_ATTRIBUTE),
        check=_flat,
    ),
    Reason(
        key="the simple allocation",
        sentence="With budgets drawn evenly over their range τ = 1.5 stays well below MPM at every budget. With the "
        "paper's simple allocation, attributes being important or not with equal chance, it comes so close to MPM at "
        "ε = 11 and 12 that a mean of 100 repetitions may lie above.",
        basis="inferred",
        shown_by="the sentence itself: the reading was chosen because it fits",
        applies=lambda fact: (fact.place, fact.series, fact.x) == (OVER_BUDGETS, PERSONAL[-1], TO_MPM),
        check=_not_evenly,
        instead=lambda fact, points: points.get((OVER_BUDGETS, fact.panel, SIMPLE, TO_MPM)),
    ),
)


def _table(place: str, title: str, x_title: str = "") -> Picture:
    return Picture(place=place, title=title, x_title=x_title, y_title="", kind="table")


def _figures() -> list[Picture]:
    pictures = []
    for (dataset, sweep), places in FIGURES.items():
        year = f"Census {dataset[-4:]}"
        for place, other, panels in zip(
            places,
            ("MPM", "Duchi"),
            ((REPORTS, NO_IDENTIFIER, SCALED, WEIGHTED, *OWN_PANELS.values()), (REPORTS, NO_IDENTIFIER)),
            strict=True,
        ):
            pictures.append(
                Picture(
                    place=place,
                    title=f"{year}, beside {other}",
                    x_title="budget ε" if sweep == "budget" else "attributes d (ε = 10)",
                    y_title="MSE",
                    log_y=other == "Duchi",
                    panels=panels,
                )
            )
    return sorted(pictures, key=lambda picture: int(picture.place.split()[1]))


PICTURES = (
    _table("Example 2", "The range of a budget"),
    _table("Eq. 14", "Second moment of the values"),
    _table(CONSTANTS, "How many attributes to sample"),
    Picture(
        place="Figure 3",
        title="Variance over the share of sampled attributes",
        x_title="k / ε",
        y_title="ε (variance + E[x²]) / d",
    ),
    _table(BEST, "The number of sampled attributes by rule", "ε"),
    _table(AVERAGE, "The average variance at ε = 10, d = 32"),
    _table("Table 2", "The data"),
    Picture(place="Figure 4", title="How far budgets lie apart", x_title="budget ε", y_title="of e^ε", log_y=True),
    _table(OVER_BUDGETS, "What the text says of Figures 5–8"),
    _table(OVER_DIMENSIONS, "What the text says of Figures 9–12"),
    _table(AXIS, "What its scale shows"),
    *_figures(),
)
