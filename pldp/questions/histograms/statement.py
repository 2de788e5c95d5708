"""What the privacy statement says of histograms."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

from pldp.channels.exact import float_above, log_above
from pldp.estimate.capped import cap_sentence
from pldp.privacy.exposure import Exposed
from pldp.questions.histograms.choices import covered
from pldp.questions.question import Part

if TYPE_CHECKING:
    from pldp.questions.histograms.question import Histograms


def statement(plan: Histograms) -> Part:
    """The part of the privacy statement: what attributes spend at each level, and what is public or assumed."""
    worst = prod((max(level.protocol.worst_ratio for level in a.levels) for a in plan.attributes), start=Fraction(1))
    hidden = plan.hidden is not None
    return Part(
        guarantee="personalised by level",
        neighbours="two values of one user's row, at the same chosen levels",
        exact=Fraction(log_above(worst)),
        meaning="a user who chose the weakest level everywhere; nobody spends more",
        details={
            "by_level": {
                level: float_above(sum((a.levels[i].budget for a in plan.attributes), Fraction(0)))
                for i, level in enumerate(plan.levels)
            },
            "attributes": [
                {
                    "attribute": attribute.name,
                    "made_of": list(attribute.parts),
                    "values": len(attribute.values),
                    "levels": [
                        {
                            "level": level.level,
                            "mechanism": level.mechanism,
                            "nominal_epsilon": level.nominal_epsilon,
                            "exact_epsilon": level.exact_epsilon,
                        }
                        for level in attribute.levels
                    ],
                }
                for attribute in plan.attributes
            ],
            "hidden_levels": _hidden(plan),
        },
        public=() if hidden else ("how many users chose each level, and which level a user chose",),
        assumptions=(
            *(["levels are told as the plan says"] if hidden else []),
            *filter(None, [covered(plan), cap_sentence(plan.recipe.level_weight_cap)]),
            "every user answers once",
            *(["every further release tells about their levels again"] if hidden else []),
        ),
    )


def exposed(plan: Histograms) -> Iterator[Exposed]:
    """What every attribute tells about each column that it is made of."""
    for attribute in plan.attributes:
        worst = max(attribute.levels, key=lambda level: level.budget)
        for column in attribute.columns or attribute.parts:
            yield Exposed(
                column=column,
                attribute=attribute.name,
                by_choice={level.level: level.budget for level in attribute.levels},
                nominal=worst.budget,
                ratio=max(level.protocol.worst_ratio for level in attribute.levels),
            )


def _hidden(plan: Histograms) -> dict[str, Any] | None:
    """What reports tell about the level that a user chose."""
    leak = plan.leak()
    if plan.hidden is None or leak is None:
        return None
    return {
        "epsilon_p": float_above(plan.hidden.budget),
        "exact_epsilon_p": log_above(plan.hidden.protocol.worst_ratio),
        "exact_leak": log_above(leak),
        "max_leak": float_above(plan.hidden.max_leak),
        "meaning": (
            "the most that all reports of a user together change the odds between two levels, at the same values; "
            "epsilon_p alone would not bound it, for value reports tell about the level too"
        ),
    }
