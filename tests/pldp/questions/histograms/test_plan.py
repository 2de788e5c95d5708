from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from pldp.channels.exact import SCALE, within
from pldp.questions.histograms.plan import LevelPlan
from pldp.questions.plan import Plan
from tests.pldp.specs import histograms, histograms_of, keeps_promise, planned
from tests.pldp.world import BUDGETS, PAPER_CELLS


def _paper_plan(total: object = 6) -> Plan:
    attributes = [{"name": f"of{size}", "values": [f"v{i}" for i in range(size)]} for size in PAPER_CELLS]
    return planned(attributes=attributes, budget={"total": total}, mechanism="brr")


def test_the_papers_plan() -> None:
    plan = histograms_of(_paper_plan())
    budgets = [float(attribute.budget) for attribute in plan.attributes]
    assert np.round(budgets, 4).tolist() == [0.8574, 1.0801, 1.2363, 1.3606, 1.4656]
    assert plan.cells == sum(PAPER_CELLS)
    assert plan.levels == ("high", "mid", "low")
    for attribute in plan.attributes:
        assert [level.budget for level in attribute.levels] == [
            attribute.budget / 3,
            attribute.budget / 2,
            attribute.budget,
        ]
        assert attribute.frequencies.tolist() == [1 / len(attribute.values)] * len(attribute.values)


@settings(max_examples=25)
@given(BUDGETS)
def test_nobody_spends_more_than_the_total(total: Fraction) -> None:
    release = _paper_plan(str(total))
    plan = histograms_of(release)
    assert release.total == release.worst_total("user") == plan.worst_total == total
    assert sum((attribute.budget for attribute in plan.attributes), Fraction(0)) == plan.granted == total
    worst = Fraction(1)
    for attribute in plan.attributes:
        worst *= max(level.protocol.worst_ratio for level in attribute.levels)
        for level in attribute.levels:
            assert keeps_promise(level)
            assert level.exact_epsilon <= level.nominal_epsilon
    # mpldp Theorem 5 in rationals: the product over attributes is within the total too.
    assert within(worst, total)


def test_a_threshold_one_higher_breaks_the_promise() -> None:
    level = histograms_of(_paper_plan()).attributes[0].levels[0]
    higher = {**level.parameters, "keep": level.parameters["keep"] + 1}
    assert not keeps_promise(level.model_copy(update={"parameters": higher}))


@pytest.mark.parametrize("keep", [0, 1, SCALE // 2, SCALE])
def test_a_tampered_threshold_is_no_mechanism(keep: int) -> None:
    level = LevelPlan(level="low", budget=Fraction(1), mechanism="brr", parameters={"domain_size": 3, "keep": keep})
    with pytest.raises(ValueError, match="keep must lie"):
        assert keeps_promise(level)


def test_json_round_trip() -> None:
    plan = _paper_plan("20/3")
    again = Plan.model_validate_json(plan.model_dump_json())
    assert again == plan
    assert again.sha256 == plan.sha256
    mine, theirs = histograms_of(plan), histograms_of(again)
    assert theirs.attributes[2].levels[1].protocol == mine.attributes[2].levels[1].protocol


def test_hash_is_stable_and_sees_every_threshold() -> None:
    plan = _paper_plan()
    assert _paper_plan().sha256 == plan.sha256
    seen = {plan.sha256}
    for i, attribute in enumerate(histograms_of(plan).attributes):
        for j in range(len(attribute.levels)):
            content = plan.model_dump(mode="json")
            content["questions"][0]["attributes"][i]["levels"][j]["parameters"]["keep"] -= 1
            seen.add(Plan.model_validate(content).sha256)
    assert len(seen) == 1 + 15


@pytest.mark.parametrize(
    "sections",
    [
        {"budget": {"total": "6.000001"}},
        {"name": "other"},
        {"combination": {"alpha": 0.01}},
        {"postprocess": "none"},
        {"intervals": {"confidence": 0.9}},
        {"gates": {"minimum_users": 2}},
        {"levels": {"dependence": 1, "column": "level", "choices": {"high": "1/4", "mid": "1/2", "low": 1}}},
    ],
)
def test_hash_sees_what_the_spec_changes(sections: dict[str, Any]) -> None:
    assert planned(**sections).sha256 != planned().sha256


def test_allocations() -> None:
    equal = histograms(budget={"total": 6, "allocation": "equal"})
    assert [float(a.budget) for a in equal.attributes] == pytest.approx([2, 2, 2])
    stated = histograms(budget={"total": 6, "allocation": {"sex": 0.5, "job": 0.25, "both": 0.25}})
    assert [float(a.budget) for a in stated.attributes] == pytest.approx([3, 1.5, 1.5])
    assert equal.worst_total == stated.worst_total == 6


def test_a_crosstab_has_a_budget_of_its_own() -> None:
    both = histograms().attributes[2]
    assert both.parts == ("sex", "job")
    assert len(both.values) == 8
    assert all(level.parameters["domain_size"] == 8 for level in both.levels)


def test_expected_sizes() -> None:
    expected = {"users": 10, "levels": {"high": 0.2, "low": 0.8}}
    plan = histograms(expected=expected)
    assert plan.expected_sizes().tolist() == [2, 0, 8]
    assert plan.expected_sizes(100).tolist() == [20, 0, 80]
    assigned = histograms(levels={"assigned": {"high": 0.5, "low": 0.5}}, expected={"users": 10})
    assert assigned.expected_sizes().tolist() == [5, 0, 5]
    assert histograms(expected={"users": 10}).expected_sizes().sum() == 10


def test_another_total_can_be_tried() -> None:
    assert planned(total=Fraction(1, 7)).worst_total("user") == Fraction(1, 7)


def test_assumed_frequencies_reach_the_plan() -> None:
    attributes = [{"name": "sex", "values": ["Female", "Male"], "assumed": ["1/3", "2/3"]}]
    assert histograms(attributes=attributes).attributes[0].frequencies == pytest.approx([1 / 3, 2 / 3])
