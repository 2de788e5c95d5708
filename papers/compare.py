"""What a paper prints against what we compute: agrees, differs for a reason that was checked, or unexplained.

A printed number agrees with ours if |ours − printed| ≤ half_width + z·σ: how exactly it can be read, plus Monte Carlo
error. σ² is the variance of our mean plus that of the paper's own, which had the same spread over its own number of
repetitions: σ² = se² (1 + repeats / paper's repeats). A bound ("at most") is broken on its one side only. z keeps the
chance that any number of a faithful paper is called different below `ALPHA`, by Bonferroni over all its facts.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from scipy.stats import norm

from pldp.papers.model import Compared, Fact, Point, Points, Reason

ALPHA = 0.01


@dataclass(frozen=True, slots=True)
class Tally:
    agree: int
    verified: int
    """Differ with a reason that stands without the numbers."""
    inferred: int
    """Differ with a reason found from them."""
    unexplained: int

    @property
    def total(self) -> int:
        return self.agree + self.verified + self.inferred + self.unexplained

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.agree + other.agree,
            self.verified + other.verified,
            self.inferred + other.inferred,
            self.unexplained + other.unexplained,
        )

    def __str__(self) -> str:
        return (
            f"{self.total} numbers: {self.agree} agree, {self.verified} differ with a verified reason, "
            f"{self.inferred} with an inferred one, {self.unexplained} unexplained"
        )


def by_key(points: Iterable[Point]) -> dict[tuple[str, str, str, str], Point]:
    """Two points of the same name would leave open which of them is compared."""
    points_by_key: dict[tuple[str, str, str, str], Point] = {}
    for point in points:
        key = (point.place, point.panel, point.series, point.x)
        if key in points_by_key:
            raise ValueError(f"{' / '.join(key)}: two points have this name")
        points_by_key[key] = point
    return points_by_key


def quantile(n_facts: int, alpha: float = ALPHA) -> float:
    return float(norm.isf(alpha / 2 / max(n_facts, 1)))


def tolerance(fact: Fact, point: Point, z: float) -> float:
    theirs = point.repeats / fact.repeats if fact.repeats else 0.0
    return fact.half_width + z * point.standard_error * math.sqrt(1 + theirs)


def agrees(fact: Fact, point: Point, z: float) -> bool:
    # The last digit of a decimal fraction is not a double.
    slack = 1e-12 * abs(fact.printed)  # of what is printed, which is finite
    apart = point.value - fact.printed
    over = {"equals": abs(apart), "at most": apart, "at least": -apart}[fact.claim]
    return over <= tolerance(fact, point, z) + slack


def compare(
    facts: Sequence[Fact], points: Points, reasons: Sequence[Reason], alpha: float = ALPHA
) -> tuple[Compared, ...]:
    """Every fact with our point and its verdict. Of several reasons the first that holds is given."""
    z = quantile(len(facts), alpha)
    return tuple(_judge(fact, points, reasons, z) for fact in facts)


def _judge(fact: Fact, points: Points, reasons: Sequence[Reason], z: float) -> Compared:
    point = points.get((fact.place, fact.panel, fact.series, fact.x))
    if point is not None and agrees(fact, point, z):
        return Compared(fact=fact, point=point, verdict="agrees")
    for reason in reasons:
        if reason.applies(fact) and _holds(reason, fact, points, z):
            return Compared(fact=fact, point=point, verdict="differs", reason=reason.key, basis=reason.basis)
    return Compared(fact=fact, point=point, verdict="unexplained")


def _holds(reason: Reason, fact: Fact, points: Points, z: float) -> bool:
    if not reason.check(fact, points):
        return False
    if reason.instead is None:
        return True
    point = reason.instead(fact, points)
    return point is not None and agrees(fact, point, z)


def tally(compared: Iterable[Compared]) -> Tally:
    verdicts = Counter(each.basis or each.verdict for each in compared)
    return Tally(verdicts["agrees"], verdicts["verified"], verdicts["inferred"], verdicts["unexplained"])
