"""Spec, plan and statement of a release of aggregates: what is refused, and that the promises stand in it exactly."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from pldp.channels.exact import within
from pldp.questions.aggregates import budgets
from pldp.questions.aggregates.checks import noise_tails
from pldp.questions.aggregates.question import Aggregates
from pldp.questions.aggregates.solver import solve
from pldp.questions.aggregates.spec import AggregatesSpec
from pldp.questions.aggregates.statement import statement
from tests.pldp.questions.aggregates.world import plan, spec


def test_both_promises_hold_exactly() -> None:
    for cap in (None, 3):
        found = plan(count="occurrence" if cap is None else {"cap": cap})
        for provider in found.providers:
            mechanism = found.mechanisms[provider.name]
            for number, (profile, service) in enumerate(zip(found.profiles, provider.services, strict=True)):
                each = zip(mechanism.attribute_ratios(number), profile.budgets, strict=True)
                assert all(within(ratio, budget) for ratio, budget in each)
                assert within(mechanism.overall_ratios[number], provider.epsilon)
                assert service.residual < 1e-8
        assert within(found.pooled_ratio, found.worst_total)
        assert found.worst_total == Fraction(5, 2)


def test_a_cap_makes_every_unit_cheaper() -> None:
    once, thrice = plan(count={"cap": 1}), plan(count={"cap": 3})
    for a, b in zip(once.providers, thrice.providers, strict=True):
        for x, y in zip(a.services, b.services, strict=True):
            assert all(abs(one - 3 * other) <= 3 for one, other in zip(x.ticks, y.ticks, strict=True))


def test_the_plan_is_what_its_json_says() -> None:
    found = plan()
    again = Aggregates.model_validate_json(found.model_dump_json())
    assert again == found
    assert again.sha256 == found.sha256
    assert np.array_equal(again.mechanisms["ads"].ticks, found.mechanisms["ads"].ticks)
    assert plan(providers={"shop": {"epsilon": 2}}).sha256 != found.sha256


def test_other_thresholds_than_planned_are_not_drawn_from() -> None:
    found = plan()
    law = found.laws[0].model_copy(update={"tail": found.laws[0].tail - 1})
    spoilt = found.model_copy(update={"laws": (law, *found.laws[1:])})
    with pytest.raises(ValueError, match="not those of this version"):
        _ = spoilt.mechanisms


def test_above_the_turning_point_every_budget_is_spent_whole() -> None:
    found = plan(providers={"shop": {"epsilon": 50}, "ads": {"epsilon": "0.5"}})
    shop, ads = found.providers
    assert all(shop.above_turning_point(service) for service in shop.services)
    assert not any(ads.above_turning_point(service) for service in ads.services)
    assert shop.services[0].turning_point == 3, "a film of all three attributes, each with a budget of one"
    mechanism = found.mechanisms["shop"]
    assert mechanism.exact_epsilons[0] == pytest.approx([1, 1, 1])
    assert math.log(mechanism.overall_ratios[0]) == pytest.approx(3)


def test_the_statement_adds_providers_up() -> None:
    found = plan()
    told = statement(found)
    assert told["worst_total"]["nominal_epsilon"] == 2.5
    assert told["worst_total"]["exact_epsilon"] <= 2.5
    assert "pool" in told["worst_total"]["meaning"]
    alone = [provider["exact_epsilon"] for provider in told["providers"]]
    assert told["worst_total"]["exact_epsilon"] <= sum(alone) + 1e-12
    assert any("which profile a user chose" in line for line in told["public"])
    shares = [own["exact_epsilon"] for own in told["pooled_attributes"]]
    assert all(share <= 2 * 1 + 1e-12 for share in shares), "two providers, each with at most t_j"
    assert "only provider" in statement(plan(providers={"a": {"epsilon": 1}}))["worst_total"]["meaning"]


@pytest.mark.parametrize(
    ("count", "unit", "words", "neighbours"),
    [
        ("occurrence", "occurrence", "one occurrence of an item", "has one occurrence of an item more"),
        ({"cap": 2}, "item", "one item", "at most 2 are counted"),
    ],
)
def test_an_occurrence_is_a_unit_of_its_own(count: Any, unit: str, words: str, neighbours: str) -> None:
    found = plan(count=count)
    assert (found.unit, found.protected) == (unit, words)
    told = statement(found)
    assert told["unit"] == unit
    assert neighbours in told["neighbours"]
    assert told["replacing"].startswith(f"{words} for another")
    assert "up to twice a provider's epsilon" in told["replacing"]
    assert told["worst_total"]["meaning"].startswith(f"{words} more or less, towards all providers together")
    assert "who took part" in told["public"][0]
    assert "no neighbours" in told["public"][0]
    assert f"the unit is {words}:" in told["assumptions"][0]


def test_the_statement_says_whether_the_default_is_the_strictest() -> None:
    """Both are told: which profile the silent have, and whether another one allows less."""
    for default, least in (("shy", True), ("open", False)):
        found = plan(default=default)
        assert found.least_profile == "shy"
        told = statement(found)["default_profile"]
        assert told == {"profile": default, "allows_least": least}
    crossed = {"a": {"drama": 1, "comedy": 2, "war": 1}, "b": {"drama": 2, "comedy": 1, "war": 1}}
    mixed = plan(profiles=crossed, default="a")
    assert mixed.least_profile is None
    assert not statement(mixed)["default_profile"]["allows_least"]


def test_a_statement_lists_few_profiles_and_the_worst_of_all() -> None:
    profiles = {f"p{i}": {"drama": 1, "comedy": f"{i + 1}/500", "war": 1} for i in range(120)}
    found = plan(profiles=profiles, default="p0", providers={"ads": {"epsilon": 9}})
    told = statement(found)
    (provider,) = told["providers"]
    assert told["n_profiles"] == 120
    assert [one["profile"] for one in provider["profiles"]] == [f"p{i}" for i in range(100)]
    worst = {one["attribute"]: one["exact_epsilon"] for one in provider["attributes"]}
    assert worst["comedy"] == pytest.approx(120 / 500)
    assert told["pooled_attributes"][1]["exact_epsilon"] == pytest.approx(120 / 500)
    assert provider["exact_epsilon"] == pytest.approx(2 + 120 / 500)


def test_profiles_alike_are_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    solved = []

    def counting(rows: Any, scale: Any, *rest: Any) -> Any:
        solved.append(len(scale))
        return solve(rows, scale, *rest)

    monkeypatch.setattr(budgets, "solve", counting)
    profiles = {f"p{i}": {"drama": 1, "comedy": f"1/{i % 3 + 2}", "war": 1} for i in range(60)}
    found = plan(profiles=profiles, default="p0", providers={"ads": {"epsilon": "0.5"}})
    assert solved == [3]
    assert found.providers[0].services[0].ticks == found.providers[0].services[57].ticks
    assert found.providers[0].services[0].ticks != found.providers[0].services[1].ticks


@pytest.mark.parametrize("objective", ["mae", "mse"])
def test_many_spends_are_rounded_down_and_lose_next_to_nothing(objective: str, monkeypatch: pytest.MonkeyPatch) -> None:
    profiles = {f"p{i}": {"drama": f"1.{i}", "comedy": f"0.{i + 100}7", "war": f"0.3{i}"} for i in range(40)}
    fine = plan(profiles=profiles, default="p0", objective=objective)
    monkeypatch.setattr(budgets, "MOST_SPENDS", 30)
    found = plan(profiles=profiles, default="p0", objective=objective)
    assert (fine.coarse, found.coarse) == (False, True)
    assert all(law.ticks < 1 << 12 or law.ticks % (1 << law.ticks.bit_length() - 12) == 0 for law in found.laws)
    for provider in found.providers:
        mechanism, exact = found.mechanisms[provider.name], fine.mechanisms[provider.name]
        ratio = exact.ticks / mechanism.ticks
        assert ratio.min() >= 1
        assert ratio.max() < 1 + 2**-11
        assert all(within(worst, budget) for worst, budget in mechanism.tightest([p.budgets for p in found.profiles]))
        assert within(found.worst_ratio(provider.name), provider.epsilon)
        loss, least = ((m.ticks.astype(float) ** -found.power).sum(axis=1) for m in (mechanism, exact))
        assert (loss / least).max() <= (1 + 2**-11) ** found.power


def test_ten_thousand_profiles_are_a_spec() -> None:
    profiles = {f"p{i}": 1 for i in range(10_000)}
    assert len(spec(profiles=profiles, default="p0").profiles) == 10_000
    with pytest.raises(ValidationError, match="at most 10000 items"):
        spec(profiles={**profiles, "more": 1}, default="p0")


@pytest.mark.parametrize("epsilon", ["1e-10", "1e-15"])
def test_an_epsilon_that_tells_nothing_names_its_provider(epsilon: str) -> None:
    with pytest.raises(ValueError, match=r"^providers\.ads\.epsilon (leaves less than 2\^-32|must be at least)"):
        plan(providers={"shop": {"epsilon": 1}, "ads": {"epsilon": epsilon}})


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"catalogue": {"path": "x", "format": "duckdb"}}, "format duckdb needs table"),
        ({"catalogue": {"path": "x", "format": "parquet", "table": "t"}}, "table needs a format that has tables"),
        ({"catalogue": {"path": "x", "table": "t"}}, "table needs a format that has tables"),
        ({"profiles": {"open": 0}}, "greater than 0"),
        ({"profiles": {"open": {"drama": -1, "comedy": 1, "war": 1}}}, "greater than 0"),
        ({"profiles": {"open": {"drama": 1, "comedy": 1}}}, "there is none for war"),
        ({"profiles": {"open": {"drama": 1, "comedy": 1, "war": 1, "love": 1}}}, "does not have: love"),
        ({"profiles": {}}, "at least 1 item"),
        ({"providers": {"shop": {"epsilon": 0}}}, "greater than 0"),
        ({"providers": {}}, "at least 1 item"),
        ({"default": "brave"}, "default must be one of profiles"),
        ({"default": None}, "default is required"),
        ({"users": None}, "need users"),
        ({"source": {"path": "x", "profile": "p"}}, "not in both"),
        ({"attributes": ["drama", "drama"]}, "must differ"),
        ({"attributes": ["drama", "profile"]}, "another column"),
        ({"count": {"cap": 0}}, "greater than or equal to 1"),
        ({"count": "often"}, "occurrence"),
        ({"objective": {"weights": {"drama": 1, "comedy": -1, "war": 1}}}, "greater than 0"),
        ({"objective": {"weights": {"drama": 1}}}, "there is none for comedy, war"),
        ({"objective": "best"}, "mae"),
        ({"expected": {"profiles": {"brave": 1}}}, "not declared: brave"),
        ({"expected": {"profiles": {"open": "1/2"}}}, "sum to 1"),
        ({"intervals": {"target": "population"}}, "must be users"),
        ({"schedul": {"cron": "0 0 * * *"}}, "Extra inputs"),
    ],
)
def test_a_spec_that_breaks_a_rule(sections: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        spec(**sections)


def test_a_weighted_objective_spends_where_the_weight_is() -> None:
    even = plan(objective="mae")
    heavy = plan(objective={"weights": {"drama": 100, "comedy": 1, "war": 1}})
    assert heavy.loss.weights == (100.0, 1.0, 1.0)
    assert heavy.providers[1].services[0].ticks[0] > even.providers[1].services[0].ticks[0]


def test_noise_tails_bound_the_exact_tail() -> None:
    """One user: the tail is known. Many users: near the normal law's, and never below."""
    x = 0.2
    ratio = math.exp(-x)
    for distance in (1, 5, 20, 60):
        exact = 2 * ratio**distance / (1 + ratio)
        bound = float(noise_tails(np.array([distance]), np.array([[x]]), np.array([1]))[0])
        assert exact <= bound <= 1
    variance = 2 * ratio / (1 - ratio) ** 2
    users = np.array([5000, 5000])
    spend = np.array([[x, x], [x, x]])
    for z in (2.0, 4.0, 6.0):
        far = np.array([int(z * math.sqrt(10_000 * variance))] * 2)
        bounds = noise_tails(far, spend, users)
        assert math.erfc(z / math.sqrt(2)) <= bounds.min() <= bounds.max() <= 2.2 * math.exp(-z * z / 2)
    assert noise_tails(np.array([0]), np.array([[x]]), np.array([3]))[0] == 1


@pytest.mark.parametrize(
    ("section", "says"),
    [
        ({"objective": {"weights": {"drama": 1e300, "comedy": 1e-300, "war": 1}, "power": 8}}, "at most 1e+12 times"),
        ({"catalogue": {"path": "catalogue.csv", "grid": "1e99"}}, "less than or equal to"),
        ({"catalogue": {"path": "catalogue.csv", "grid": "1e-99"}}, "greater than or equal to"),
    ],
)
def test_numbers_that_no_double_can_weigh_are_refused(section: dict[str, object], says: str) -> None:
    content: dict[str, object] = {
        "kind": "aggregates",
        "name": "films",
        "source": {"path": "items.csv"},
        "catalogue": {"path": "catalogue.csv"},
        "attributes": ["drama", "comedy", "war"],
        "providers": {"ads": {"epsilon": 1}},
        "profiles": {"p": 1},
        **section,
    }
    with pytest.raises(ValueError, match=re.escape(says)):
        AggregatesSpec.model_validate(content)
