"""Means and quantiles as a question, without any pipeline: from people in memory to tables and gates."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from pldp.channels.numeric.domain import CODES
from pldp.channels.randomness import Keystream
from pldp.questions.gate import FAMILY, TRUTH_ALPHA
from pldp.questions.numbers.plan import ClassPlan, MechanismPlan
from pldp.questions.numbers.question import Numbers
from pldp.questions.question import ANSWER, Evidence
from pldp.questions.rows import height
from tests.pldp.questions.memory import (
    Memory,
    check_declared,
    failed,
    of_choice,
    parts_of,
    reader,
    released,
    repeats,
    where,
)
from tests.pldp.specs import numbers_of, planned
from tests.pldp.world import z_bound

AGE = {"name": "age", "kind": "number", "bounds": [0, 100], "missing": 40}
PAY = {"name": "pay", "kind": "number", "bounds": [0, 10_000], "quantiles": [0.25, 0.5]}
SIZE = {"name": "size", "kind": "number", "bounds": [-1, 1], "mechanism": "duchi"}
SIGNS = [{**AGE, "mechanism": "duchi"}, {**PAY, "quantiles": [], "mechanism": "duchi"}, SIZE]
"""Reports of one bit: those of any budget look alike, so only estimates can tell a wrong one."""
PERSONAL = {"tau": 1.5, "importance": {"age": "a", "pay": "b", "size": "c"}}


def question(**numbers: Any) -> Numbers:
    """At a budget where several questions are sampled."""
    attributes = numbers.pop("attributes", [AGE, PAY, SIZE])
    sections = {name: numbers.pop(name) for name in ("combination", "levels") if name in numbers}
    budget = {"total": numbers.pop("total", 12)}
    return numbers_of(planned(attributes=attributes, budget=budget, numbers=numbers, **sections))


@pytest.mark.parametrize("total", [100, 1000])
def test_a_plan_that_leaves_no_noise_is_shown(total: int) -> None:
    """Its noises by number of questions divide by nothing."""
    plan = question(total=total, attributes=[AGE], levels={"choices": {"one": 1}})
    shown = plan.predictions(SimpleNamespace(source=SimpleNamespace(reports=None))).tables["sampling"]
    assert shown["why"] == ["optimal; noise by number, relative: 1: 1.00"]


def vault(n_users: int, seed: int = 1) -> dict[str, NDArray[Any]]:
    """Codes of three attributes, skewed; weights and levels that do not depend on them."""
    rng = np.random.default_rng(seed)
    values = (rng.normal(30, 10, n_users), rng.lognormal(7, 0.7, n_users), np.full(n_users, 0.25))
    bounds = [one.bounds for one in question().questions[:3]]
    return {
        "level_0": rng.choice(3, n_users, p=[0.5, 0.3, 0.2]).astype(np.uint8),
        **{f"number_{i}": bounds[i].encode(column) for i, column in enumerate(values)},
        **{f"weight_{i}": rng.integers(0, 2, n_users).astype(np.float32) for i in range(3)},
    }


def louder(plan: Numbers, factor: Fraction) -> Numbers:
    """The same mechanisms at budgets of another size, as a client with a wrong ε would have them."""

    def mechanism_at(used: MechanismPlan, budget: Fraction) -> MechanismPlan:
        realised: Any = type(used.realised)
        made = realised.for_budget(budget * factor)
        return MechanismPlan(
            mechanism=used.mechanism, parameters={name: getattr(made, name) for name in used.parameters}
        )

    def class_at(one: ClassPlan) -> ClassPlan:
        return one.model_copy(update={"mechanisms": tuple(mechanism_at(m, one.budget) for m in one.mechanisms)})

    levels = tuple(
        level.model_copy(update={"classes": tuple(class_at(one) for one in level.classes)}) for level in plan.levels
    )
    return plan.model_copy(update={"levels": levels})


def test_sheets_are_one_per_level() -> None:
    plan = question(**PERSONAL)
    assert [sheet.path for sheet in plan.sheets()] == [f"numbers/level={level}" for level in ("high", "mid", "low")]
    assert [sheet.code for sheet in plan.sheets()] == [0, 1, 2]
    assert plan.sheets()[0].needed == (
        "level_0", "number_0", "number_1", "number_2", "weight_0", "weight_1", "weight_2",
    )  # fmt: skip
    assert question().vault_fields == ("number_0", "number_1", "number_2"), "nobody says what matters"
    assert plan.methods == (ANSWER,)
    rows = vault(200)
    memory = Memory(plan).draw([rows], 1)
    for code, sheet in enumerate(plan.sheets()):
        (file,) = memory.columns(sheet)
        types = {name: f"{column.dtype.kind}{column.dtype.itemsize}" for name, column in file.items()}
        assert types == plan.report_types(sheet)
        assert len(file["report"]) == plan.levels[code].sampled * int((rows["level_0"] == code).sum())
        assert plan.invalid(sheet, file).size == 0
        assert 0 <= plan.collision(sheet) <= 1


@pytest.mark.parametrize("numbers", [{}, PERSONAL, {**PERSONAL, "weights": True}, {"tau": 2, "importance": ["pay"]}])
@pytest.mark.parametrize("edges", [(100,), (0, 1, 250)])
def test_any_parts_add_up_to_the_whole(numbers: dict[str, Any], edges: tuple[int, ...]) -> None:
    """The same reports in one file or in several, in any order, an empty one among them."""
    plan = question(**numbers)
    memory = Memory(plan).draw([vault(600)], 5)
    whole = memory.tallies()
    for sheet in plan.sheets():
        (file,) = memory.columns(sheet)
        n, counted = len(file["report"]), whole[sheet.path]
        bounds = [0, *(min(edge, n) for edge in edges), n]
        parts = [
            plan.tally(sheet, {name: column[start:end] for name, column in file.items()})
            for start, end in pairwise(bounds)
        ]
        for order in (parts, parts[::-1]):
            total = order[0]
            for part in order[1:]:
                total = total + part
            assert (total.n_reports, total.units) == (counted.n_reports, counted.units) == (n, total.units)
            assert total.means == counted.means
            assert all(np.array_equal(total.buckets[group], counted.buckets[group]) for group in counted.buckets)


def test_reports_in_any_order_count_the_same() -> None:
    """A file that clients sent is in no order; what it adds up to does not depend on one."""
    plan = question()
    memory = Memory(plan).draw([vault(400)], 2)
    sheet = plan.sheets()[2]
    (file,) = memory.columns(sheet)
    mixed = np.random.default_rng(3).permutation(len(file["report"]))
    again = plan.tally(sheet, {name: column[mixed] for name, column in file.items()})
    assert again.means == plan.tally(sheet, file).means


def test_a_resumed_release_ends_as_the_whole_one(seed: int) -> None:
    plan, parts = question(**PERSONAL), parts_of(vault(900), 300, 301)
    one, other = Memory(plan).draw(parts, seed), Memory(plan)
    for sheet in reversed(plan.sheets()):
        for number in (2, 0, 1):
            stream = Keystream.seeded(seed, *sheet.labels, number)
            other.files[sheet.path, number] = plan.draw(sheet, of_choice(parts[number], sheet), stream, None)
    first, second = plan.tables(one.result()), plan.tables(other.result())
    for name, rows in first.items():
        assert all(list(rows[column]) == list(second[name][column]) for column in rows), name


def test_means_are_unbiased_through_all_stages_and_a_wrong_epsilon_is_caught(seed: int) -> None:
    """40 evaluations of three means: the mean z has an error of 1/√40; α = 1e-6, Bonferroni over the means.

    Estimated by level (`reports`), whose errors hold with the same people at the same levels; the twin draws with half
    the budgets that the reports are read with, so that means shrink towards the middle of their bounds.
    """
    runs, rows = 40, vault(3000)
    plan = question(attributes=SIGNS, estimator="reports")

    def worst(drawn_by: Numbers) -> float:
        zs = []
        for run in range(runs):
            result = Memory(plan).draw([rows], 1000 * seed + run, drawn_by).result()
            truth = plan.truth(reader([rows]), result).means
            zs.append([(one.mean.mean - truth[one.attribute]) / one.mean.standard_error for one in result.means])
        return float(np.abs(np.mean(zs, axis=0)).max() * np.sqrt(runs))

    assert worst(plan) < z_bound(3)
    assert worst(louder(plan, Fraction(1, 2))) > z_bound(3)


def test_the_gate_against_the_truth_catches_a_wrong_epsilon(seed: int) -> None:
    plan, rows = question(attributes=SIGNS), vault(20_000)
    good = released(plan, [rows], seed)
    gates = {gate.name: gate for gate in plan.gates(good)}
    assert gates["means_unbiased"].false_alarm == TRUTH_ALPHA
    # It refuses what is correct once in a hundred: look at α = 1e-6 instead of its own bound.
    assert min(gates["means_unbiased"].rows["tail"]) > 1e-6 / 3
    assert "means_unbiased" in failed(plan, released(plan, [rows], seed, drawn_by=louder(plan, Fraction(1, 2))))


def test_where_choices_depend_on_values_the_answer_falls_back(seed: int) -> None:
    rows = vault(20_000)
    rich = rows["number_0"] > np.median(rows["number_0"])
    rows["level_0"] = np.where(rich, 0, 2).astype(np.uint8)
    plan = question()
    good = released(plan, [rows], seed)
    assert where(good.tables["means"], "method", attribute="age") == ["reports"]
    assert "numbers_agree" not in failed(plan, good)
    strict = question(combination={"disagreement": "refuse"})
    assert "numbers_agree" in failed(strict, released(strict, [rows], seed))


def test_rows_are_those_of_the_declared_tables(seed: int) -> None:
    plan, rows = question(), vault(4000)
    good = released(plan, [rows], seed)
    assert good.tables.keys() == {"means", "quantiles", "bins"}
    check_declared(good.tables)
    assert good.tables["means"]["attribute"] == ["age", "pay", "size"]
    assert good.tables["means"]["lower"] == [0, 0, -1]
    assert where(good.tables["quantiles"], "probability", attribute="pay") == [0.25, 0.5]
    assert sum(good.tables["bins"]["frequency"]) == pytest.approx(1)
    alone = question(attributes=[AGE])
    none = alone.tables(Memory(alone).draw([rows], seed).result())
    assert height(none["quantiles"]) == height(none["bins"]) == 0


def test_budget_rows(seed: int) -> None:
    plan, rows = question(), vault(500)
    assert plan.budgets(None)["n_users"] == [None] * 9
    table = plan.budgets(Memory(plan).draw([rows], seed).result())
    check_declared({"budgets": {**table, "provider": [None] * 9}})
    assert where(table, "n_users", attribute="age") == np.bincount(rows["level_0"], minlength=3).tolist()
    assert all(e <= n for e, n in zip(table["exact_epsilon"], table["nominal_epsilon"], strict=True))
    assert sum(where(table, "share", level="low")) == pytest.approx(1)
    assert plan.granted == plan.worst_total == plan.budget == 12


def test_gates_pass_and_each_can_fail() -> None:
    plan, rows = question(), vault(4000)
    good = released(plan, parts_of(rows, 1500), 7)
    names = [gate.name for gate in plan.gates(good)]
    assert failed(plan, good) == set()
    assert names == [
        "personal_budgets", "numbers_agree", "numbers_usable", "numbers_complete", "numbers_counted", "means_unbiased",
    ]  # fmt: skip
    assert [gate.name for gate in plan.gates(replace(good, truth=None))] == names[:-1]
    assert sum(gate.false_alarm for gate in plan.gates(replace(good, truth=None))) <= FAMILY
    result, tables = good.result, good.tables
    dealt = replace(result, counts=(replace(result.counts[0], units=result.counts[0].units + 1), *result.counts[1:]))
    apart = replace(result, means=(replace(result.means[0], agreed=False), *result.means[1:]))

    def published(name: str, **columns: list[float]) -> Evidence:
        return replace(good, tables={**tables, name: {**tables[name], **columns}})

    def shortened(name: str) -> Evidence:
        return replace(good, tables={**tables, name: {key: list(column)[1:] for key, column in tables[name].items()}})

    far = replace(good.truth, means={**good.truth.means, "pay": 9000.0})
    broken = {
        "personal_budgets": replace(good, result=dealt),
        "numbers_agree": replace(good, result=apart),
        "numbers_usable": published("means", standard_error=[0.0] * 3),
        "numbers_complete": shortened("quantiles"),
        "numbers_counted": replace(good, n_users=4001),
        "means_unbiased": replace(good, truth=far),
    }
    for name, evidence in broken.items():
        assert failed(plan, evidence) == {name}
    assert failed(plan, published("quantiles", ci_high=[float("inf")] * 2)) == {"numbers_usable"}
    assert failed(plan, shortened("means")) == {"numbers_complete"}
    # A class whose budget is not what its units say: reports at it would not sum to the level's budget.
    level = plan.levels[0]
    dear = level.classes[0].model_copy(update={"budget": level.classes[0].budget * 2})
    dearer = level.model_copy(update={"classes": (dear, *level.classes[1:])})
    assert failed(plan.model_copy(update={"levels": (dearer, *plan.levels[1:])}), good) >= {"personal_budgets"}


@pytest.mark.parametrize(("column", "value"), [("question", 9), ("class", 200), ("report", 2**32 - 1)])
def test_reports_that_no_channel_makes_are_named_and_refused(column: str, value: int) -> None:
    plan = question(attributes=[SIZE, {**AGE, "mechanism": "duchi"}])
    memory = Memory(plan).draw([vault(60)], 1)
    sheet = plan.sheets()[0]
    (file,) = memory.columns(sheet)
    spoilt = {**file, column: file[column].copy()}
    spoilt[column][3] = value
    assert plan.invalid(sheet, spoilt).tolist() == [3]
    with pytest.raises(ValueError, match=r"name the plan's questions and classes|none that duchi can make"):
        plan.tally(sheet, spoilt)


def test_how_many_people_stand_behind_rows() -> None:
    plan = question(total=15)
    sampled = [level.sampled for level in plan.levels]
    assert len(set(sampled)) > 1, "levels answer different numbers of questions"
    rows = {sheet.path: 10 * k for sheet, k in zip(plan.sheets(), sampled, strict=True)}
    assert plan.people(rows) == 30


def test_the_truth_is_exact_in_any_partitions() -> None:
    plan, rows = question(), vault(999)
    whole, parts = (plan.truth(reader(people), None) for people in ([rows], parts_of(rows, 10, 500)))  # type: ignore[arg-type]
    assert whole == parts
    codes = np.sort(rows["number_1"])
    assert whole.quantiles["pay", 0.5] == pytest.approx(plan.questions[1].bounds.decode(2 * codes[499] / CODES - 1))
    mean = rows["number_0"].astype(float).mean()
    assert whole.means["age"] == pytest.approx(plan.questions[0].bounds.decode(2 * mean / CODES - 1))


def test_an_evaluation_stands_beside_the_truth(seed: int) -> None:
    plan, rows = question(), vault(1500)
    good = released(plan, parts_of(rows, 700), seed)
    tables = plan.study(reader([rows]), good.truth, good.result, repeats(5, seed))
    assert tables.keys() == {"numbers", "means", "coverage"}
    assert tables["numbers"]["probability"] == [None, None, None, 0.25, 0.5]
    assert tables["numbers"]["truth"][:3] == [good.truth.means[name] for name in ("age", "pay", "size")]
    assert tables["numbers"]["estimate"][:3] == list(good.tables["means"]["mean"])
    assert set(tables["means"]["repeats"]) == {5}
    classes = set(tables["coverage"]["class"])
    assert {"quantile 0.25", "quantile 0.5"} < classes <= {"quantile 0.25", "quantile 0.5", "mean", "mean near a bound"}
    assert height(plan.study(reader([rows]), good.truth, good.result, repeats(0, seed))["means"]) == 0
    assert set(tables["coverage"]["choice"]) == {"by chance"}


@pytest.mark.parametrize(("declared", "holds"), [(1, False), (1.5, True)])
def test_means_of_people_who_choose_by_their_number(declared: float, holds: bool, seed: int) -> None:
    """Large numbers at weak levels, as far as Γ = 1.5 allows: means that assume independence lose the truth."""
    plan, rows = question(levels={"column": "level", "dependence": declared}, attributes=[AGE]), vault(20_000)
    good = released(plan, [rows], seed)
    tables = plan.study(reader([rows]), good.truth, good.result, repeats(30, seed, dependence=1.5))
    answer = good.tables["means"]["method"][0]
    rates = {
        choice: where(tables["coverage"], "coverage", method=answer, choice=choice)
        for choice in ("by chance", "weaker", "stricter")
    }
    assert rates["by chance"][0] >= 0.7
    assert (min(*rates["weaker"], *rates["stricter"]) >= 0.7) == holds, rates
