"""Totals of what a person holds, from the public catalogue: on the person's own device, before any noise."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction

from pldp.client.fitting import TELLS_MORE
from pldp.client.holdings import Totals
from pldp.client.questions import Question, Refused
from pldp.client.spend import allowed

Weight = int | str | Fraction
"""Whole, or as text such as 0.5 or 1/3: a double would be another number than the one that is written."""


def totals(
    question: Question, catalogue: Mapping[str, Mapping[str, Weight]], held: Mapping[str, int] | Iterable[str]
) -> dict[str, int]:
    """Whole grid units per attribute, as `Person.answer` takes them.

    `catalogue` says how much an item counts for which attribute. `held` says how often a person has each item, or lists
    items once. Where the plan has a cap, an item counts so often at most: its budget is for no more. Refused where an
    item of the catalogue would spend more than the plan states.
    """
    require_promise(question, catalogue)
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
    return dict(zip(sums, _units(question, sums), strict=True))


def require_promise(question: Question, catalogue: Mapping[str, Mapping[str, Weight]]) -> None:
    """Refused where having one item of the catalogue more, or one occurrence of it where there is no cap, is told to
    all providers together by more than the ε that the plan states: noises are independent, so what units spend adds up.
    """
    rows = {_units(question, item) for item in catalogue.values()}
    limits: dict[tuple[int, ...], Fraction] = {}
    for choice in question.choices.values():
        if isinstance(choice.channel, Totals):
            per_unit = choice.channel.per_unit
            limits[per_unit] = min(choice.epsilon, limits.get(per_unit, choice.epsilon))
    for per_unit, epsilon in limits.items():
        spends = (sum(abs(unit) * spent for unit, spent in zip(row, per_unit, strict=True)) for row in rows)
        if (question.cap or 1) * max(spends, default=0) > allowed(epsilon):
            raise Refused(f"{question.name}: for this catalogue {TELLS_MORE}")


def _units(question: Question, weights: Mapping[str, Weight]) -> tuple[int, ...]:
    """Weights by attribute in units of its grid."""
    units = [Fraction(weights.get(one.name, 0)) / one.grid for one in question.attributes]
    for one, number in zip(question.attributes, units, strict=True):
        if number.denominator != 1:
            raise Refused(f"{one.name}: a weight of the catalogue is no multiple of the plan's grid. Ask the operator")
    return tuple(map(int, units))
