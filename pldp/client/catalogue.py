"""Totals of what a person holds, from the public catalogue: on the person's own device, before any noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from pldp.client.questions import Question, Refused

Weight = int | str | Fraction
"""Whole, or as text such as 0.5 or 1/3: a double would be another number than the one that is written."""


def totals(
    question: Question, catalogue: Mapping[str, Mapping[str, Weight]], held: Mapping[str, int] | Iterable[str]
) -> dict[str, int]:
    """Whole grid units per attribute, as `Person.answer` takes them.

    `catalogue` says how much an item counts for which attribute. `held` says how often a person has each item, or lists
    items once. Where the plan has a cap, an item counts so often at most: its budget is for no more.
    """
    counts = dict(held) if isinstance(held, Mapping) else dict.fromkeys(held, 1)
    sums = {one.name: Fraction(0) for one in question.attributes}
    for item, count in counts.items():
        if item not in catalogue:
            raise Refused(f"{question.name}: the catalogue does not have one of the items")
        if isinstance(count, bool) or not isinstance(count, int) or count < 0:
            raise Refused(f"{question.name}: an item is held a whole number of times")
        counted = count if question.cap is None else min(count, question.cap)
        for name, weight in catalogue[item].items():
            if name in sums:
                sums[name] += counted * Fraction(weight)
    units = {one.name: sums[one.name] / one.grid for one in question.attributes}
    for name, number in units.items():
        if number.denominator != 1:
            raise Refused(f"{name}: a weight of the catalogue is no multiple of the plan's grid. Ask the operator")
    return {name: int(number) for name, number in units.items()}
