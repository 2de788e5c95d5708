"""How far fake people can move an estimate, as a plan's table `fakes` has it: one row per estimate and combination.

One fake joins for every hundred honest people. All choose the level (the profile) that serves them best and send the
report that moves one estimate most; nothing that the plan lets a client send moves it further. Every kind derives its
own figure; what they have in common stands here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from pldp.estimate.capped import UNCAPPED
from pldp.estimate.distributions import norm
from pldp.questions.parts import Predictions, Rows
from pldp.questions.rows import stacked

FAKES = 0.01
"""Fake people for every honest one."""
_NOTICEABLE = 1.001
"""Times further that fakes get under a cap, where it is said: less is what weights under a cap that binds nobody are
rounded by."""


@dataclass(frozen=True)
class Reach:
    """What fakes come to, in the estimate's own units."""

    attribute: str
    estimate: str
    combination: str
    at: str
    """The level or profile that serves them best."""
    mechanism: str
    moved: float | None
    """None where nothing bounds it."""
    half_width: float | None
    """Of an interval without fakes, for comparison; None where it is not predicted."""
    cap: float = UNCAPPED


def joining(n_users: int) -> int:
    """How many fakes there are beside so many honest people."""
    return max(round(FAKES * n_users), 1)


def caps(cap: float | None) -> tuple[float, ...]:
    """With the stated cap and without it, so that a plan shows what it costs and gains."""
    return (UNCAPPED,) if cap is None else (cap, UNCAPPED)


def reach_of(confidence: float) -> float:
    """Half an interval in standard errors."""
    return float(norm.isf((1 - confidence) / 2))


def with_fakes(expected: Predictions, spec: Any, reaches: Iterable[Reach]) -> Predictions:
    """What a plan shows of a question, and where clients send the reports the table `fakes` with it; and a sentence
    where a cap on weights does the opposite of what it is for."""
    if spec.source.reports is None:
        return expected
    rows = list(reaches)
    notes = expected.notes + tuple(stronger_under_cap(rows))
    return replace(expected, tables={**expected.tables, "fakes": fakes_table(rows)}, notes=notes)


def stronger_under_cap(reaches: Iterable[Reach]) -> Iterator[str]:
    """Of each estimate that fakes move further with the cap than without: the cap takes weight from one level and gives
    it to others, of which the strictest may have the longer lever."""
    rows = list(reaches)
    free = {(one.attribute, one.estimate, one.combination): one for one in rows if one.cap == UNCAPPED}
    for one in rows:
        without = free.get((one.attribute, one.estimate, one.combination))
        if one.cap == UNCAPPED or without is None or not one.moved or not without.moved:
            continue
        if one.moved < _NOTICEABLE * without.moved:
            continue
        yield (
            f"level_weight_cap {one.cap:g} makes fakes stronger on {one.attribute}, {one.estimate}: they move it by "
            f"{one.moved:.3g} from {one.at}, and by {without.moved:.3g} from {without.at} without the cap"
        )


def fakes_table(reaches: Iterable[Reach]) -> Rows:
    """The rows in order; `level_weight_cap` is null where there is none."""
    return stacked(
        [
            {
                "attribute": [one.attribute],
                "estimate": one.estimate,
                "combination": one.combination,
                "level_weight_cap": None if one.cap == UNCAPPED else one.cap,
                "fakes": FAKES,
                "at": one.at,
                "mechanism": one.mechanism,
                "moved": one.moved,
                "half_width": one.half_width,
            }
            for one in reaches
        ]
    )
