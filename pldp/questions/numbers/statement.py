"""What the privacy statement says of numbers."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from pldp.channels.exact import float_above
from pldp.estimate.capped import cap_sentence
from pldp.privacy.exposure import Exposed
from pldp.questions.numbers.plan import NumbersPlan
from pldp.questions.numbers.plan import Question as Topic
from pldp.questions.numbers.predict import covered
from pldp.questions.question import Part

if TYPE_CHECKING:
    from pldp.questions.numbers.question import Numbers


def attribute_statements(numbers: NumbersPlan) -> list[dict[str, Any]]:
    """The most that a user of each level can spend on an attribute, its mean and its distribution together."""
    statements = []
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
        statements.append({"attribute": name, "made_of": [name], "bounds": bounds, "levels": levels})
    return statements


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
                "budgets_of_an_answer": [float_above(class_plan.budget) for class_plan in level.classes],
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
    if numbers.tells_importance:
        sentences.append(
            "the budget of every report on a number: it tells whether the attribute matters to the user, and how much "
            "the others do that this user reported on"
        )
    return sentences


def statement(plan: Numbers) -> Part:
    """The part of the privacy statement: what a person spends on numbers at each level."""
    return Part(
        guarantee="personalised by level",
        neighbours="two values of one user's row, at the same chosen levels",
        exact=max(Fraction(level.worst_exact) for level in plan.levels),
        meaning="a user who chose the weakest level everywhere; nobody spends more",
        details={
            "by_level": {level.level: float_above(level.budget) for level in plan.levels},
            "attributes": attribute_statements(plan),
            "numbers": numbers_statement(plan),
        },
        public=("how many users chose each level, and which level a user chose", *public_sentences(plan)),
        assumptions=(
            "every user answers once",
            *(line for line in (covered(plan), cap_sentence(plan.recipe.level_weight_cap)) if line),
        ),
    )


def exposed(plan: Numbers) -> Iterator[Exposed]:
    """By column, since questions about one attribute are answered on one budget."""
    columns: dict[str, list[Topic]] = {}
    for question in plan.questions:
        columns.setdefault((question.source_column or question.attribute).casefold(), []).append(question)
    for asked in columns.values():
        most = {level.level: level.most(len(asked)) for level in plan.levels}
        for i, name in enumerate(dict.fromkeys(question.attribute for question in asked)):
            yield Exposed(
                column=asked[0].source_column or asked[0].attribute,
                attribute=name,
                by_choice={level: Fraction(nominal) if i == 0 else Fraction(0) for level, (nominal, _) in most.items()},
                nominal=max(Fraction(nominal) for nominal, _ in most.values()) if i == 0 else Fraction(0),
                exact=max(Fraction(exact) for _, exact in most.values()) if i == 0 else Fraction(0),
            )
