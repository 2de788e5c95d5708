"""What is told of items before anybody is asked: predictions, budgets and the part of the privacy statement."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest

from pldp.questions.items.predict import typical_error
from pldp.questions.items.question import ITEM_CELLS, LEAST_CELLS
from pldp.questions.items.sampledrows import Sampled
from pldp.questions.items.statement import items_statement
from tests.pldp.questions.items.memory import NAMES, ONE, make_question

LEVELS = dict(zip(NAMES, (0, 1, 2, 3, 4, 4), strict=True))
SENSITIVE = {"sensitivity": {"of": 5, "levels": LEVELS}}

RAW_ROWS = SimpleNamespace(source=SimpleNamespace(reports=None))


def test_predictions() -> None:
    question = make_question(**SENSITIVE)
    shown = question.predictions(RAW_ROWS)
    levels, items, sensitivities = (shown.tables[name] for name in ("levels", "items", "sensitivities"))
    assert shown.tables["protocols"] == {"protocol": ["bounded"], "why": [question.why]}
    assert (levels["level"], levels["nominal_epsilon"], levels["keeps_bound"]) == (
        ["high", "low"],
        [6.0, 12.0],
        [True, True],
    )
    assert all(exact <= nominal for exact, nominal in zip(levels["exact_epsilon"], levels["bound"], strict=True))
    assert list(items) == ["item", "sensitivity", "high", "low"]
    assert items["item"] == list(NAMES)
    assert sum(items["low"]) == pytest.approx(levels["exact_epsilon"][1]), "a row spends what its items do together"
    assert sensitivities["sensitivity"] == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert sensitivities["items"][-1] == 2
    weakest = [
        e for e, level in zip(sensitivities["exact_epsilon"], sensitivities["level"], strict=True) if level == "low"
    ]
    assert weakest == sorted(weakest, reverse=True)
    np.testing.assert_allclose(sensitivities["odds"], np.exp(sensitivities["exact_epsilon"]))
    errors = shown.tables["errors"]
    assert errors["length"] == list(range(1, question.length + 1))
    assert errors["standard_error"][0] == typical_error(question, 1)
    assert shown.assumptions == (
        "3,000 users, of whom choose high 1,500, low 1,500",
        "sets held by 10.00% of users, the minimum, and their items by nobody else",
        "intervals hold if levels are chosen independently of the items: whoever holds an item is as likely as anybody "
        "to choose any level, which is declared and not proven",
    )
    assert (question.target, question.typical_errors()) == ("", {}), "a target error makes no sense of sets"
    json.dumps(shown.tables)


def test_predictions_of_the_other_forms() -> None:
    sampled = make_question(protocol="sampling").predictions(RAW_ROWS)
    assert sampled.tables["items"] == {}
    assert sampled.assumptions[-1].startswith("intervals hold if"), "there is a place for every item and set"
    assert "sampling.lengths is not declared" in sampled.notes[-1]
    assert make_question(**ONE).predictions(RAW_ROWS).assumptions[1] == "equal shares of all values"
    assert make_question(combination="sum").predictions(RAW_ROWS).assumptions[-1].startswith("intervals hold however")
    drowned = make_question(protocol="bounded", budget={"total": 1})
    assert drowned.predictions(RAW_ROWS).notes == (
        "sets of 1 are the longest that are looked for, of 3 asked: the errors of longer ones would make frequent sets "
        "of noise",
    )
    open_items = make_question(**SENSITIVE, protocol="aprr").predictions(RAW_ROWS)
    assert "exceeds its bound at high, low: `pldp release` refuses this spec" in open_items.notes[-1]
    assert open_items.tables["levels"]["exact_epsilon"] == [None, None]
    assert open_items.tables["sensitivities"]["odds"][0] is None


def test_paddings_and_what_they_cost_are_shown() -> None:
    names = [f"item {number}" for number in range(40)]
    asked = {"items": names, "protocol": "sampling", "budget": {"total": 4}, "expected": {"users": 20_000}}
    question = make_question(**asked, sampling={"lengths": {3: 0.7, 6: 0.295, 20: 0.005}})
    shown = question.predictions(RAW_ROWS)
    paddings = shown.tables["paddings"]
    channel = question.levels[0].channel
    assert isinstance(channel, Sampled)
    assert channel.sets is not None
    assert paddings["of"] == ["items", "sets"]
    assert paddings["places"] == [channel.items.length, channel.sets.length]
    assert 6 <= channel.items.length < 20
    assert all(one < error for one, error in zip(paddings["at_one_place"], paddings["standard_error"], strict=True))
    assert paddings["understatement"][0] > 0
    assert shown.tables["errors"]["understatement"][0] == paddings["understatement"][0]
    assert "by the declared lengths of rows and by their reports" in shown.assumptions[-1]
    assert f"more than {channel.items.length} items" in shown.assumptions[-1]
    assert items_statement(question)["assumptions"][-1] == shown.assumptions[-1]


def test_budgets() -> None:
    rows = make_question().budgets(None)
    assert rows["attribute"] == ["items", "items"]
    assert rows["mechanism"] == ["bounded: bits", "bounded: bits"]
    assert rows["nominal_epsilon"] == [6.0, 12.0]
    assert all(6 - 1e-6 < exact <= 6 for exact in rows["exact_epsilon"][:1])
    assert (rows["share"], rows["n_users"], rows["unit"]) == ([1.0, 1.0], [None, None], ["user", "user"])
    assert make_question(**SENSITIVE, protocol="aprr").budgets(None)["exact_epsilon"] == [None, None]
    assert make_question(protocol="sampling").budgets(None)["mechanism"][0].startswith("sampling: sampled ")


def test_the_statement() -> None:
    question = make_question(**SENSITIVE)
    statement = items_statement(question)
    assert (statement["kind"], statement["unit"], statement["protects"]) == (
        "items",
        "user",
        "a user's whole row of items",
    )
    assert statement["worst_total"]["finite"]
    assert statement["worst_total"]["nominal_epsilon"] == 12
    assert [row["item"] for row in statement["items"]] == list(NAMES)
    assert [row["sensitivity"] for row in statement["items"]] == list(LEVELS.values())
    assert "the declared items, and how sensitive each is" in statement["public"]
    assert statement["assumptions"] == [question.covered]
    assert items_statement(make_question(combination="sum"))["assumptions"][0].startswith("intervals hold however")
    assert items_statement(make_question(**ONE))["neighbours"] == "any two values of a user, at the same level"
    sampled = items_statement(make_question(protocol="sampling"))
    assert sampled["items"] == []
    assert any("candidate sets were asked about" in sentence for sentence in sampled["public"])
    json.dumps(statement)
    part = question.statement("vault")
    assert (part.guarantee, part.neighbours) == (statement["protects"], statement["neighbours"])
    assert part.exact == statement["worst_total"]["exact_epsilon"]
    assert part.public == tuple(statement["public"])
    assert set(part.details) == {"protocol", "levels", "items"}
    assert make_question(**SENSITIVE, protocol="aprr").statement("vault").exact is None


def test_what_a_person_takes_of_a_partition() -> None:
    """As many users in a partition as ever: 2^23 cells, of which a user takes the items, or those asked about."""
    assert make_question().cells == ITEM_CELLS * LEAST_CELLS == 128
    many = make_question(items=[f"i{n}" for n in range(2000)], protocol="bounded", budget={"total": 900})
    assert many.cells == 4000
    sampled = make_question(items=[f"i{n}" for n in range(2000)], protocol="sampling", sampling={"candidates": 100})
    assert sampled.cells == 200
    assert math.ceil(10**6 * make_question().cells / (1 << 24)) == 8


def test_what_it_is_granted() -> None:
    question = make_question()
    assert question.granted == question.worst_total == 12
    assert question.methods == ("answer",)
    assert [pair[1] for pair in question.spends()] == [6, 12]


@pytest.mark.parametrize("lengths", [None, {0: 1}, {0: "1/2", 4: "1/2"}])
def test_a_plan_for_one_user_is_shown(lengths: dict[int, object] | None) -> None:
    """Nobody is left to be asked about sets; and rows that hold nothing have one place all the same."""
    sampling = None if lengths is None else {"lengths": lengths}
    question = make_question(protocol="sampling", expected={"users": 1}, sampling=sampling)
    paddings = question.predictions(RAW_ROWS).tables["paddings"]
    assert min(paddings["places"]) >= 1
    assert math.isinf(paddings["standard_error"][1])
    assert math.isinf(paddings["at_one_place"][1])
