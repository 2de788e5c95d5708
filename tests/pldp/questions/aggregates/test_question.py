"""The question as a whole, in memory: reports, tallies, totals, tables and gates of made-up users."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from pldp.channels.randomness import Keystream
from pldp.questions.aggregates.gates import totals_true
from pldp.questions.aggregates.losses import loss_rows
from pldp.questions.aggregates.predict import error_rows, predictions
from pldp.questions.aggregates.question import NUMBER_CELLS, Aggregates
from pldp.questions.aggregates.reports import FARTHEST
from pldp.questions.aggregates.resolve import release_plan
from pldp.questions.aggregates.statement import statement
from pldp.questions.plan import Plan
from pldp.questions.question import Columns
from pldp.questions.rows import height
from pldp.questions.shuffle import shuffle
from pldp.questions.tables import published_table
from tests.pldp.questions.aggregates.people import (
    Files,
    conclude,
    count,
    draw,
    evidence,
    failed,
    parts_of,
    reader,
    repeats,
    true_totals,
    vault,
)
from tests.pldp.questions.aggregates.world import ATTRIBUTES, SPEC, films, plan, probability, spec
from tests.pldp.world import ALPHA, z_bound

N_USERS = 40_000
EDGES = (0, 15_000, 15_000, 31_000)
"""Four partitions, one of them empty."""


def louder(factor: Fraction) -> Aggregates:
    """The same question at budgets that are wrong by a factor: the twin that tests must catch."""
    budgets = {"open": factor, "shy": {"drama": factor, "comedy": factor / 2, "war": factor / 10}}
    providers = {"shop": {"epsilon": 2 * factor}, "ads": {"epsilon": factor / 2}}
    return plan(profiles=budgets, providers=providers)


def test_sheets_are_one_per_provider() -> None:
    sheets = plan().sheets()
    assert [sheet.path for sheet in sheets] == ["provider=shop", "provider=ads"]
    assert [sheet.labels for sheet in sheets] == [("shop",), ("ads",)], "what seeded evaluations always had"
    for sheet in sheets:
        assert sheet.needed == ("profile", "a_0", "a_1", "a_2")
        assert (sheet.choice, sheet.choice_field, sheet.code) == (None, None, None)
        assert sheet.shuffled


def test_the_plan_of_a_release_is_what_its_json_says() -> None:
    whole = release_plan(spec(gates={"minimum_users": 7}), films(), "0" * 64)
    again = Plan.model_validate_json(whole.model_dump_json())
    assert again == whole
    assert isinstance(again.questions[0], Aggregates)
    assert (whole.total, whole.units, whole.phases, whole.choices(0)) == (None, ("occurrence",), 1, (None,))
    assert whole.worst_total("occurrence") == Fraction(5, 2)
    assert whole.worst_total("user") == 0, "units are never added"
    assert [(sheet.path, n) for sheet, n in whole.files(2)] == [
        ("provider=shop", 0), ("provider=shop", 1), ("provider=ads", 0), ("provider=ads", 1)
    ]  # fmt: skip
    counted = [(sheet.path, n) for sheet, n in whole.files(2)]
    assert failed(whole.gates(7, 2, counted)) == set()
    assert failed(whole.gates(6, 2, counted)) == {"enough_users"}
    assert failed(whole.gates(7, 2, counted[1:])) == {"partitions_once"}
    assert failed(whole.gates(7, 2, [*counted, counted[0]])) == {"partitions_once"}


def test_what_a_provider_gets() -> None:
    question, rows = plan(), vault(500)
    files = draw(question, [rows], 7)
    for sheet in question.sheets():
        (reports,) = files.columns(sheet)
        assert list(reports) == ["profile", *ATTRIBUTES]
        assert [str(column.dtype) for column in reports.values()] == ["uint16", "int64", "int64", "int64"]
        assert all(column.flags.c_contiguous for column in reports.values())
        assert np.array_equal(reports["profile"], rows["profile"]), "in the vault's order, until a release shuffles"
    shop, ads = (next(files.columns(sheet))["drama"] for sheet in question.sheets())
    assert (shop != ads).mean() > 0.5, "providers have noise of their own"


def test_reports_are_those_of_the_noise(seed: int) -> None:
    question, rows = plan(), vault(500)
    truth = np.stack([rows[f"a_{i}"] for i in range(3)], axis=1)
    (reports,) = draw(question, [rows], seed).columns(question.sheets()[1])
    expected = question.mechanisms["ads"].perturb(truth, rows["profile"], Keystream.seeded(seed, "ads", 0))
    assert np.array_equal(np.stack([reports[name] for name in ATTRIBUTES], axis=1), expected)


def zero_scores(question: Aggregates, rows: Columns, profiles: np.ndarray, seed: int) -> np.ndarray:
    """z of how often noise is zero, provider × profile × attribute, against the law's exact probability."""
    files, scores = draw(question, [{**rows, "profile": profiles}], seed), []
    for sheet in question.sheets():
        (reports,) = files.columns(sheet)
        for profile in range(2):
            who = rows["profile"] == profile
            for i, name in enumerate(ATTRIBUTES):
                chance = float(probability(question.mechanisms[question.provider_of(sheet)].noise(profile)[i], 0))
                zeros = (reports[name] == rows[f"a_{i}"])[who]
                scores.append((zeros.mean() - chance) / np.sqrt(chance * (1 - chance) / zeros.size))
    return np.array(scores)


def test_noise_is_that_of_the_users_profile(seed: int) -> None:
    question, rows = plan(), vault(N_USERS)
    assert np.abs(zero_scores(question, rows, rows["profile"], seed)).max() < z_bound(12)
    assert np.abs(zero_scores(question, rows, 1 - rows["profile"], seed)).max() > z_bound(12), "swapped ones are caught"


def test_totals_are_unbiased_through_all_stages(seed: int) -> None:
    question, rows = plan(), vault(N_USERS)
    partitions = parts_of(rows, EDGES)
    files = draw(question, partitions, seed)
    result = conclude(question, files)
    table = question.tables(result)["aggregates"]
    truth = question.truth(reader(partitions), result)
    assert truth.tolist() == true_totals(rows)
    z = (np.array(table["total"]) - np.tile(truth, 2)) / np.array(table["standard_error"])
    assert np.abs(z).max() < z_bound(6)
    assert np.sum(table["share"][:3]) == pytest.approx(1)
    assert list(zip(table["provider"], table["attribute"], strict=True)) == [
        (provider, attribute) for provider in ("shop", "ads") for attribute in ATTRIBUTES
    ]
    assert failed(question.gates(evidence(question, result, N_USERS))) == set()


def error_scores(drawing: Aggregates, assuming: Aggregates, seed: int) -> np.ndarray:
    """z of the measured mean error of a report against the predicted one, provider × attribute."""
    rows = vault(N_USERS)
    partitions = parts_of(rows, EDGES)
    files = draw(drawing, partitions, seed)
    result = conclude(assuming, files)
    people = reader(partitions)
    cells = assuming.study(people, assuming.truth(people, result), result, repeats(files, seed))["aggregates"]
    ratio = np.array(cells["mean_error"]) / np.array(cells["predicted_mean_error"])
    # Var |Z| = E Z² − (E|Z|)², of a user of any profile: at least that of users whose profiles are known.
    spread = np.array(cells["predicted_mean_squared_error"]) / np.array(cells["predicted_mean_error"]) ** 2 - 1
    return (ratio - 1) / np.sqrt(spread / N_USERS)


def test_reports_lie_as_far_off_as_predicted_and_a_wrong_epsilon_is_caught(seed: int) -> None:
    question = plan()
    assert np.abs(error_scores(question, question, seed)).max() < z_bound(6)
    assert error_scores(louder(Fraction(11, 10)), question, seed).min() < -z_bound(6)


@given(st.lists(st.integers(0, 300), max_size=5), st.integers(0, 1))
def test_any_parts_add_up_to_the_whole(edges: list[int], provider: int) -> None:
    question, rows = plan(), vault(300)
    sheet = question.sheets()[provider]
    (reports,) = draw(question, [rows], 3).columns(sheet)
    whole = question.tally(sheet, reports)
    parts = Files({sheet.path: parts_of(reports, [0, *sorted(edges)])})
    tally = question.tally(sheet, {name: column[:0] for name, column in reports.items()})
    for part in parts.columns(sheet):
        tally = tally + question.tally(sheet, part)
    assert tally.n_reports == whole.n_reports == 300
    assert np.array_equal(tally.reports, whole.reports)
    assert np.array_equal(tally.users, whole.users)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("profile", 2, "a profile that the plan does not have"),
        ("war", FARTHEST + 1, "farther away than any noise"),
        ("drama", -FARTHEST - 1, "farther away than any noise"),
    ],
)
def test_reports_that_no_client_makes_are_refused(column: str, value: int, message: str) -> None:
    question = plan()
    sheet = question.sheets()[0]
    (reports,) = draw(question, [vault(5)], 1).columns(sheet)
    reports[column][3] = value
    with pytest.raises(ValueError, match=message) as refused:
        question.tally(sheet, reports)
    assert str(value) not in str(refused.value)


def test_shuffled_files_tell_the_same_and_do_not_line_up(seed: int) -> None:
    question, rows = plan(), vault(500)
    files = draw(question, [rows], seed)
    mixed = Files(
        {path: [shuffle(reports[0], Keystream.seeded(seed, path))] for path, reports in files.by_sheet.items()}
    )
    for path, sums in count(question, files).items():
        assert np.array_equal(count(question, mixed)[path].reports, sums.reports)
        assert np.array_equal(count(question, mixed)[path].users, sums.users)
        pairs = [sorted(zip(*(one.by_sheet[path][0][n].tolist() for n in ("profile", *ATTRIBUTES)), strict=True))
                 for one in (files, mixed)]  # fmt: skip
        assert pairs[0] == pairs[1], "rows stay whole"
    orders = [mixed.by_sheet[sheet.path][0]["profile"].tolist() for sheet in question.sheets()]
    assert orders[0] != orders[1]
    assert rows["profile"].tolist() not in orders
    result = conclude(question, mixed)
    with pytest.raises(ValueError, match="not in the order of their users"):
        question.study(reader([rows]), question.truth(reader([rows]), result), result, repeats(mixed, seed))


def test_an_order_is_uniform(seed: int) -> None:
    """Where each of four rows goes, over 6,000 files: 16 cells with a chance of a quarter."""
    stream, places = Keystream.seeded(seed, "order"), np.zeros((4, 4))
    for _ in range(6000):
        places[np.arange(4), shuffle({"row": np.arange(4)}, stream)["row"]] += 1
    assert np.abs((places - 1500) / np.sqrt(6000 * 3 / 16)).max() < z_bound(16)
    with pytest.raises(ValueError, match="columns of one length"):
        shuffle({"row": np.arange(4), "items": np.arange(9)}, stream)
    assert shuffle({"row": np.arange(0)}, stream)["row"].size == 0


def test_an_evaluation_stands_beside_the_truth(seed: int) -> None:
    question, rows = plan(catalogue={"path": "x", "grid": "1/2"}), vault(600)
    files, people = draw(question, [rows], seed), reader([rows])
    result = conclude(question, files)
    truth = question.truth(people, result)
    tables = question.study(people, truth, result, repeats(files, seed))
    cells = tables["aggregates"]
    assert height(cells) == 6
    assert cells["truth"] == [float(total) for total in true_totals(rows)] * 2
    (reports,) = files.columns(question.sheets()[1])
    noise = reports["comedy"] - rows["a_1"]
    assert cells["mean_error"][4] == pytest.approx(np.abs(noise).mean())
    assert cells["mean_squared_error"][4] == pytest.approx(np.square(noise).mean())
    assert cells["z"][4] == pytest.approx(noise.sum() / cells["standard_error"][4])
    assert set(tables["losses"]["spending"]) == {"mae", "equal scaling", "lower bound"}
    rates = np.array(tables["coverage"]["least"])
    assert set(tables["coverage"]["class"]) == {"middle", "top"}
    bound = 4 * np.sqrt(0.95 * 0.05 / tables["coverage"]["repeats"][0])
    assert (np.abs(rates - 0.95) < bound).all(), rates
    with pytest.raises(ValueError, match="needs the reports"):
        question.study(people, truth, result, repeats(None, seed))


def test_a_share_of_nearly_nothing_is_null(seed: int) -> None:
    question = plan()
    rows = {**vault(50), **{f"a_{i}": np.zeros(50, dtype=np.int64) for i in range(3)}}
    table = question.tables(conclude(question, draw(question, [rows], seed)))["aggregates"]
    assert table["share"][3:] == [None] * 3
    assert table["share_error"][3:] == [None] * 3


def test_gates_pass_and_each_can_fail() -> None:
    question, rows = plan(), vault(600)
    result = conclude(question, draw(question, [rows], 7))
    good = evidence(question, result, 600, question.truth(reader([rows]), result))
    names = [gate.name for gate in question.gates(good)]
    assert failed(question.gates(good)) == set()
    assert names == [
        "attribute_epsilon", "overall_epsilon", "pooled_epsilon", "optimal", "errors_usable", "totals_complete",
        "everyone_counted", "totals_true",
    ]  # fmt: skip
    assert [gate.name for gate in question.gates(replace(good, truth=None))] == names[:-1]
    shop, ads = question.providers
    tight = question.profiles[1].model_copy(update={"budgets": (Fraction(1), Fraction(1, 2), Fraction(1, 10**6))})
    slack = ads.services[0].model_copy(update={"residual": 2e-8})
    poor = [provider.model_copy(update={"epsilon": Fraction(1, 9)}) for provider in question.providers]
    rows_published = good.tables["aggregates"]
    far = replace(result.sums["ads"], reports=result.sums["ads"].reports + 100_000)
    plans: dict[str, dict[str, Any]] = {
        "attribute_epsilon": {"profiles": (question.profiles[0], tight)},
        "overall_epsilon": {"providers": (shop, ads.model_copy(update={"epsilon": Fraction(1, 4)}))},
        "pooled_epsilon": {"providers": tuple(poor)},
        "optimal": {"providers": (shop, ads.model_copy(update={"services": (slack, slack)}))},
    }
    for name, update in plans.items():
        assert name in failed(question.model_copy(update=update).gates(good)), name
    evidences = {
        "errors_usable": replace(good, tables={"aggregates": {**rows_published, "standard_error": [0.0] * 6}}),
        "totals_complete": replace(good, tables={"aggregates": {n: list(c)[1:] for n, c in rows_published.items()}}),
        "everyone_counted": replace(good, n_users=601),
        "totals_true": replace(good, result=replace(result, sums={**result.sums, "ads": far})),
    }
    for name, broken in evidences.items():
        assert failed(question.gates(broken)) == {name}
    infinite = {**rows_published, "ci_high": [float("inf"), *rows_published["ci_high"][1:]]}
    assert failed(question.gates(replace(good, tables={"aggregates": infinite}))) == {"errors_usable"}


def test_the_gate_against_the_truth_refuses_as_seldom_as_it_says(seed: int) -> None:
    """A hundred evaluations: each is refused with a probability of 1 % at most."""
    question, rows = plan(), vault(600)
    truth = np.array(true_totals(rows))
    gates = [
        totals_true(question, conclude(question, draw(question, [rows], 100 * seed + i)), truth) for i in range(100)
    ]
    assert {gate.false_alarm for gate in gates} == {0.01}
    assert sum(len(failed([gate])) for gate in gates) <= binom.isf(ALPHA, 100, 0.01)


def test_the_gate_against_the_truth_catches_reports_without_their_noise_law(seed: int) -> None:
    """Reports drawn at a tenth of the budgets look ten times too wrong."""
    question, rows = plan(), vault(2000)
    wrong = conclude(question, draw(louder(Fraction(1, 10)), [rows], seed))
    truth = question.truth(reader([rows]), wrong)
    assert "totals_true" in failed(question.gates(evidence(question, wrong, 2000, truth)))


def test_rows_are_those_of_the_declared_tables(seed: int) -> None:
    question = plan()
    result = conclude(question, draw(question, [vault(600)], seed))
    tables = {**question.tables(result), "budgets": question.budgets(result)}
    assert tables.keys() == {"aggregates", "budgets"}
    for name, rows in tables.items():
        declared = {column.name: column for column in published_table(name).content}
        assert rows.keys() <= declared.keys()
        assert {column for column, one in declared.items() if not one.nullable} <= rows.keys()
        assert all(None not in values for column, values in rows.items() if not declared[column].nullable)
        keys = list(zip(*(rows[column] for column in published_table(name).key), strict=True))
        assert len(set(keys)) == len(keys) == height(rows)
    order = [column.name for column in published_table("aggregates").content]
    assert list(tables["aggregates"]) == order


def test_budget_rows() -> None:
    question, rows = plan(), vault(600)
    nobody = question.budgets(None)
    assert height(nobody) == 2 * 2 * 3
    assert nobody["n_users"] == [None] * 12
    table = question.budgets(conclude(question, draw(question, [rows], 1)))
    assert set(table["unit"]) == {"occurrence"}
    assert set(table["mechanism"]) == {"geometric"}
    assert all(
        exact <= nominal for exact, nominal in zip(table["exact_epsilon"], table["nominal_epsilon"], strict=True)
    )
    shy = [i for i in range(12) if (table["provider"][i], table["level"][i]) == ("ads", "shy")]
    assert [table["attribute"][i] for i in shy] == list(ATTRIBUTES)
    assert [table["nominal_epsilon"][i] for i in shy] == [1, 0.5, 0.1]
    assert {table["n_users"][i] for i in shy} == {int(rows["profile"].sum())}
    assert [table["share"][i] for i in shy] == pytest.approx([2 * table["exact_epsilon"][i] for i in shy])


def test_the_optimum_lies_between_baseline_and_bound() -> None:
    losses = loss_rows(plan())
    assert height(losses) == 2 * 3 * 2
    keys = zip(losses["provider"], losses["profile"], losses["spending"], strict=True)
    cell = {key: i for i, key in enumerate(keys)}
    mine, baseline, bound = (cell["ads", "shy", spending] for spending in ("mae", "equal scaling", "lower bound"))
    assert losses["mae"][bound] < losses["mae"][mine] < losses["mae"][baseline]
    assert losses["kl"][baseline] == pytest.approx(0, abs=1e-3)
    assert losses["kl"][mine] > 0


def test_what_a_plan_foretells() -> None:
    predicted = predictions(plan())
    assert predicted.assumptions == (
        "1,000 users; profiles: open 50%, shy 50%",
        "the unit is one occurrence of an item",
        "5 items of 5 kinds, 1 of which can bind",
    )
    assert (plan().target, plan().typical_errors()) == ("", {}), "a total is no share"
    (note,) = predicted.notes
    assert note.startswith(
        "shop: epsilon 2 is at or above the turning point of shy (at most 1.6): every attribute gets"
    )
    assert predictions(plan(providers={"ads": {"epsilon": "0.5"}})).notes == ()
    errors = predicted.tables["errors"]
    assert [error / one for error, one in zip(errors["standard_error"], errors["one_user"], strict=True)] == (
        pytest.approx([1000**0.5] * 6)
    )
    rich = predictions(plan(providers={"shop": {"epsilon": 9}}, default="open", count={"cap": 2}))
    assert rich.assumptions[1] == "the unit is one item, of whose occurrences at most 2 count"
    assert "default: open is not the profile of the least budgets (shy)" in rich.notes[0]
    assert "shop: epsilon 9 is at or above the turning point of 2 of 2 profiles" in rich.notes[1]
    profiles = {f"p{i}": {"drama": 1, "comedy": f"1/{i + 1}", "war": 0.1} for i in range(300)}
    many = predictions(plan(profiles=profiles, default="p299"))
    assert "p5 0.333% and 294 more" in many.assumptions[0]


def test_predicted_errors_are_those_of_the_expected_users() -> None:
    question = plan(expected={"users": 600, "profiles": {"open": "3/4", "shy": "1/4"}})
    rows = {**vault(600), "profile": np.repeat([0, 1], [450, 150]).astype(np.uint16)}
    published = question.tables(conclude(question, draw(question, [rows], 1)))["aggregates"]
    assert error_rows(question)["standard_error"] == published["standard_error"]


def test_the_statements_part_says_nothing_of_a_release() -> None:
    part = statement(plan())
    assert {"public", "assumptions", "protects", "worst_total", "providers"} <= part.keys()
    assert part["protects"] == "of one occurrence of an item, personalised by attribute and by provider"
    assert part.keys().isdisjoint({"release_id", "name", "plan_sha256", "n_users", "model"})
    part["public"].append("changed")
    assert statement(plan())["public"][-1] != "changed"


def test_beside_other_questions_the_choice_has_another_column() -> None:
    question = plan().model_copy(update={"choice_field": "level_1"})
    rows = vault(100)
    renamed = {"level_1": rows["profile"], **{name: rows[name] for name in ("a_0", "a_1", "a_2")}}
    sheet = question.sheets()[0]
    assert sheet.needed == ("level_1", "a_0", "a_1", "a_2")
    mine, usual = (
        one.draw(one.sheets()[0], table, Keystream.seeded(1, "x"), None)
        for one, table in ((question, renamed), (plan(), rows))
    )
    assert list(mine) == list(usual)
    assert all(np.array_equal(mine[name], usual[name]) for name in usual)
    assert question.cells == NUMBER_CELLS * len(SPEC["attributes"])
    assert question.granted == question.worst_total == sum(epsilon for _, epsilon in question.spends())
