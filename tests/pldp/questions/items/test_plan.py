"""The plan of a release of items: exact bounds, what auto takes, what specs must say, and the statement."""

from __future__ import annotations

import math
from copy import deepcopy
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from pldp.channels.exact import within
from pldp.papers.aprr.levels import levels_from_frequency
from pldp.questions.items.levels import level_budgets
from pldp.questions.items.predict import predicted_errors, typical_error
from pldp.questions.items.question import Items
from pldp.questions.items.resolve import make_plan
from pldp.questions.items.rowchannels import Bits, OneValue
from pldp.questions.items.sampledrows import Sampled
from pldp.questions.items.spec import ItemsSpec
from pldp.questions.items.statement import items_statement
from pldp.questions.items.values import exact_epsilon
from pldp.spec.levels import UNDECLARED
from tests.pldp.questions.items.world import SIZES

NAMES = tuple(f"item{i}" for i in range(11))
LEVELS = dict(zip(NAMES, levels_from_frequency(np.arange(11, 0, -1), SIZES), strict=True))
SPEC: dict[str, Any] = {
    "kind": "items",
    "name": "sets",
    "source": {"path": "rows.csv"},
    "items": list(NAMES),
    "budget": {"total": 9},
    "itemsets": {"minimum_support": 0.1, "length": 3},
    "expected": {"users": 100_000},
}
SENSITIVE = {"of": 5, "levels": LEVELS}


def spec(**sections: Any) -> ItemsSpec:
    return ItemsSpec.model_validate({k: v for k, v in {**deepcopy(SPEC), **sections}.items() if v is not None})


def plan(**sections: Any) -> Items:
    found = spec(**sections)
    items = found.items
    assert isinstance(items, tuple)
    asked = found.sensitivity
    levels = None if asked is None or asked.levels is None else tuple(asked.levels[item] for item in items)
    return make_plan(found, items, levels)


def test_every_level_of_users_keeps_its_share_of_the_bound_exactly() -> None:
    found = plan(levels={"choices": {"high": "1/3", "low": 1}, "dependence": 1}, source={"path": "x", "level": "level"})
    assert found.level_names == ("high", "low")
    assert [level.bound for level in found.levels] == [3, 9]
    assert found.keeps_bounds
    for level in found.levels:
        assert within(level.channel.worst_ratio or Fraction(0), level.bound)
        assert exact_epsilon(level.channel.worst_ratio) > float(level.bound) * (1 - 1e-9), "and leaves nothing of it"
    assert found.worst_total == 9
    assert found.default == "high", "whoever states none is protected most"
    assert Items.model_validate_json(found.model_dump_json()) == found


def test_aprr_spends_what_the_paper_does_not_say() -> None:
    """Seven perturbed items of ε = 9: 10.21; with open ones, infinite. No release keeps a bound of 9."""
    published = plan(protocol="aprr", sensitivity=SENSITIVE)
    assert not published.keeps_bounds
    assert published.levels[0].channel.worst_ratio is None
    statement = items_statement(published)
    assert statement["worst_total"] == {
        "nominal_epsilon": 9.0,
        "exact_epsilon": None,
        "finite": False,
        "meaning": "a whole row of a user, however many items it holds",
    }
    closed = [name for name, level in LEVELS.items() if level]
    seven = {"of": 5, "levels": {name: LEVELS[name] for name in closed}}
    tight = plan(protocol="aprr", items=closed, sensitivity=seven)
    assert round(exact_epsilon(tight.levels[0].channel.worst_ratio), 2) == 10.21
    assert not tight.keeps_bounds
    assert plan(protocol="aprr", items=closed, sensitivity=seven, budget={"total": 9, "bound": "10.22"}).keeps_bounds
    spent = {row["item"]: row["exact_epsilon"]["all"] for row in items_statement(tight)["items"]}
    assert sorted({round(value, 3) for value in spent.values()}) == [0.483, 1.026, 1.612, 2.224]


def test_bounded_keeps_what_each_sensitivity_was_promised() -> None:
    """The last item matters most, and would be given more than its sensitivity allows."""
    weights = {name: 200.0 if name == NAMES[-1] else 1.0 for name in NAMES}
    free = plan(protocol="bounded", weights=weights, budget={"total": 40}).levels[0].channel
    assert isinstance(free, Bits)
    assert exact_epsilon(free.kernel.ratios[-1]) > 6
    found = plan(protocol="bounded", weights=weights, sensitivity=SENSITIVE, budget={"total": 40})
    (level,) = found.levels
    assert isinstance(level.channel, Bits)
    promised = level_budgets(5, Fraction(40))
    for ratio, own in zip(level.channel.kernel.ratios, (LEVELS[name] for name in NAMES), strict=True):
        assert within(ratio or Fraction(0), level.bound if (cap := promised[own]) is None else cap / 3)
    assert 1.333 < exact_epsilon(level.channel.kernel.ratios[-1]) <= 4 / 3
    assert found.keeps_bounds


def test_the_more_sensitive_an_item_the_less_it_gets() -> None:
    """Before, all 11 items of sensitivity 0 to 4 got a row's bound in equal parts."""
    choices = {"choices": {"high": "1/3", "low": 1}, "dependence": 1}
    for split in ("capped", "proportional"):
        asked = {**SENSITIVE, "split": split}
        found = plan(sensitivity=asked, levels=choices, source={"path": "x", "level": "level"})
        assert (found.protocol, found.split) == ("bounded", split)
        for level in found.levels:
            assert isinstance(level.channel, Bits)
            spent = dict(zip(found.sensitivity or (), map(exact_epsilon, level.channel.kernel.ratios), strict=True))
            assert spent[4] < spent[3] < spent[2] < spent[1] <= spent[0] < float(level.bound)
            promised = found.promises(level)
            assert promised is not None
            pairs = zip(level.channel.kernel.ratios, promised, strict=True)
            assert all(within(ratio or Fraction(0), promise) for ratio, promise in pairs)
        assert Items.model_validate_json(found.model_dump_json()) == found


def test_single_values_have_channels_of_their_own() -> None:
    one = plan(holds="one", itemsets={"minimum_support": 0.1, "length": 1}, sensitivity=SENSITIVE)
    (level,) = one.levels
    assert isinstance(level.channel, OneValue)
    promised = level_budgets(5, Fraction(9))
    rows = items_statement(one)["items"]
    for row in rows:
        assert row["exact_epsilon"]["all"] <= float(promised[row["sensitivity"]] or 9)
    published = plan(
        holds="one", itemsets={"minimum_support": 0.1, "length": 1}, sensitivity=SENSITIVE, protocol="aprr"
    )
    assert published.levels[0].channel.worst_ratio is None, "level 0 is open"


def test_auto_takes_what_is_predicted_to_err_less() -> None:
    few = plan()
    assert few.protocol == "bounded"
    many = plan(items=[f"i{n}" for n in range(2000)], budget={"total": 4})
    assert many.protocol == "sampling"
    assert isinstance(many.levels[0].channel, Sampled)
    assert many.phases == 2
    assert [[sheet.covers(partition) for partition in range(4)] for sheet in many.sheets()] == [
        [True, False, True, False],
        [False, True, False, True],
    ]
    for found in (few, many):
        other = plan(
            items=list(found.items),
            budget={"total": str(found.levels[0].budget)},
            protocol="sampling" if found is few else "bounded",
        )
        assert typical_error(found, 1) < typical_error(other, 1)
        assert "predicted a standard error" in found.why


def test_lengths_that_noise_would_drown_are_left_out() -> None:
    found = plan(protocol="bounded", budget={"total": 5}, expected={"users": 2000})
    assert (found.length, found.asked_length) == (1, 3)
    enough = plan(protocol="bounded", budget={"total": 30}, expected={"users": 100_000})
    assert enough.length == 3
    errors = predicted_errors(enough)
    assert [row.length for row in errors] == [1, 2, 3]
    assert all(0 < 3 * row.standard_error < 0.1 and row.worst >= row.standard_error for row in errors)


def test_what_scores_cost_is_added() -> None:
    collected = {**SENSITIVE, "collected": {"release": "scores-1", "epsilon": 2}}
    found = items_statement(plan(sensitivity=collected, protocol="bounded"))
    assert found["scores"]["with_this_release"] == pytest.approx(11, abs=1e-6)
    assert math.isclose(found["scores"]["epsilon"], 2)


BAD = [
    ({"itemsets": {"minimum_support": 0}}, "greater than 0"),
    ({"itemsets": {"minimum_support": 1.2}}, "less than or equal to 1"),
    ({"itemsets": {"minimum_support": 0.1, "length": 13}}, "less than or equal to 12"),
    ({"items": ["a", "a"]}, "items must differ from each other (got 'a' more than once)"),
    ({"protocol": "aprr"}, "protocol: aprr needs sensitivity"),
    (
        {"sensitivity": {**SENSITIVE, "split": "proportional"}, "protocol": "aprr"},
        "split: proportional goes with protocol: bounded",
    ),
    (
        {"sensitivity": {**SENSITIVE, "split": "proportional"}, "weights": dict.fromkeys(NAMES, 1)},
        "weights go with sensitivity.split: capped",
    ),
    ({"protocol": "sampling", "sensitivity": SENSITIVE}, "protocol: sampling treats all items alike"),
    ({"budget": {"total": 9, "bound": 10}}, "budget.bound goes with protocol: aprr"),
    ({"budget": {"total": 0}}, "greater than 0"),
    ({"sensitivity": {"of": 5, "levels": {**LEVELS, "item0": 5}}}, "levels must lie in 0 … 4"),
    ({"sensitivity": {"of": 5, "levels": {"item0": 1}}}, "sensitivity.levels must give a level to every item"),
    ({"sensitivity": {"of": 5, "levels": {**LEVELS, "x": 1}}}, "sensitivity.levels names items that items does not"),
    ({"sensitivity": {"of": 5}}, "needs either levels"),
    ({"weights": {"item0": 1}}, "weights must give a weight to every item"),
    ({"levels": {"choices": {"a": "1/2"}}}, "choices must give 1"),
    (
        {"levels": {"choices": {"a": 1, "b": "1/2"}, "dependence": 1}},
        "several choices need source.level or users.level",
    ),
    ({"levels": {"choices": {"a": 1, "b": "1/2"}}}, UNDECLARED),
    (
        {
            "levels": {"choices": {"a": 1, "b": "1/2"}, "dependence": "1.3"},
            "combination": "oc+",
            "source": {"path": "x", "level": "level"},
        },
        "combination must be left out",
    ),
    ({"sampling": {"lengths": {4: 0.5, 8: 0.4}}}, "lengths must sum to 1"),
    ({"sampling": {"lengths": {-1: 0.5, 8: 0.5}}}, "lengths must be numbers of items"),
    ({"holds": "one"}, "itemsets.length must be 1 with holds: one"),
    ({"missing": "item0"}, "missing and other go with holds: one"),
    (
        {"holds": "one", "itemsets": {"minimum_support": 0.1, "length": 1}, "missing": "x"},
        "missing must be one of items",
    ),
]


@pytest.mark.parametrize(("sections", "told"), BAD)
def test_a_bad_spec_is_refused(sections: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as error:
        spec(**sections)
    assert told in str(error.value)


def test_a_budget_that_leaves_no_signal_is_refused() -> None:
    """p = 1/2 would be singular."""
    with pytest.raises(ValueError, match=r"too small for 11 items|leaves no signal"):
        plan(protocol="bounded", budget={"total": "1e-12"})
