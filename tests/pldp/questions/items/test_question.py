"""Items as a whole, in memory: draw, tally, combine, conclude, tables, against the truth and against wrong noise."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from pldp.channels.randomness import Keystream
from pldp.questions.items.combine import CHUNK_COUNTS, combine
from pldp.questions.items.question import Items
from pldp.questions.items.reports import ItemsTally, read_candidates
from pldp.questions.items.rowchannels import Bits
from pldp.questions.items.truth import Truth
from pldp.questions.question import ANSWER, Evidence, Repeats
from tests.pldp.questions.items import memory
from tests.pldp.questions.items.memory import (
    NAMES,
    ONE,
    Memory,
    everybody,
    failed,
    make_people,
    make_question,
    make_table,
    one_value,
    released,
)

N_USERS = 40_000
ALPHA = 1e-6
"""The chance that a test against the truth fails on correct code."""
FORMS: dict[str, dict[str, Any]] = {"bits": {}, "sampled": {"protocol": "sampling"}, "value": ONE}


def table_of(form: str, n_users: int = N_USERS, seed: int = 1) -> np.ndarray:
    table = make_table(n_users, seed)
    return one_value(table) if form == "value" else table


def worst_z(question: Items, evidence: Evidence) -> tuple[float, float]:
    """Of the single items, which are published whatever the noise: the largest distance from what estimates are
    unbiased for, in standard errors, and the most that it is with chance 1 − α (Bonferroni).

    Where one place of a row is sampled, wrong noise moves all items the same way, so their sum is looked at too: a
    report supports an item at another's cost, so its variance is at most the sum of theirs.
    """
    rows, truth = evidence.tables["itemsets"], evidence.truth
    columns = zip(rows["items"], rows["support"], rows["standard_error"], strict=True)
    cells = np.array(
        [
            (support - truth.expected[(NAMES.index(items[0]),)], error)
            for items, support, error in columns
            if len(items) == 1
        ]
    )
    assert len(cells) == len(NAMES)
    if question.protocol == "sampling":
        cells = np.vstack([cells, (cells[:, 0].sum(), np.sqrt(np.square(cells[:, 1]).sum()))])
    return float(np.abs(cells[:, 0] / cells[:, 1]).max()), float(norm.isf(ALPHA / 2 / len(cells)))


@pytest.mark.parametrize("form", FORMS)
def test_estimates_are_unbiased_and_wrong_noise_is_seen(form: str, seed: int) -> None:
    """The twin: clients that spend 1.1 times the budget. Truth is skewed, so every channel moves some item."""
    # At larger budgets nearly every sampled report is true, and a tenth more changes nothing that could be seen.
    totals = {"bits": Fraction(12), "sampled": Fraction(2), "value": Fraction(3)}
    n_users = {"bits": 40_000, "sampled": 240_000, "value": 80_000}[form]
    sections = {**FORMS[form], **({"itemsets": {"minimum_support": 0.1, "length": 1}} if form == "sampled" else {})}
    question = make_question(**{**sections, "budget": {"total": str(totals[form])}})
    people = make_people(table_of(form, n_users, seed), seed=seed)
    observed, bound = worst_z(question, released(question, people, seed))
    assert observed < bound
    wrong = make_question(**{**sections, "budget": {"total": str(totals[form] * Fraction(11, 10))}})
    assert wrong.protocol == question.protocol
    observed, bound = worst_z(question, released(question, people, seed, drawn_by=wrong))
    assert observed > bound


@pytest.mark.parametrize("form", FORMS)
def test_what_is_published(form: str) -> None:
    question = make_question(**FORMS[form])
    table = table_of(form)
    evidence = released(question, make_people(table))
    rows, rules = evidence.tables["itemsets"], evidence.tables["rules"]
    assert set(rows["n_users"]) == {N_USERS}
    assert sorted(items[0] for items in rows["items"] if len(items) == 1) == sorted(NAMES)
    assert failed(question, evidence) == set()
    for items, true in zip(rows["items"], _truths(question, evidence), strict=True):
        assert true == pytest.approx(table[:, [NAMES.index(item) for item in items]].all(axis=1).mean())
    if form == "value":
        assert sum(rows["support"]) == pytest.approx(1), "shares of values sum to one, whatever the noise"
        assert rules["lift"] == []
        return
    assert ["bread", "milk"] in rows["items"]
    place = next(i for i in range(len(rules["lift"])) if rules["antecedent"][i] == ["bread"])
    right = table[:, :2].all(axis=1).mean() / table[:, 0].mean()
    assert rules["consequent"][place] == ["milk"]
    assert abs(rules["confidence"][place] - right) < 5 * rules["standard_error"][place]
    assert rules["lift"][place] > 1
    assert rules["confidence"] == sorted(rules["confidence"], reverse=True)


def _truths(question: Items, evidence: Evidence) -> list[float]:
    keys = (tuple(sorted(NAMES.index(item) for item in items)) for items in evidence.tables["itemsets"]["items"])
    return [evidence.truth.supports[key] for key in keys]


def test_expected_reports_give_the_truth_back() -> None:
    """Algebra before randomness: supports as they are in the mean, through the same estimators."""
    question = make_question()
    table = make_table(20_000)
    truth = table.mean(axis=0)
    n, tallies = 10**12, {}  # so many that whole numbers of reports are as good as their means
    for sheet, level in zip(question.sheets(), question.levels, strict=True):
        assert isinstance(level.channel, Bits)
        kernel = level.channel.kernel
        tallies[sheet.path] = ItemsTally(n, np.rint(n * (kernel.false_one + kernel.gap * truth)).astype(np.int64))
    singles = combine(question.model_copy(update={"length": 1}), ANSWER, tallies, Memory(question)).singles
    np.testing.assert_allclose(singles.support, truth, atol=1e-11)


def test_mining_asks_about_sets_and_counts_them_over_all_files() -> None:
    question = make_question()
    reports = Memory(question)
    reports.draw(make_people(make_table(2000), partitions=5), 3)
    result = reports.result()
    assert reports.asked == list(range(2, result.mined.searched + 1))
    pairs = result.mined.longer[0]
    counts = np.zeros((len(pairs.items), 2), dtype=np.int64)
    for (path, _), columns in reports.files.items():
        level = question.places[path][1]
        bits = columns["report"][:, None] >> np.arange(len(NAMES)) & 1
        counts[:, level] += [int((bits[:, pair].all(axis=1)).sum()) for pair in pairs.items]
    np.testing.assert_array_equal(pairs.count, counts)


def test_many_sets_are_asked_about_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    itemsets = {"minimum_support": 0.01, "length": 2, "reach": 10}
    question = make_question(protocol="bounded", itemsets=itemsets).model_copy(update={"length": 2})
    reports = Memory(question)
    reports.draw(make_people(make_table(2000)), 3)
    whole = reports.result().mined.longer[0]
    assert (len(reports.asked), len(whole.items)) == (1, 15)
    assert CHUNK_COUNTS > 30
    monkeypatch.setattr("pldp.questions.items.combine.CHUNK_COUNTS", 8)
    reports.asked.clear()
    parts = reports.result().mined.longer[0]
    assert len(reports.asked) == 4, "four sets of two levels at a time"
    np.testing.assert_array_equal(parts.count, whole.count)


@pytest.mark.parametrize("form", FORMS)
def test_tallies_of_parts_add_up_to_the_whole(form: str) -> None:
    """A release that broke off and was resumed, or was counted in other batches, has the same tallies."""
    question = make_question(**FORMS[form])
    reports = Memory(question)
    reports.draw(make_people(table_of(form, 3000), partitions=4), 5)
    sets = np.array(list(combinations(range(len(NAMES)), 2)), dtype=np.int32)
    for sheet in question.sheets():
        for columns in reports.columns(sheet):
            n = len(columns["report"])
            cuts = [0, n // 3, n // 3, n]
            parts = [{"report": columns["report"][a:b]} for a, b in pairwise(cuts)]
            whole, added = question.tally(sheet, columns), question.tally(sheet, parts[0])
            for part in parts[1:]:
                added = added + question.tally(sheet, part)
            assert added.n_reports == whole.n_reports == n
            np.testing.assert_array_equal(added.counts, whole.counts)
            if form == "bits":
                counted = [question.count_sets(sheet, part, sets) for part in parts]
                np.testing.assert_array_equal(np.sum(counted, axis=0), question.count_sets(sheet, columns, sets))


def test_a_seed_repeats_a_draw_and_another_does_not() -> None:
    question, people = make_question(), make_people(make_table(500))
    first, again, other = Memory(question), Memory(question), Memory(question)
    first.draw(people, 1)
    again.draw(people, 1)
    other.draw(people, 2)
    for key, columns in first.files.items():
        np.testing.assert_array_equal(columns["report"], again.files[key]["report"])
        assert (columns["report"] != other.files[key]["report"]).any()


def test_the_second_half_is_asked_what_was_committed() -> None:
    """Candidates follow from the first half's reports, once; estimates read what was committed, not what would follow
    again."""
    question = make_question(protocol="sampling")
    people = make_people(make_table(3000))
    reports = Memory(question)
    reports.draw(people, 1)
    assert {sheet.phase: sheet.path for sheet in question.sheets() if sheet.choice == "low"} == {
        0: "items/level=low",
        1: "items/sets/level=low",
    }
    assert {partition for path, partition in reports.files if "/sets/" in path} == {1}
    assert reports.adapted == question.adapt(reports.tallies())
    mined = reports.result().mined
    asked = [sets.tolist() for sets in read_candidates(reports.adapted)]
    assert [sets.tolist() for sets in mined.candidates] == asked
    assert [0, 1] in asked[0]
    other = Memory(question, dict(reports.files), b"[[[4, 5]]]")
    only = other.result().mined
    assert [sets.items.tolist() for sets in only.longer] in ([[[4, 5]]], [[]])
    assert len(asked[0]) > 1
    sheet = next(sheet for sheet in question.sheets() if sheet.phase == 1)
    with pytest.raises(ValueError, match="asked about sets, which are not there"):
        question.draw(sheet, memory.of_choice(people[1], sheet), Keystream.seeded(1), None)


def test_no_candidates_and_no_people_of_a_level() -> None:
    """Where nothing seems frequent the second half reports dummies; a level nobody chose has files without rows."""
    question = make_question(protocol="sampling", itemsets={"minimum_support": 0.9, "length": 2, "reach": 0})
    table = np.zeros((400, len(NAMES)), dtype=np.bool_)
    people = [{**rows, "level": np.ones_like(rows["level"])} for rows in make_people(table)]
    evidence = released(question, people)
    assert evidence.result.mined.candidates == []
    assert evidence.result.n.tolist() == [0, 400]
    assert failed(question, evidence) == set()
    for form in ("bits", "value"):
        asked = make_question(**FORMS[form])
        people = [{**rows, "level": np.ones_like(rows["level"])} for rows in make_people(table_of(form, 400))]
        evidence = released(asked, people)
        assert evidence.result.n.tolist() == [0, 400]
        assert failed(asked, evidence) == set()
        assert asked.budgets(evidence.result)["n_users"] == [0, 400]


def test_rows_longer_than_the_padding_are_understated() -> None:
    question = make_question(protocol="sampling", sampling={"padding": 2, "sets_padding": 2})
    table = np.ones((300, len(NAMES)), dtype=np.bool_)
    evidence = released(question, make_people(table))
    truth: Truth = evidence.truth
    assert truth.supports[(0,)] == 1
    assert truth.expected[(0,)] == pytest.approx(2 / 6)
    assert (0, 1) in truth.frequent


@pytest.mark.parametrize(
    ("form", "methods"),
    [
        ("bits", {"this plan (bounded)", "MASK", "GR-PPFM"}),
        ("sampled", {"MASK", "GR-PPFM"}),
        ("value", set()),
    ],
)
def test_a_study(form: str, methods: set[str]) -> None:
    question = make_question(**FORMS[form])
    people = make_people(table_of(form, 2000))
    evidence = released(question, people)
    done: list[int] = []

    def study(repeat: int | None) -> dict[str, Any]:
        repeats = Repeats(repeat, 1, False, lambda *labels: Keystream.seeded(1, *labels), lambda: done.append(1))
        return question.study(everybody(people), evidence.truth, evidence.result, repeats)

    tables = study(2)
    assert set(tables["itemset_coverage"]["choice"]) == {"by chance"}
    assert tables["itemsets"]["truth"] == _truths(question, evidence)
    rows = tables["itemsets"]
    away = (np.array(rows["support"]) - np.array(rows["truth"])) / np.array(rows["standard_error"])
    np.testing.assert_allclose(np.array(rows["z"], dtype=float), away)
    assert {name: tables["rules"][name] for name in evidence.tables["rules"]} == evidence.tables["rules"]
    assert all(low <= true <= high for low, true, high in _held(tables["itemsets"]))
    classes = set(zip(tables["itemset_coverage"]["kind"], tables["itemset_coverage"]["class"], strict=True))
    assert classes >= {("singles", "top")} | ({("sets", "top"), ("rules", "top")} if form != "value" else set())
    assert set(tables["identity"]["method"]) == methods
    assert set(tables["identity"]["repeats"]) <= {2}
    assert len(done) == 1 + bool(methods)
    assert tables["identity"] == study(2)["identity"], "the seed repeats it"
    assert study(0)["identity"]["method"] == []
    measured = set(tables["privacy"]["method"])
    assert measured >= methods - {"this plan (bounded)"}
    assert ("this plan (bounded), level low" in measured) == (form == "bits")


def _held(rows: dict[str, Any]) -> list[tuple[float, float, float]]:
    """Of rows that say that their interval holds the truth."""
    ends = zip(rows["ci_low"], rows["truth"], rows["ci_high"], rows["covered"], strict=True)
    return [(low, true, high) for low, true, high, covered in ends if covered]


def test_beside_other_questions_it_has_names_of_its_own() -> None:
    question = make_question().model_copy(update={"place": "films", "field": "seen", "choice_field": "level_3"})
    (first, second) = question.sheets()
    assert (first.path, first.labels) == ("films/level=high", ("films", "high"))
    assert first.needed == ("level_3", "seen")
    assert (second.choice, second.choice_field, second.code) == ("low", "level_3", 1)
    assert question.budgets(None)["attribute"] == ["films", "films"]
    assert make_question().sheets()[0].labels == ("high",), "as seeded evaluations have always named it"


def test_truth_that_is_wrong_is_seen() -> None:
    question = make_question(**ONE)
    evidence = released(question, make_people(table_of("value", 2000)))
    assert failed(question, evidence) == set()
    shifted = {key: value + 0.2 for key, value in evidence.truth.supports.items()}
    wrong = replace(evidence, truth=replace(evidence.truth, supports=shifted))
    assert failed(question, wrong) == {"supports_true"}


def test_users_who_choose_by_what_they_hold() -> None:
    """Holders of an item at the weaker level, as far as Γ = 3 allows: `oc+`, which takes levels to be independent,
    loses the item; `sum` does not."""
    people = make_people(table_of("bits", 20_000))
    least = {}
    for declared in (1, "unknown"):
        question = make_question(levels={"choices": {"high": "1/4", "low": 1}, "dependence": declared})
        evidence = released(question, people)
        repeats = Repeats(20, 1, False, lambda *labels: Keystream.seeded(1, *labels), dependence=3.0)
        rows = question.study(everybody(people), evidence.truth, evidence.result, repeats)["itemset_coverage"]
        singles = zip(rows["kind"], rows["choice"], rows["worst_coverage"], strict=True)
        least[declared] = min(rate for kind, choice, rate in singles if kind == "singles" and choice != "by chance")
        assert {choice.split(",")[0] for choice in rows["choice"]} == {"by chance", "weaker", "stricter"}
    assert least[1] < 0.6
    assert least["unknown"] >= 0.7
