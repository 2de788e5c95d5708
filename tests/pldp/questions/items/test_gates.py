"""The gates of item sets: each passes a correct release, and fails when what it is about is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from pldp.questions.gate import FAMILY, REHEARSED
from pldp.questions.items.question import Items
from pldp.questions.items.resolve import make_release
from pldp.questions.plan import Plan
from pldp.questions.question import Evidence
from tests.pldp.questions.items.memory import (
    NAMES,
    failed,
    make_people,
    make_question,
    make_spec,
    make_table,
    passes,
    released,
)

N_USERS = 2000
SENSITIVE = {"sensitivity": {"of": 2, "levels": dict.fromkeys(NAMES, 1)}}
APRR = {"protocol": "aprr", "users": None, "levels": None, "budget": {"total": 3}}


@pytest.fixture(scope="module")
def question() -> Items:
    return make_question(**SENSITIVE)


@pytest.fixture(scope="module")
def evidence(question: Items) -> Evidence:
    return released(question, make_people(make_table(N_USERS)))


def _moved(evidence: Evidence, change: Callable[[np.ndarray], np.ndarray]) -> Evidence:
    support = evidence.result.supports[0]
    moved = replace(support, counts=change(support.counts))
    return replace(evidence, result=replace(evidence.result, supports=(moved,)))


def _table(evidence: Evidence, name: str, **columns: Any) -> Evidence:
    return replace(evidence, tables={**evidence.tables, name: {**evidence.tables[name], **columns}})


def test_every_gate_can_fail(question: Items, evidence: Evidence) -> None:
    assert failed(question, evidence) == set()
    tight = tuple(level.model_copy(update={"bound": level.bound / 2}) for level in question.levels)
    small = tuple(level.model_copy(update={"budget": level.budget / 8}) for level in question.levels)
    one_level = evidence.result.supports[0].counts.copy()
    one_level[0] = evidence.result.supports[0].n[0] * 0.8
    itemsets, rules = evidence.tables["itemsets"], evidence.tables["rules"]
    truth = replace(evidence.truth, supports=dict.fromkeys(evidence.truth.supports, 0.9))
    unsearched = replace(evidence.result, mined=replace(evidence.result.mined, searched=0))
    broken: dict[str, tuple[Items, Evidence]] = {
        "row_epsilon": (question.model_copy(update={"levels": tight}), replace(evidence, truth=None)),
        "item_epsilon": (question.model_copy(update={"levels": small}), evidence),
        "supports_plausible": (question, _moved(evidence, lambda counts: counts * 0)),
        "levels_agree": (question, _moved(evidence, lambda counts: one_level)),
        "errors_usable": (question, _table(evidence, "itemsets", standard_error=[0.0] * len(itemsets["items"]))),
        "rules_usable": (question, _table(evidence, "rules", confidence=[np.nan] * len(rules["lift"]))),
        "items_complete": (
            question,
            replace(evidence, tables={"itemsets": {k: v[1:] for k, v in itemsets.items()}, "rules": rules}),
        ),
        "searched": (question, replace(evidence, result=unsearched)),
        "everyone_counted": (question, replace(evidence, n_users=N_USERS + 1)),
        "supports_true": (question, replace(evidence, truth=truth)),
        "rules_true": (question, replace(evidence, truth=truth)),
    }
    for name, (asked, wrong) in broken.items():
        (gate,) = (gate for gate in asked.gates(wrong) if gate.name == name)
        assert not passes(gate), name
    assert set(broken) == {gate.name for gate in question.gates(evidence)}


def test_the_gates_of_the_release_around_it(question: Items) -> None:
    spec = make_spec(**SENSITIVE, gates={"minimum_users": N_USERS})
    plan = make_release(spec, question)
    files = [(sheet.path, partition) for sheet, partition in plan.files(2)]
    assert len(files) == 4
    gates = {gate.name: gate for gate in plan.gates(N_USERS, 2, files)}
    assert set(gates) == {"budgets_sum", "spend_within_total", "exact_epsilon", "partitions_once", "enough_users"}
    assert all(passes(gate) for gate in gates.values())
    again = {gate.name: gate for gate in plan.gates(N_USERS - 1, 2, [*files, files[0]])}
    assert {name for name, gate in again.items() if not passes(gate)} == {"partitions_once", "enough_users"}
    assert Plan.model_validate_json(plan.model_dump_json()) == plan


def test_false_alarms_are_shared(question: Items, evidence: Evidence) -> None:
    def alarms(asked: Items) -> float:
        return sum(gate.false_alarm for gate in asked.gates(replace(evidence, truth=None)))

    assert alarms(question) == pytest.approx(FAMILY - REHEARSED)
    assert alarms(question.model_copy(update={"family": FAMILY / 3})) == pytest.approx(FAMILY / 3)


def test_a_bound_that_is_not_kept_is_refused_in_a_release_and_open_in_an_evaluation() -> None:
    """aprr with open items: an infinite ε has no errors to look at and no ratio to compare."""
    levels = {item: n % 3 for n, item in enumerate(NAMES)}
    question = make_question(**APRR, sensitivity={"of": 3, "levels": levels})
    assert not question.keeps_bounds
    assert question.spends() == []
    evidence = released(question, make_people(make_table(N_USERS), levels=1))
    names = {gate.name for gate in question.gates(evidence)}
    assert names.isdisjoint({"row_epsilon", "errors_usable", "rules_usable"})
    assert failed(question, evidence) == set()
    with pytest.raises(ValueError, match="an open item has no finite ε"):
        question.gates(replace(evidence, truth=None))


@pytest.mark.parametrize(
    ("lowest", "budget", "sentence"),
    [
        (0, {}, "the exact ε of a row at level all is infinite: an open item is not perturbed, above its bound 3"),
        (1, {}, "the exact ε of a row at level all is 5.6932, above its bound 3 (protocol aprr was given 3)"),
        (1, {"bound": 6}, None),
    ],
)
def test_why_a_release_is_refused(lowest: int, budget: dict[str, Any], sentence: str | None) -> None:
    levels = {item: max(lowest, n % 3) for n, item in enumerate(NAMES)}
    sections = {**APRR, "budget": {"total": 3, **budget}, "sensitivity": {"of": 3, "levels": levels}}
    question = make_question(**sections)
    assert question.keeps_bounds == (sentence is None)
    if sentence is None:
        assert question.refusal is None
        assert len(question.spends()) == 1
        return
    assert question.refusal is not None
    assert question.refusal.startswith(sentence)
    assert "Use protocol: bounded, raise budget.bound, or use `pldp evaluate`" in question.refusal
