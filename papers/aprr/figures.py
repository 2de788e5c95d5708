"""aprr: Tables 2 and 3, Lemma 1's promise against the exact ε, and Figure 3 on Basket."""

from __future__ import annotations

import math
from collections.abc import Callable

from pldp.papers.aprr.mining import MADE_UP, METHODS, MINIMA, MISSED, OWN, PART, PART_END, PLACE, TREND, WHOLE, identity
from pldp.papers.aprr.notes import NOTES
from pldp.papers.aprr.tables import (
    APRR,
    CORRECTED,
    EXACT,
    GAIN,
    GROUPS,
    LDP,
    MASK,
    MEAN,
    MEAN_KEEP,
    NEAR,
    OTHER_SHARES,
    PUBLISHED,
    ROW,
    TENTHS,
    tables,
)
from pldp.papers.model import Data, Fact, Picture, Point, Points, Reason, Unit
from pldp.questions.items.comparators import GROUP_KEEPS
from pldp.questions.items.transactions import Columns

__all__ = ["NOTES", "PICTURES", "REASONS", "run", "units"]

REPEATS, QUICK_REPEATS = 100, 12
SEED = 4


def units(quick: bool) -> list[Unit]:
    repeats = QUICK_REPEATS if quick else REPEATS
    mining = [
        Unit(
            paper="aprr",
            experiment="identity",
            arguments={"method": method},
            dataset="basket",
            repeats=repeats,
            seed=SEED,
        )
        for method in METHODS
    ]
    return [*mining, Unit(paper="aprr", experiment="tables", dataset="basket")]


def run(unit: Unit, data: Data) -> list[Point]:
    truth = Columns.of_table(data["items"].astype(bool))
    if unit.experiment == "tables":
        return tables(truth)
    return identity(str(unit.arguments["method"]), truth, unit.repeats, unit.seed)


def _table_3(series: str, x: str) -> Callable[[Fact], bool]:
    return lambda fact: (fact.place, fact.series, fact.x) == ("Table 3", series, x)


def _by_tenths(fact: Fact) -> bool:
    return fact.place == "Table 3" and (fact.series, fact.x) in {
        (GROUPS, "avgPrivacy"),
        (GROUPS, "overallPrivacy"),
        (GROUPS, MEAN),
        (GAIN, "avgPrivacy"),
    }


def _tenths_keep(fact: Fact, points: Points) -> bool:
    """The paper says that all three methods have the same mean probability: these shares have just that."""
    return float(sum(share * keep for share, keep in zip(TENTHS, GROUP_KEEPS, strict=True))) == MEAN_KEEP


def _exact(x: str, points: Points) -> float:
    return points["Lemma 1", "", EXACT, x].value


def _rises_at_the_end(fact: Fact, points: Points) -> bool:
    """The last minimum stands among the supports of single items: errors there exceed those where the part ends."""
    last, end = (points[PLACE, fact.x, fact.series, f"{minimum:g}"] for minimum in (MINIMA[-1], PART_END))
    near = points["Section 6.1", "", "Basket", NEAR].value / points["Section 6.1", "", "Basket", "items"].value
    return near > 0.5 and last.value - end.value > 3 * math.hypot(last.standard_error, end.standard_error)


REASONS = (
    Reason(
        key="other shares",
        sentence="GR-PPFM's column was computed with groups of 3, 2, 2, 2 and 1 tenths of the users: they alone, of "
        "all shares in tenths, give its mean probability of 0.84 and its average. With the shares of Table 2 (4, 2, 2, "
        "2 and 1 of eleven) Eq. 10 and 11 give what stands beside.",
        basis="inferred",
        shown_by="the printed mean and average, which only these shares in tenths give",
        applies=_by_tenths,
        check=_tenths_keep,
        instead=lambda fact, points: points.get(("Table 3", OTHER_SHARES, fact.series, fact.x)),
    ),
    Reason(
        key="open values",
        sentence="A value of level 0 is told as it is: no ε bounds that, however the other levels are perturbed. "
        "Algorithm 1 writes ε = 0 there, and Lemma 1 leaves the level out of its sum.",
        basis="verified",
        shown_by="the definition: the ratio of a report that is the value itself has no bound",
        applies=lambda fact: (
            _table_3(APRR, LDP)(fact) or (fact.place, fact.series, fact.x) == ("Lemma 1", EXACT, "an item of level 0")
        ),
        check=lambda fact, points: (
            math.isinf(_exact("an item of level 0", points))
            and math.isinf(_exact(f"{APRR}, {ROW}", points))
            and fact.printed == (1 if fact.place == "Table 3" else 0)
        ),
    ),
    Reason(
        key="MASK is private",
        sentence="MASK perturbs every bit with the same probability below one. That is randomised response, with a "
        "finite ε for an item and for a row.",
        basis="verified",
        shown_by="the definition: ln(p/(1 − p)) bounds randomised response",
        applies=_table_3(MASK, LDP),
        check=lambda fact, points: (
            fact.printed == 0
            and math.isclose(_exact(f"{MASK}, an item", points), math.log(MEAN_KEEP / (1 - MEAN_KEEP)))
            and math.isfinite(_exact(f"{MASK}, {ROW}", points))
        ),
    ),
    Reason(
        key="range of minima",
        sentence="The errors fall up to a minimum support of 0.25, where the paper's unreadable axis may end. Beyond "
        "it they rise: more than half of the items have supports between 0.29 and 0.33, next to the minimum.",
        basis="inferred",
        shown_by="our own errors beside the sentence; the paper's axis cannot be read",
        applies=lambda fact: fact.place == TREND,
        check=_rises_at_the_end,
        instead=lambda fact, points: points.get((TREND, PART, fact.series, fact.x)),
    ),
)

PICTURES = (
    Picture(place="Section 6.1", title="The data", x_title="", y_title="", kind="table"),
    Picture(place="Table 2", title="Probabilities of every level", x_title="", y_title="", kind="table"),
    Picture(place="Lemma 1", title="What is promised and what is spent", x_title="", y_title="", kind="table"),
    Picture(
        place="Table 3",
        title="Degrees of privacy",
        x_title="",
        y_title="%",
        kind="table",
        panels=(PUBLISHED, OTHER_SHARES, CORRECTED),
    ),
    Picture(
        place=PLACE,
        title="Identity errors on Basket",
        x_title="minimum support",
        y_title="share of true sets",
        panels=(MADE_UP, MISSED, MADE_UP + OWN, MISSED + OWN),
    ),
    Picture(
        place=TREND,
        title="What the text says of Figure 3",
        x_title="sign of the trend",
        y_title="",
        kind="table",
        panels=(WHOLE, PART),
    ),
)
