"""What the privacy statement says of numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from pldp.channels.exact import float_above
from pldp.questions.numbers.plan import NumbersPlan


def attribute_statements(numbers: NumbersPlan) -> list[dict[str, Any]]:
    """The most that a user of each level can spend on an attribute, its mean and its distribution together."""
    found = []
    for name, asked in numbers.attributes.items():
        question = numbers.questions[asked[0]]
        levels = []
        for level in numbers.levels:
            nominal, exact = level.most(len(asked))
            used = dict.fromkeys(m.mechanism for c in level.classes for m in (c.mechanisms[q] for q in asked))
            levels.append(
                {
                    "level": level.level,
                    "mechanism": " + ".join(used),
                    "nominal_epsilon": nominal,
                    "exact_epsilon": exact,
                }
            )
        bounds = [question.lower, question.upper]
        found.append({"attribute": name, "made_of": [name], "bounds": bounds, "levels": levels})
    return found


def numbers_statement(numbers: NumbersPlan) -> dict[str, Any]:
    """How many questions a user answers, and which budgets the answers can have."""
    return {
        "questions": [f"{question.kind} of {question.attribute}" for question in numbers.questions],
        "levels": [
            {
                "level": level.level,
                "answered": level.sampled,
                "nominal_epsilon": float_above(level.budget),
                "exact_epsilon": level.worst_exact,
                "budgets_of_an_answer": [float_above(found.budget) for found in level.classes],
            }
            for level in numbers.levels
        ],
        "meaning": (
            "every user answers some of the questions, drawn at random without regard to any value; the budgets of "
            "these answers sum to the level's"
        ),
    }


def public_sentences(numbers: NumbersPlan) -> list[str]:
    """What reports on numbers tell beside the answers."""
    sentences = ["which numeric attributes a user reported on, which chance decided"]
    if numbers.told:
        sentences.append(
            "the budget of every report on a number: it tells whether the attribute matters to the user, and how much "
            "the others do that this user reported on"
        )
    return sentences


def worst_exact(numbers: NumbersPlan | None) -> Fraction:
    return Fraction(0) if numbers is None else max(Fraction(level.worst_exact) for level in numbers.levels)
