"""Numbers whose levels stand in columns of their own: each column rules a question with a budget of its own."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from pldp.questions.numbers.question import Numbers
from pldp.questions.people.spec import Spec
from pldp.questions.plan import Plan
from pldp.questions.resolve import make_plan

NUMBERS: list[dict[str, Any]] = [
    {"name": "age", "kind": "number", "bounds": [0, 100]},
    {"name": "income", "kind": "number", "bounds": [0, 1000], "quantiles": [0.5]},
    {"name": "rent", "kind": "number", "bounds": [0, 1000]},
]


def planned(columns: dict[str, str] | str, **more: Any) -> Plan:
    spec = {
        "name": "people",
        "source": {"path": "people.csv", "user_id": "id"},
        "attributes": [{"name": "job", "values": ["a", "b", "c"]}, *NUMBERS],
        "budget": {"total": 6},
        "levels": {"dependence": 1, "column": columns},
        **more,
    }
    return make_plan(Spec.model_validate(spec))


def questions(plan: Plan) -> list[Numbers]:
    return [question for question in plan.questions if isinstance(question, Numbers)]


def test_one_column_is_one_question_on_one_budget() -> None:
    (only,) = questions(planned("level"))
    assert (only.place, only.choice_field, only.fields) == ("numbers", "level_0", (0, 1, 2))


def test_numbers_of_one_column_are_sampled_together() -> None:
    plan = planned({"job": "l1", "age": "l2", "income": "l3", "rent": "L2"})
    first, second = questions(plan)
    assert (first.fields, first.choice_field) == ((0, 2), "level_1")
    assert (second.fields, second.choice_field) == ((1,), "level_2")
    assert [question.attribute for question in first.questions] == ["age", "rent"]
    assert first.vault_fields == ("number_0", "number_2")
    paths = [sheet.path for _, sheet in plan.sheets]
    assert len(paths) == len(set(paths)), "every question has files of its own"


def test_budgets_sum_to_the_total_whatever_is_chosen() -> None:
    plan = planned({"job": "l1", "age": "l2", "income": "l3", "rent": "l4"})
    assert plan.worst_total("user") == Fraction(6)
    assert sum(question.granted for question in plan.questions) == Fraction(6)


def test_a_number_that_asks_for_more_gets_more() -> None:
    """`income` has its mean and its distribution to report on."""
    age, income, rent = questions(planned({"job": "l1", "age": "l2", "income": "l3", "rent": "l4"}))
    assert income.budget > age.budget
    assert age.budget == pytest.approx(rent.budget, rel=1e-6)


def test_a_stated_number_of_answers_is_at_most_what_a_question_has() -> None:
    columns = {"job": "l1", "age": "l2", "income": "l3", "rent": "l2"}
    first, second = questions(planned(columns, numbers={"sampling": 2}))
    assert {level.sampled for level in first.levels} == {2}
    assert {level.sampled for level in second.levels} == {2}


def test_every_number_needs_a_column() -> None:
    with pytest.raises(ValueError, match="every category, binned and numeric attribute"):
        planned({"job": "l1", "age": "l2"})


def test_a_column_of_levels_is_no_column_of_values() -> None:
    with pytest.raises(ValueError, match="both read column"):
        planned({"job": "l1", "age": "income", "income": "l3", "rent": "l4"})
