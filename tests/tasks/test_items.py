"""Frequent items stage by stage: what the vault takes, what is drawn and counted, and what a bad input is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pldp.channels.randomness import Keystream
from pldp.errors import HomeError, PldpError, SourceError, SpecError
from pldp.expectations.runner import run_gates
from pldp.flows.pipeline import everybody
from pldp.questions.items.question import Items
from pldp.questions.proof import proof
from pldp.questions.question import Evidence, offsets
from pldp.tasks.count import add_up, count
from pldp.tasks.home import Home
from pldp.tasks.ingest import ingest, n_partitions
from pldp.tasks.partitions import read_partition
from pldp.tasks.reports import columns_of
from pldp.tasks.run import Run
from pldp.tasks.specfile import load_spec
from tests.baskets import ITEMS, make_rows, make_table, make_users, opened, world, write_spec
from tests.people import digests
from tests.tasks.stages import Concluded, conclude_all, draw_all

ONE = {"holds": "one", "itemsets": {"minimum_support": 0.1, "length": 1}}


def items_of(run: Run) -> Items:
    (question,) = run.plan.questions
    assert isinstance(question, Items)
    return question


def planned(spec: Path, *, evaluation: bool = False) -> Items:
    (question,) = load_spec(spec, evaluation=evaluation).plan.questions
    assert isinstance(question, Items)
    return question


def rows_of(spec: Path, home: Path, **options: Any) -> list[tuple[int, list[int]]]:
    run, file = opened(spec, home, **options)
    ingested = ingest.fn(run, file)
    found = []
    for partition in range(ingested.partitions):
        rows = columns_of(read_partition(run, partition, ["level", "items"]))
        bounds = rows[offsets("items")]
        for number, level in enumerate(rows["level"].tolist()):
            found.append((level, rows["items"][bounds[number] : bounds[number + 1]].tolist()))
    assert len(found) == ingested.n_users
    return found


def test_an_item_counts_once_and_users_without_items_count_too(tmp_path: Path) -> None:
    spec = world(tmp_path, 300)
    assert make_rows(300).is_duplicated().any()
    found = rows_of(spec, tmp_path / "home", evaluation=True, seed=1)
    table, levels = make_table(300), make_users(300)["level"]
    expected = [(["high", "low"].index(levels[u]), np.flatnonzero(table[u]).tolist()) for u in range(300)]
    assert sorted(found) == sorted(expected)
    assert any(not items for _, items in found)


def test_an_empty_item_is_a_user_without_items_and_a_row_without_user_is_quarantined(tmp_path: Path) -> None:
    rows = pl.DataFrame({"user": ["a", "b", None, "c"], "item": ["milk", None, "tea", "milk"]})
    source = {"path": "rows.parquet", "max_left_out": "1/4"}
    spec = world(tmp_path, 3, rows, users=None, levels=None, source=source)
    assert sorted(items for _, items in rows_of(spec, tmp_path / "home")) == [[], [1], [1]]


def test_an_unknown_key_is_told_beside_those_of_its_own_section(tmp_path: Path) -> None:
    for key, told in (
        ("itme", "did you mean 'item'"),
        ("zzz", "known keys: connection, csv, format, item, path, table"),
    ):
        spec = world(tmp_path, 2, items={"path": "items.csv", key: "item"})
        with pytest.raises(SpecError, match=rf"items\.{key} is not a key of the spec; {told}"):
            load_spec(spec)


def test_whoever_states_no_level_has_the_strictest(tmp_path: Path) -> None:
    rows = pl.DataFrame({"user": ["a", "b", "c"], "item": ["milk"] * 3, "level": ["low", None, "wrong"]})
    spec = world(tmp_path, 3, rows, users=None, source={"path": "rows.parquet", "level": "level"})
    assert sorted(level for level, _ in rows_of(spec, tmp_path / "home")) == [0, 0, 1]


def test_an_unknown_item_is_refused_or_dropped_and_never_quoted(tmp_path: Path) -> None:
    rows = pl.DataFrame({"user": ["a", "b"], "item": ["milk", "secret-thing"]})
    spec = world(tmp_path, 2, rows, users=None, levels=None)
    with pytest.raises(SourceError) as error:
        rows_of(spec, tmp_path / "home")
    assert "rows.parquet, readable row 2, column item: the item is not declared" in str(error.value)
    assert "secret" not in str(error.value)
    assert not list((tmp_path / "home" / "vault").rglob("*.duckdb")), "nothing of it is kept"
    ignoring = write_spec(tmp_path, users=None, levels=None, source={"path": "rows.parquet", "unknown": "ignore"})
    assert sorted(items for _, items in rows_of(ignoring, tmp_path / "home")) == [[], [1]]


def test_a_user_with_two_levels_is_refused(tmp_path: Path) -> None:
    rows = pl.DataFrame({"user": ["a", "a"], "item": ["milk", "tea"], "level": ["low", "high"]})
    spec = world(tmp_path, 2, rows, users=None, source={"path": "rows.parquet", "level": "level"})
    with pytest.raises(SourceError, match="column level: a user states two different levels"):
        rows_of(spec, tmp_path / "home")


@pytest.mark.parametrize(
    ("rows", "sections", "told"),
    [
        ([("a", "milk"), ("a", "tea")], {}, "a user has two different values"),
        ([("a", "milk"), ("b", None)], {}, "a user has no value. Give every user one, or declare `missing`"),
        ([("a", "milk"), ("b", "x")], {}, "readable row 2, column item: the value is not declared"),
        ([("a", "milk"), ("b", None)], {"missing": "tea"}, [[1], [5]]),
        ([("a", "milk"), ("a", "milk"), ("b", "x")], {"other": "beer"}, [[1], [2]]),
    ],
)
def test_single_values(tmp_path: Path, rows: list[Any], sections: dict[str, Any], told: str | list[list[int]]) -> None:
    frame = pl.DataFrame(rows, schema=["user", "item"], orient="row")
    spec = world(tmp_path, 2, frame, users=None, levels=None, **ONE, **sections)
    if isinstance(told, list):
        assert sorted(items for _, items in rows_of(spec, tmp_path / "home")) == told
        return
    with pytest.raises(SourceError, match=told):
        rows_of(spec, tmp_path / "home")


def test_reports_are_drawn_once_and_supports_come_out(tmp_path: Path) -> None:
    run, file = opened(world(tmp_path, 2000), tmp_path / "home")
    ingested = ingest.fn(run, file)
    assert draw_all(run, range(ingested.partitions)) == 2000
    before = digests(run.reports)
    assert draw_all(run, range(ingested.partitions)) == 0
    assert digests(run.reports) == before
    names = [str(path.relative_to(run.reports)) for path in sorted(run.reports.rglob("*.parquet"))]
    assert names == ["items/level=high/00000.parquet", "items/level=low/00000.parquet"]
    tallies = add_up(count.fn(run, None, range(ingested.partitions)))
    reports = [tallies[sheet.path].n_reports for sheet in items_of(run).sheets()]
    assert sum(reports) == 2000
    levels = make_users(2000)["level"].value_counts().sort("level")["count"].to_list()
    assert reports == levels
    run.vault.unlink()
    with pytest.raises(HomeError, match="its vault is gone"):
        ingest.fn(run, file)


def test_partitions_follow_cells_and_halves_are_halves(tmp_path: Path) -> None:
    spec = world(tmp_path, 10)
    file = load_spec(spec)
    assert n_partitions(4 * 10**6, file.plan, file.spec.runner) == 8
    sampled = load_spec(write_spec(tmp_path, protocol="sampling")).plan
    assert n_partitions(10, sampled, file.spec.runner) == 2
    assert n_partitions(10**6, sampled, file.spec.runner) % 2 == 0


SCORES = {"path": "scores.csv", "range": [0, 10]}


def write_scores(folder: Path, rows: list[tuple[str, str, str]]) -> None:
    pl.DataFrame(rows, schema=["user", "item", "score"], orient="row").write_csv(folder / "scores.csv")


def test_raw_scores_are_for_evaluations(tmp_path: Path) -> None:
    spec = world(tmp_path, 5, sensitivity={"of": 5, "scores": SCORES})
    write_scores(tmp_path, [(user, item, str(2 * n)) for user in "abc" for n, item in enumerate(ITEMS)])
    assert planned(spec, evaluation=True).sensitivity == (0, 1, 2, 3, 4, 4)
    with pytest.raises(SpecError, match=r"sensitivity.scores is for `pldp evaluate`"):
        load_spec(spec)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([("a", item, "3") for item in ITEMS[:5]], "item 'tea': no score: every value needs one"),
        ([("a", item, "30") for item in ITEMS], "item 'bread': a score must lie in 0 … 10"),
        ([("a", "bread", "3"), ("a", "bread", "4")], "readable row 2, column item: the cell is scored twice"),
        ([("a", "bread", "x")], "readable row 1, column score: the cell must be a number"),
        ([("a", "gold", "1")], "readable row 1, column item: the cell holds no declared item"),
    ],
)
def test_bad_scores_are_told_without_their_values(tmp_path: Path, rows: list[tuple[str, str, str]], told: str) -> None:
    spec = world(tmp_path, 5, sensitivity={"of": 5, "scores": SCORES})
    write_scores(tmp_path, rows)
    with pytest.raises(SourceError) as error:
        load_spec(spec, evaluation=True)
    assert told in str(error.value)
    assert "30" not in str(error.value).replace(str(tmp_path), "")
    assert "gold" not in str(error.value)


def test_items_may_stand_in_a_file(tmp_path: Path) -> None:
    spec = world(tmp_path, 5, items={"path": "list.csv"})
    pl.DataFrame({"item": ITEMS}).write_csv(tmp_path / "list.csv")
    assert planned(spec).items == ITEMS
    for content, told in (
        ("item\nbread\n\nbread\n", "readable row"),
        ("thing\nbread\n", "there is no column 'item'"),
        ("item\n", "must hold at least one row"),
    ):
        (tmp_path / "list.csv").write_text(content)
        with pytest.raises(PldpError, match=told):
            load_spec(spec)
    (tmp_path / "list.csv").unlink()
    with pytest.raises(
        SourceError,
        match=r"list.csv: cannot be read .No such file or directory.. Correct items.path in the spec. Nothing",
    ):
        load_spec(spec)


def test_an_exact_epsilon_above_the_bound_is_refused_with_its_number(tmp_path: Path) -> None:
    def aprr(lowest: int, **budget: Any) -> Path:
        levels = {item: max(lowest, n % 3) for n, item in enumerate(ITEMS)}
        return world(
            tmp_path,
            50,
            protocol="aprr",
            users=None,
            levels=None,
            budget={"total": 3, **budget},
            sensitivity={"of": 3, "levels": levels},
        )

    home = tmp_path / "home"
    with pytest.raises(
        SpecError, match=r"the exact ε of a row at level all is infinite: an open item is not perturbed"
    ):
        opened(aprr(0), home)
    with pytest.raises(SpecError, match=r"the exact ε of a row at level all is 5\.6932, above its bound 3"):
        opened(aprr(1), home)
    opened(aprr(1, bound=6), home)
    opened(aprr(0), home, evaluation=True)


def _concluded(spec: Path, home: Path) -> Concluded:
    run, file = opened(spec, home, evaluation=True, seed=2)
    ingested = ingest.fn(run, file)
    draw_all(run, range(ingested.partitions))
    return conclude_all(run, ingested)


@pytest.fixture(scope="module")
def concluded(tmp_path_factory: pytest.TempPathFactory) -> Concluded:
    folder = tmp_path_factory.mktemp("gates")
    return _concluded(world(folder, 2000, sensitivity={"of": 2, "levels": dict.fromkeys(ITEMS, 1)}), folder / "home")


def _moved(concluded: Concluded, change: Callable[[np.ndarray], np.ndarray]) -> Concluded:
    support = concluded.result.supports[0]
    moved = replace(support, counts=change(support.counts))
    return concluded.with_result(replace(concluded.result, supports=(moved,)))


def _table(concluded: Concluded, name: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Concluded:
    return concluded.with_tables(**{name: change(concluded.tables[name])})


def test_every_gate_can_fail(concluded: Concluded) -> None:
    """What is wrong in a run's tables, tallies or files is refused by Great Expectations, and nothing else is."""
    assert concluded.failed() == set()
    one_level = concluded.result.supports[0].counts.copy()
    one_level[0] = concluded.result.supports[0].n[0] * 0.8
    truth = replace(concluded.truth, supports=dict.fromkeys(concluded.truth.supports, 0.9))
    unsearched = replace(concluded.result, mined=replace(concluded.result.mined, searched=0))
    broken = {
        "supports_plausible": _moved(concluded, lambda counts: counts * 0),
        "levels_agree": _moved(concluded, lambda counts: one_level),
        "errors_usable": _table(concluded, "itemsets", lambda rows: rows.with_columns(standard_error=pl.lit(0.0))),
        "rules_usable": _table(concluded, "rules", lambda rows: rows.with_columns(confidence=pl.lit(float("nan")))),
        "items_complete": _table(concluded, "itemsets", lambda rows: rows.slice(1)),
        "searched": concluded.with_result(unsearched),
        "partitions_once": replace(concluded, counted=(*concluded.counted, concluded.counted[0])),
        "everyone_counted": replace(concluded, ingested=replace(concluded.ingested, n_users=2001)),
        "enough_users": replace(concluded, ingested=replace(concluded.ingested, n_users=0)),
        "supports_true": concluded.with_truth(truth),
        "rules_true": concluded.with_truth(truth),
    }
    for name, wrong in broken.items():
        assert name in wrong.failed(), name
    promised = {"row_epsilon", "item_epsilon", "budgets_sum", "spend_within_total", "exact_epsilon"}
    assert {*broken, *promised, *PROOFS, *TABLE_GATES} == {verdict.gate for verdict in concluded.verdicts()}


TABLE_GATES = ("tables_as_computed", "keys_unique", "cells_sound", "intervals_sound")
PROOFS = ("channels_recomputed", "truth_recovered", "channels_rehearsed")


def _unproven(question: Items) -> set[str]:
    verdicts = run_gates(proof([question], Keystream.seeded(1, "proof")))
    assert tuple(verdict.gate for verdict in verdicts) == PROOFS
    return {verdict.gate for verdict in verdicts if not verdict.passed}


def test_every_proof_can_fail(concluded: Concluded, monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget that is not the channel's, an estimate that is off by a thousandth, reports that are counted twice."""
    question = items_of(concluded.run)
    assert _unproven(question) == set()
    louder = tuple(level.model_copy(update={"budget": level.budget * 2}) for level in question.levels)
    assert "channels_recomputed" in _unproven(question.model_copy(update={"levels": louder}))
    tables, tally = Items.tables, Items.tally

    def raised(self: Items, result: Any) -> Any:
        found = tables(self, result)
        return {
            **found,
            "itemsets": {**found["itemsets"], "support": [s * 1.001 for s in found["itemsets"]["support"]]},
        }

    with monkeypatch.context() as patch:
        patch.setattr(Items, "tables", raised)
        assert _unproven(question) == {"truth_recovered"}
    monkeypatch.setattr(Items, "tally", lambda self, *rest: tally(self, *rest) + tally(self, *rest))
    assert _unproven(question) == {"channels_rehearsed"}


def test_a_plan_that_breaks_its_promise_fails_its_gates(concluded: Concluded) -> None:
    """`exact_epsilon` has nothing to compare where bounds are not kept: there `row_epsilon` refuses a release."""
    plan, question = concluded.run.plan, items_of(concluded.run)
    tight = tuple(level.model_copy(update={"bound": level.bound / 2}) for level in question.levels)
    small = tuple(level.model_copy(update={"budget": level.budget / 8}) for level in question.levels)
    tables = {name: rows.to_dict(as_series=False) for name, rows in concluded.tables.items()}
    for name, levels, truth in (("row_epsilon", tight, None), ("item_epsilon", small, concluded.truth)):
        wrong = question.model_copy(update={"levels": levels})
        evidence = Evidence(concluded.ingested.n_users, concluded.result, tables, truth)
        (verdict,) = run_gates(gate for gate in wrong.gates(evidence) if gate.name == name)
        assert not verdict.passed, name
    for name, update in (
        ("spend_within_total", {"total": plan.total / 2 if plan.total else None}),
        ("budgets_sum", {"total": plan.total * 2 if plan.total else None}),
        ("enough_users", {"minimum_users": 2001}),
    ):
        gates = plan.model_copy(update=update).gates(2000, concluded.ingested.partitions, [])
        (verdict,) = run_gates(gate for gate in gates if gate.name == name)
        assert not verdict.passed, name


def test_values_pass_and_a_wrong_truth_is_caught(tmp_path: Path) -> None:
    rows = make_rows(2000).unique("user", keep="first", maintain_order=True)
    found = _concluded(world(tmp_path, 2000, rows, **ONE, missing="tea", budget={"total": 3}), tmp_path / "home")
    assert found.failed() == set()
    shifted = {key: value + 0.2 for key, value in found.truth.supports.items()}
    assert found.with_truth(replace(found.truth, supports=shifted)).failed() == {"supports_true"}


def test_the_truth_is_not_for_releases(tmp_path: Path) -> None:
    run, file = opened(world(tmp_path, 20), tmp_path / "home")
    ingested = ingest.fn(run, file)
    with pytest.raises(ValueError, match="a release never reads the truth"):
        everybody(run, ingested)
    assert Home(tmp_path / "home").spends() == []


@pytest.mark.parametrize("link", [False, True])
def test_a_file_that_is_source_and_users_has_columns_of_one_role(tmp_path: Path, link: bool) -> None:
    """Else everybody's item is also the level, and how many chose a level is public."""
    rows = pl.DataFrame({"user": ["a", "b"], "item": ["bread", "beer"], "level": ["high", "low"]})
    world(tmp_path, 2, rows)
    users = "users.parquet" if link else "rows.parquet"
    if link:
        (tmp_path / users).hardlink_to(tmp_path / "rows.parquet")
    given = {"path": users, "level": "ITEM"}
    choices = {"choices": {"bread": "1/2", "beer": 1}, "dependence": 1}
    with pytest.raises(SpecError, match=r"source\.item and users\.level both read column"):
        load_spec(write_spec(tmp_path, users=given, levels=choices))
    assert load_spec(write_spec(tmp_path, users={"path": users, "level": "level"})).users is not None
