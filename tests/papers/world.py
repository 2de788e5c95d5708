"""What the tests of reproductions share: the data beside the repository, and a printed number that is wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pldp.papers.compare import by_key, compare
from pldp.papers.laboratory.datasets import load
from pldp.papers.model import Data, Fact, Point, Points, Reason

SHARED = Path(__file__).parents[4] / "shared" / "data"


def dataset(name: str | None) -> Data:
    if not SHARED.is_dir():
        pytest.skip("the papers' data (shared/data) are not beside the repository")
    return load(name, SHARED)


def unexplained(facts: Sequence[Fact], points: Sequence[Point], reasons: Sequence[Reason]) -> list[Fact]:
    return [each.fact for each in compare(facts, by_key(points), reasons) if each.verdict == "unexplained"]


def wrong(fact: Fact, points: Points) -> Iterator[Fact]:
    """The same fact with another number: one that nobody can have read off the paper, or a bound that is not kept."""
    ours = points[fact.place, fact.panel, fact.series, fact.x].value
    if fact.claim != "equals":
        yield replace(fact, printed=ours / 2 if fact.claim == "at most" else 1.5 * max(ours, fact.printed))
        return
    step = 10 * fact.half_width + 0.07 * max(1.0, abs(fact.printed))
    yield replace(fact, printed=fact.printed + step)
    yield replace(fact, printed=fact.printed - step)


def caught(facts: Sequence[Fact], points: Sequence[Point], reasons: Sequence[Reason]) -> None:
    """No reason covers for a number that is wrong, whichever it is."""
    keyed = by_key(points)
    for place, fact in enumerate(facts):
        for planted in wrong(fact, keyed):
            changed = [*facts[:place], planted, *facts[place + 1 :]]
            assert unexplained(changed, points, reasons) == [planted]
