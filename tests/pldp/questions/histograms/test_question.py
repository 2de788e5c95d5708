"""Histograms as a question, without any pipeline: from people in memory to tables and gates."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from pldp.channels.randomness import Keystream
from pldp.channels.words import word_types
from pldp.questions.gate import FAMILY, TRUTH_ALPHA
from pldp.questions.histograms.plan import LevelPlan
from pldp.questions.histograms.question import Histograms
from pldp.questions.question import Evidence
from pldp.questions.rows import height
from tests.pldp.questions.histograms.people import JOBS, hidden, partial_to_value, question, vault
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
from tests.pldp.world import z_bound

SEVERAL: dict[str, Any] = {"combination": {"method": "oc+", "also": ["sum", "oc", "em"]}}


def louder(plan: Histograms, factor: Fraction) -> Histograms:
    """The same protocols at budgets of another size, as a client with a wrong ε would have them."""

    def level_at(level: LevelPlan, size: int) -> LevelPlan:
        protocol = type(level.protocol).for_budget(size, level.budget * factor)
        parameters = {name: getattr(protocol, name) for name in level.parameters}
        # Made anew: a copy would keep the protocol that the old parameters made.
        return LevelPlan.model_validate({**level.model_dump(), "parameters": parameters})

    attributes = tuple(
        a.model_copy(update={"levels": tuple(level_at(level, len(a.values)) for level in a.levels)})
        for a in plan.attributes
    )
    return plan.model_copy(update={"attributes": attributes})


@pytest.mark.parametrize("make", [question, hidden], ids=["public", "hidden"])
def test_sheets_name_what_they_read_and_what_they_hold(make: Any) -> None:
    plan = make()
    sheets = plan.sheets()
    assert len({sheet.path for sheet in sheets}) == len(sheets) == (9 if plan.hidden is None else 3)
    assert len({sheet.labels for sheet in sheets}) == len(sheets), "no two files have one stream"
    rows = vault(40)
    for sheet in sheets:
        assert set(sheet.needed) <= set(rows)
        (file,) = Memory(plan).draw([rows], 1).columns(sheet)
        types = plan.report_types(sheet)
        drawn = {name: f"{column.dtype.kind}{column.dtype.itemsize}" for name, column in file.items()}
        assert drawn == {name: kind.split()[0] for name, kind in types.items()}
        assert file.keys() == types.keys()
        assert plan.invalid(sheet, file).size == 0
        assert 0 <= plan.collision(sheet) <= 1
        if plan.hidden is None:
            assert sheet.choice in plan.levels
            assert len(next(iter(file.values()))) == int((rows["level_0"] == sheet.code).sum())
        else:
            assert sheet.choice is None
            assert sheet.beside is not None
            assert sheet.beside.path == "levels"
            assert len(file["level"]) == 40


def test_attributes_may_have_levels_of_their_own() -> None:
    columns = {"job": "a", "sex": "b", "age": "c"}
    plan = question(levels={"dependence": 1, "column": columns})
    assert [plan.choice_field(i) for i in range(3)] == ["level_0", "level_1", "level_2"]
    rows = {**vault(500), "level_1": np.zeros(500, dtype=np.uint8), "level_2": np.full(500, 2, dtype=np.uint8)}
    result = Memory(plan).draw([rows], 1).result()
    assert [support.n.tolist() for support in result.supports[1:]] == [[500, 0, 0], [0, 0, 500]]
    told = hidden(levels={**hidden_levels(), "column": columns})
    assert [sheet.beside.path for sheet in told.sheets() if sheet.beside is not None] == [
        "levels=job", "levels=sex", "levels=age",
    ]  # fmt: skip
    shares = told.tables(Memory(told).draw([rows], 1).result())["level_shares"]
    assert shares["attribute"] == ["job"] * 3 + ["sex"] * 3 + ["age"] * 3


def hidden_levels() -> dict[str, Any]:
    return {"dependence": 1, "visibility": "hidden", "epsilon_p": 1, "max_leak": 60}


def test_one_report_about_the_level_stands_beside_every_attribute() -> None:
    plan, rows = hidden(), vault(300)
    memory = Memory(plan).draw(parts_of(rows, 120), 3)
    for number in (0, 1):
        job, *others = (memory.files[sheet.path, number]["level"] for sheet in plan.sheets())
        assert all(np.array_equal(job, other) for other in others)
    anew = memory.files[plan.sheets()[1].path, 0]
    memory.files[plan.sheets()[1].path, 0] = {**anew, "level": (anew["level"] + 1).astype(np.uint8) % 3}
    result = memory.result()
    assert "level_told_once" in failed(plan, Evidence(300, result, plan.tables(result)))


@pytest.mark.parametrize(
    ("make", "sections"),
    [(question, SEVERAL), (question, {"mechanism": "brr"}), (question, {"mechanism": "olh"}), (hidden, {})],
    ids=["several methods", "brr", "olh", "hidden"],
)
@pytest.mark.parametrize("edges", [(200,), (1, 2, 300), (0, 400)])
def test_any_parts_add_up_to_the_whole(make: Any, sections: dict[str, Any], edges: tuple[int, ...]) -> None:
    """The same reports in one file or in several, an empty one among them: the same tallies, in any order."""
    plan = make(**sections)
    rows = vault(400)
    memory = Memory(plan).draw([rows], 5)
    whole = memory.tallies()
    for sheet in plan.sheets():
        (file,) = memory.columns(sheet)
        n = len(next(iter(file.values())))
        bounds = [0, *(min(edge, n) for edge in edges), n]
        parts = [
            plan.tally(sheet, {name: column[start:end] for name, column in file.items()})
            for start, end in pairwise(bounds)
        ]
        for order in (parts, parts[::-1]):
            total = order[0]
            for part in order[1:]:
                total = total + part
            assert total.n_reports == whole[sheet.path].n_reports == n
            assert np.array_equal(total.support, whole[sheet.path].support)
            assert (total.table is None) == (whole[sheet.path].table is None)
            if total.table is not None:
                assert np.array_equal(total.table, whole[sheet.path].table)


def test_a_resumed_release_ends_as_the_whole_one(seed: int) -> None:
    """Files drawn in another order, as after a crash, are the same files: streams go by sheet and partition."""
    plan, parts = question(**SEVERAL), parts_of(vault(600), 200, 350)
    one, other = Memory(plan).draw(parts, seed), Memory(plan)
    for sheet in reversed(plan.sheets()):
        for number in (2, 0, 1):
            stream = Keystream.seeded(seed, *sheet.labels, number)
            other.files[sheet.path, number] = plan.draw(sheet, of_choice(parts[number], sheet), stream, None)
    first, second = plan.tables(one.result()), plan.tables(other.result())
    for name, rows in first.items():
        assert all(list(rows[column]) == list(second[name][column]) for column in rows), name


def test_methods_stand_side_by_side_and_the_answer_comes_first(seed: int) -> None:
    plan = question(**SEVERAL)
    assert plan.methods == ("oc+", "sum", "oc", "em")
    result = Memory(plan).draw([vault(3000)], seed).result()
    tables = plan.tables(result)
    check_declared(tables)
    estimates, answers = tables["estimates"], tables["histograms"]
    assert list(dict.fromkeys(where(estimates, "method", attribute="job"))) == list(plan.methods)
    assert where(estimates, "method", attribute="job", is_answer=True) == ["oc+"] * 5
    for attribute in ("job", "sex", "age"):
        for column in ("frequency", "standard_error", "ci_low", "ci_high", "value", "n_reports"):
            assert where(estimates, column, attribute=attribute, is_answer=True) == where(
                answers, column, attribute=attribute
            )
    by_method = [where(estimates, "frequency", attribute="job", method=method) for method in plan.methods]
    assert len({tuple(one) for one in by_method}) == 4, "each by its own rule"
    # All estimate the same shares: pairwise within both errors, 3 others × 11 cells.
    errors = np.array([where(estimates, "standard_error", attribute="job", method=m) for m in plan.methods])
    apart = np.abs(np.array(by_method[1:]) - by_method[0]) / np.hypot(errors[1:], errors[0])
    assert apart.max() < z_bound(33)


def test_an_attribute_may_name_methods_of_its_own(seed: int) -> None:
    attributes = [
        {"name": "job", "values": list(JOBS), "methods": ["em", "sum"]},
        {"name": "sex", "values": ["f", "m"]},
    ]
    plan = question(attributes=attributes, combination={"method": "oc", "also": ["oc+"]})
    assert plan.methods == ("oc", "em", "sum", "oc+")
    rows = {name: column for name, column in vault(3000).items() if name != "value_2"}
    good = released(plan, [rows], seed)
    estimates = good.tables["estimates"]
    assert list(dict.fromkeys(where(estimates, "method", attribute="job"))) == ["em", "sum", "oc+"]
    assert list(dict.fromkeys(where(estimates, "method", attribute="sex"))) == ["oc", "oc+", "sum"]
    assert set(where(good.tables["histograms"], "method", attribute="job")) == {"em"}
    assert set(where(good.tables["histograms"], "method", attribute="sex")) == {"oc"}
    assert set(good.result.estimates["em"]) == {"job"}, "nobody computes what nobody named"
    assert failed(plan, good) == set()
    assert {"likelihood_climbed", "methods_usable"} <= {gate.name for gate in plan.gates(good)}


def test_where_levels_disagree_only_the_answer_falls_back(seed: int) -> None:
    """`sum` needs no agreement; what stands beside it is by its name, and a method that both come to is told once."""
    plan, rows = question(**SEVERAL), partial_to_value(vault(6000))
    good = released(plan, [rows], seed)
    assert not good.result.histograms[0].agreed
    estimates = good.tables["estimates"]
    check_declared(good.tables)
    assert list(dict.fromkeys(where(estimates, "method", attribute="job"))) == ["sum", "oc", "em"]
    assert where(estimates, "method", attribute="job", is_answer=True) == ["sum"] * 5
    assert set(where(good.tables["histograms"], "method", attribute="job")) == {"sum"}
    assert failed(plan, good) == set()
    strict = question(combination={"disagreement": "refuse"})
    assert failed(strict, released(strict, [rows], seed)) >= {"levels_agree"}


def test_a_method_with_a_reference_takes_it_or_does_without(seed: int) -> None:
    sections = {"combination": {"method": "op", "also": ["oc+"], "reference": {"kind": "previous"}}}
    plan, rows = question(**sections), vault(3000)
    first = released(plan, [rows], seed)
    check_declared(first.tables)
    assert set(first.tables["histograms"]["method"]) == {"guarded"}, "the first release of its name has none before it"
    shares = plan.true_shares(reader([rows]))
    assert set(shares) == set(plan.shares())
    again = released(plan, [rows], seed, reference=shares)
    assert set(again.tables["histograms"]["method"]) == {"op"}
    assert list(dict.fromkeys(again.tables["estimates"]["method"])) == ["op", "oc+", "sum"]


def test_estimates_are_unbiased_through_all_stages_and_a_wrong_epsilon_is_caught(seed: int) -> None:
    """40 evaluations of 11 cells each: the mean z of a cell has an error of 1/√40; α = 1e-6, Bonferroni over cells.

    The twin draws with 1.5 times the budgets that the reports are read with.
    """
    runs, rows = 40, vault(2000)
    plan = question(mechanism="brr", postprocess="none", combination={"method": "sum"})

    def worst(drawn_by: Histograms) -> float:
        zs = []
        for run in range(runs):
            result = Memory(plan).draw([rows], 1000 * seed + run, drawn_by).result()
            truth = plan.truth(reader([rows]), result).shares
            zs.append(
                np.concatenate(
                    [
                        (histogram.unbiased.frequency - truth[a.name]) / histogram.unbiased.standard_error
                        for a, histogram in zip(plan.attributes, result.histograms, strict=True)
                    ]
                )
            )
        return float(np.abs(np.mean(zs, axis=0)).max() * np.sqrt(runs))

    assert worst(plan) < z_bound(11)
    assert worst(louder(plan, Fraction(3, 2))) > z_bound(11)


@pytest.mark.parametrize("make", [question, hidden], ids=["public", "hidden"])
def test_the_gate_against_the_truth_catches_a_wrong_epsilon(make: Any, seed: int) -> None:
    plan, rows = make(mechanism="krr"), vault(20_000)
    good = released(plan, [rows], seed)
    gates = {gate.name: gate for gate in plan.gates(good)}
    assert gates["unbiased"].false_alarm == TRUTH_ALPHA
    # It refuses what is correct once in a hundred: look at α = 1e-6 instead of its own bound.
    assert min(gates["unbiased"].rows["tail"]) > 1e-6 / 3
    wrong = released(plan, [rows], seed, drawn_by=louder(plan, Fraction(1, 2)))
    assert "unbiased" in failed(plan, wrong)


def test_hidden_levels_publish_nothing_by_level(seed: int) -> None:
    plan, rows = hidden(), vault(8000)
    good = released(plan, [rows], seed)
    check_declared(good.tables)
    assert good.tables.keys() == {"histograms", "estimates", "level_shares", "quantiles", "bins"}
    shares = good.tables["level_shares"]
    assert shares["attribute"] == [None] * 3
    truth = np.bincount(rows["level_0"], minlength=3) / 8000
    assert np.abs((np.array(shares["share"]) - truth) / np.array(shares["standard_error"])).max() < z_bound(3)
    assert plan.budgets(good.result)["n_users"] == [None] * 9, "how many chose a level is not public"
    assert set(plan.budgets(None)["level_leak"]) != {None}
    assert failed(plan, good) - {"unbiased"} == set()
    names = [gate.name for gate in plan.gates(good)]
    assert names == [
        "level_leak", "level_told_once", "estimates_possible", "errors_usable",
        "quantiles_usable", "domains_complete", "everyone_counted", "unbiased",
    ]  # fmt: skip
    assert plan.hidden is not None
    tight = plan.model_copy(update={"hidden": plan.hidden.model_copy(update={"max_leak": Fraction(1, 100)})})
    assert failed(tight, replace(good, truth=None)) == {"level_leak"}
    several = hidden(combination={"method": "auem", "also": ["em"]})
    both = Memory(several).draw([rows], seed).result()
    assert list(dict.fromkeys(several.tables(both)["estimates"]["method"])) == ["auem", "em"]


def test_gates_pass_and_each_can_fail() -> None:
    plan, rows = question(mechanism="brr", **SEVERAL), vault(4000)
    good = released(plan, [rows], 7)
    names = [gate.name for gate in plan.gates(good)]
    assert failed(plan, good) == set()
    assert names == [
        "level_sums", "levels_agree", "estimates_possible", "likelihood_climbed", "errors_usable", "methods_usable",
        "quantiles_usable", "domains_complete", "everyone_counted", "unbiased",
    ]  # fmt: skip
    assert [gate.name for gate in plan.gates(replace(good, truth=None))] == names[:-1]
    assert sum(gate.false_alarm for gate in plan.gates(replace(good, truth=None))) <= FAMILY
    result, tables = good.result, good.tables
    answer = result.histograms[0]
    stuck = {**result.estimates, "em": {"job": replace(result.estimates["em"]["job"], converged=False)}}
    far = {**good.truth.counts, "sex": good.truth.counts["sex"][:, ::-1]}
    apart = replace(result, histograms=(replace(answer, agreed=False), *result.histograms[1:]))

    def published(name: str, **columns: list[float]) -> Evidence:
        return replace(good, tables={**tables, name: {**tables[name], **columns}})

    def shortened(name: str) -> Evidence:
        return replace(good, tables={**tables, name: {key: list(column)[1:] for key, column in tables[name].items()}})

    broken = {
        "levels_agree": replace(good, result=apart),
        "likelihood_climbed": replace(good, result=replace(result, estimates=stuck)),
        "errors_usable": published("histograms", standard_error=[0.0] * 11),
        "methods_usable": published("estimates", ci_low=[float("nan")] * 44),
        "quantiles_usable": shortened("quantiles"),
        "domains_complete": shortened("histograms"),
        "everyone_counted": replace(good, n_users=3999),
        "unbiased": replace(good, truth=type(good.truth)(far)),
    }
    for name, evidence in broken.items():
        assert failed(plan, evidence) == {name}
    support = result.supports[0]
    flooded = support.counts.copy()
    flooded[0] = support.n[0]
    impossible = replace(result, supports=(replace(support, counts=flooded), *result.supports[1:]))
    assert failed(plan, replace(good, result=impossible)) >= {"level_sums"}


@pytest.mark.parametrize("mechanism", ["krr", "brr", "oue", "subset", "olh"])
def test_reports_that_no_channel_makes_are_named(mechanism: str) -> None:
    plan, rows = question(mechanism=mechanism), vault(60)
    memory = Memory(plan).draw([rows], 1)
    sheet = plan.sheets()[0]
    (file,) = memory.columns(sheet)
    assert plan.invalid(sheet, file).tolist() == []
    name = next(iter(word_types(plan.attributes[0].protocols[0].report_bytes)))
    spoilt = {**file, name: file[name].copy()}
    spoilt[name][2] = np.iinfo(spoilt[name].dtype).max
    assert 2 in plan.invalid(sheet, spoilt).tolist()
    assert set(plan.invalid(sheet, spoilt).tolist()) == {2}


def test_how_many_people_stand_behind_rows() -> None:
    plan = question()
    rows = {sheet.path: 10 * (number + 1) for number, sheet in enumerate(plan.sheets())}
    assert plan.people(rows) == 70 + 80 + 90, "of the attribute with most: somebody is missing in the others"


def test_budget_rows(seed: int) -> None:
    plan, rows = question(), vault(500)
    nobody = plan.budgets(None)
    assert nobody["n_users"] == [None] * 9
    table = plan.budgets(Memory(plan).draw([rows], seed).result())
    check_declared({"budgets": {**table, "provider": [None] * 9}})
    assert where(table, "n_users", attribute="job") == np.bincount(rows["level_0"], minlength=3).tolist()
    assert all(e <= n for e, n in zip(table["exact_epsilon"], table["nominal_epsilon"], strict=True))
    assert sum(where(table, "nominal_epsilon", level="low")) == pytest.approx(9)
    assert plan.granted == plan.worst_total == 9
    assert all(ratio > 1 for ratio, _ in plan.spends())


def test_an_evaluation_stands_beside_the_truth(seed: int) -> None:
    plan, rows = question(**SEVERAL), vault(1500)
    good = released(plan, parts_of(rows, 700), seed)
    tables = plan.study(reader([rows]), good.truth, good.result, repeats(20, seed))
    assert tables.keys() == {"cells", "coverage", "methods", "numbers"}
    assert where(tables["cells"], "truth", attribute="job") == pytest.approx(
        np.bincount(rows["value_0"], minlength=5) / 1500
    )
    assert {"sum", "oc", "oc+"} <= set(tables["methods"]["method"])
    assert set(where(tables["methods"], "repeats", method="oc+")) == {20}
    assert tables["numbers"]["probability"] == [0.25, 0.5]
    assert height(plan.study(reader([rows]), good.truth, good.result, repeats(0, seed))["methods"]) == 0


def test_what_must_not_be_released_says_why() -> None:
    assert question().refusal is None
    wrong = hidden(combination={"method": "auem", "also": ["emoa-paper"]}, mechanism="brr")
    assert wrong.refusal is not None
    assert "emoa-paper" in wrong.refusal


def test_auto_names_the_post_processing_it_chose(seed: int) -> None:
    for plan in (question(postprocess="auto"), hidden(postprocess="auto")):
        good = released(plan, [vault(6000)], seed)
        assert set(good.tables["histograms"]["postprocess"]) <= {"norm-sub", "norm-mul"}
        plain = released(
            plan.model_copy(update={"recipe": replace(plan.recipe, postprocess="none")}), [vault(6000)], seed
        )
        for column in ("ci_low", "ci_high", "unbiased_frequency"):
            assert list(good.tables["histograms"][column]) == list(plain.tables["histograms"][column])
