"""Why mpldp's printed numbers differ from ours; each reason puts a computed number instead."""

from __future__ import annotations

from pldp.papers.model import Fact, Point, Points, Reason
from pldp.papers.mpldp.errors import LAST

_TABLE_3, _COST = "Table 3", "Section V-B"


def _always(fact: Fact, points: Points) -> bool:
    """Nothing besides agreement with what the reason puts instead."""
    return True


def _own_total(fact: Fact, points: Points) -> Point | None:
    return points.get((fact.place, f"{fact.panel}, for the total it prints", fact.series, fact.x))


def _last_attribute(fact: Fact, points: Points) -> Point | None:
    return points.get((fact.place, fact.panel + LAST, fact.series, fact.x))


def _whole_projector(fact: Fact, points: Points) -> Point | None:
    return points.get((fact.place, fact.panel, "OP, all of L", fact.x))


REASONS = (
    Reason(
        key="another total",
        sentence="The five numbers of this row, doubled, do not sum to its ε but to another total. They are the best "
        "split of that total, which was computed: the paper's solver stopped early, and where the total is larger the "
        "users would spend more than ε.",
        basis="inferred",
        shown_by="the sums of the rows themselves; that all five numbers are the best split of their sum is computed",
        applies=lambda fact: fact.place == "Table 2",
        check=_always,
        instead=_own_total,
    ),
    Reason(
        key="last attribute, squared",
        sentence="The text has the maximum errors of the five attributes added and averaged. In counts that cannot be "
        "what is printed: at n = 10,000 it would exceed the number of users. The printed numbers do agree, within the "
        "spread of a single run and without any number fitted, with the square of the last attribute's maximum error "
        "(25 values) divided by five, as if each attribute had overwritten the one before and the sum held the last.",
        basis="inferred",
        shown_by="these numbers, one rule for all of them",
        applies=lambda fact: fact.place == _TABLE_3,
        check=_always,
        instead=_last_attribute,
    ),
    Reason(
        key="one row is enough",
        sentence="The paper counts the whole matrix L in every step, and with it the cost grows as printed (measured). "
        "A step needs one row of L only, which is what we compute.",
        basis="verified",
        shown_by="the paper's own count of steps, Section V-B, and the measured time of just that",
        applies=lambda fact: fact.place == _COST and fact.series == "OP",
        check=_always,
        instead=_whole_projector,
    ),
)
