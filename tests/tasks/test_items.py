"""Frequent items stage by stage: what the vault takes, what is drawn and counted, and what a bad input is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pldp.errors import HomeError, PldpError, SourceError, SpecError
from pldp.expectations.gates_items import RowEvidence, item_gates
from pldp.expectations.runner import run_gates
from pldp.flows.items import KIND
from pldp.tasks.home import Home
from pldp.tasks.items.count import add_up_tallies, count_items, count_sets
from pldp.tasks.items.file import load_items
from pldp.tasks.items.ingest import ingest_rows, n_partitions
from pldp.tasks.items.mine import mine_bits, mine_values
from pldp.tasks.items.perturb import perturb_items, true_rows
from pldp.tasks.items.sets import kept_sets
from pldp.tasks.items.tables import itemset_rows, rule_rows
from pldp.tasks.items.truth import true_supports
from tests.baskets import ITEMS, make_rows, make_table, make_users, opened, world, write_spec
from tests.people import digests

ONE = {"holds": "one", "itemsets": {"minimum_support": 0.1, "length": 1}}


def rows_of(spec: Path, home: Path, **options: Any) -> list[tuple[int, list[int]]]:
    run, file = opened(spec, home, **options)
    ingested = ingest_rows.fn(run, file)
    found = []
    for partition in range(ingested.partitions):
        rows = true_rows(run, partition)
        for number, level in enumerate(rows.levels.tolist()):
            found.append((level, rows.items[rows.offsets[number] : rows.offsets[number + 1]].tolist()))
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
    for key, told in (("itme", "did you mean 'item'"), ("zzz", "known keys: csv, format, item, path")):
        spec = world(tmp_path, 2, items={"path": "items.csv", key: "item"})
        with pytest.raises(SpecError, match=rf"items\.{key} is not a key of the spec; {told}"):
            load_items(spec)


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
    ingested = ingest_rows.fn(run, file)
    assert perturb_items.fn(run, range(ingested.partitions)) == 2000
    before = digests(run.reports)
    assert perturb_items.fn(run, range(ingested.partitions)) == 0
    assert digests(run.reports) == before
    names = [str(path.relative_to(run.reports)) for path in sorted(run.reports.rglob("*.parquet"))]
    assert names == ["level=high/00000.parquet", "level=low/00000.parquet"]
    support = add_up_tallies(run, [count_items.fn(run, range(ingested.partitions))])
    assert support.n.sum() == 2000
    levels = make_users(2000)["level"].value_counts().sort("level")["count"].to_list()
    assert support.n.tolist() == levels
    run.vault.unlink()
    with pytest.raises(HomeError, match="its vault is gone"):
        ingest_rows.fn(run, file)


def test_partitions_follow_cells_and_halves_are_halves(tmp_path: Path) -> None:
    spec = world(tmp_path, 10)
    file = load_items(spec)
    assert n_partitions(10**6, file.plan, file.spec.runner) == 8
    sampled = load_items(write_spec(tmp_path, protocol="sampling")).plan
    assert n_partitions(10, sampled, file.spec.runner) == 2
    assert n_partitions(10**6, sampled, file.spec.runner) % 2 == 0


SCORES = {"path": "scores.csv", "range": [0, 10]}


def write_scores(folder: Path, rows: list[tuple[str, str, str]]) -> None:
    pl.DataFrame(rows, schema=["user", "item", "score"], orient="row").write_csv(folder / "scores.csv")


def test_raw_scores_are_for_evaluations(tmp_path: Path) -> None:
    spec = world(tmp_path, 5, sensitivity={"of": 5, "scores": SCORES})
    write_scores(tmp_path, [(user, item, str(2 * n)) for user in "abc" for n, item in enumerate(ITEMS)])
    assert load_items(spec, evaluation=True).plan.sensitivity == (0, 1, 2, 3, 4, 4)
    with pytest.raises(SpecError, match=r"sensitivity.scores is for `pldp evaluate`"):
        load_items(spec)


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([("a", item, "3") for item in ITEMS[:5]], "scores are missing for item 'tea'"),
        ([("a", item, "30") for item in ITEMS], "item 'bread': must lie in 0 … 10"),
        ([("a", "bread", "3"), ("a", "bread", "4")], "readable row 2, column item: the cell is scored twice"),
        ([("a", "bread", "x")], "readable row 1, column score: the cell must be a number"),
        ([("a", "gold", "1")], "readable row 1, column item: the cell holds no declared item"),
    ],
)
def test_bad_scores_are_told_without_their_values(tmp_path: Path, rows: list[tuple[str, str, str]], told: str) -> None:
    spec = world(tmp_path, 5, sensitivity={"of": 5, "scores": SCORES})
    write_scores(tmp_path, rows)
    with pytest.raises(SourceError) as error:
        load_items(spec, evaluation=True)
    assert told in str(error.value)
    assert "30" not in str(error.value)
    assert "gold" not in str(error.value)


def test_items_may_stand_in_a_file(tmp_path: Path) -> None:
    spec = world(tmp_path, 5, items={"path": "list.csv"})
    pl.DataFrame({"item": ITEMS}).write_csv(tmp_path / "list.csv")
    assert load_items(spec).plan.items == ITEMS
    for content, told in (
        ("item\nbread\n\nbread\n", "readable row"),
        ("thing\nbread\n", "there is no column 'item'"),
        ("item\n", "must hold at least one row"),
    ):
        (tmp_path / "list.csv").write_text(content)
        with pytest.raises(PldpError, match=told):
            load_items(spec)
    (tmp_path / "list.csv").unlink()
    with pytest.raises(SourceError, match=r"list.csv: no such file. Correct items.path"):
        load_items(spec)


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


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> RowEvidence:
    folder = tmp_path_factory.mktemp("gates")
    return _evidence(world(folder, 2000, sensitivity={"of": 2, "levels": dict.fromkeys(ITEMS, 1)}), folder / "home")


def _evidence(spec: Path, home: Path) -> RowEvidence:
    run, file = opened(spec, home, evaluation=True, seed=2)
    ingested = ingest_rows.fn(run, file)
    perturb_items.fn(run, range(ingested.partitions))
    tally = count_items.fn(run, range(ingested.partitions))
    support = add_up_tallies(run, [tally])
    if run.plan.holds == "one":
        mined = mine_values.fn(run, support)
    else:

        def count(sets: Any) -> Any:
            with kept_sets(run, sets) as length:
                return count_sets.fn(run, range(ingested.partitions), length, 0, len(sets))

        mined = mine_bits(run, support, count)
    truth = true_supports.fn(run, ingested, tuple(level.items for level in mined.longer))
    itemsets, rules = itemset_rows(run.plan, mined, 2000), rule_rows(run.plan, mined)
    return RowEvidence(
        run.plan,
        ingested.n_users,
        ingested.partitions,
        tally.files,
        (support,),
        mined,
        itemsets.to_pandas(),
        rules.to_pandas(),
        truth,
    )


def failed(evidence: RowEvidence) -> set[str]:
    return {verdict.gate for verdict in run_gates(item_gates(evidence)) if not verdict.passed}


def _moved(evidence: RowEvidence, change: Callable[[np.ndarray], np.ndarray]) -> RowEvidence:
    support = evidence.supports[0]
    return replace(evidence, supports=(replace(support, counts=change(support.counts)),))


def test_every_gate_can_fail(evidence: RowEvidence) -> None:
    assert failed(evidence) == set()
    plan, rows = evidence.plan, evidence.itemsets
    tight = [level.model_copy(update={"bound": level.bound / 2}) for level in plan.levels]
    small = [level.model_copy(update={"budget": level.budget / 8}) for level in plan.levels]
    one_level = evidence.supports[0].counts.copy()
    one_level[0] = evidence.supports[0].n[0] * 0.8
    true = replace(evidence.truth, expected=dict.fromkeys(evidence.truth.expected, 0.9)) if evidence.truth else None
    broken = {
        "row_epsilon": replace(evidence, plan=plan.model_copy(update={"levels": tuple(tight)}), truth=None),
        "item_epsilon": replace(evidence, plan=plan.model_copy(update={"levels": tuple(small)})),
        "supports_plausible": _moved(evidence, lambda counts: counts * 0),
        "levels_agree": _moved(evidence, lambda counts: one_level),
        "errors_usable": replace(evidence, itemsets=rows.assign(standard_error=0.0)),
        "rules_usable": replace(evidence, rules=evidence.rules.assign(confidence=np.nan)),
        "items_complete": replace(evidence, itemsets=rows.iloc[1:]),
        "searched": replace(evidence, mined=replace(evidence.mined, searched=0)),
        "partitions_once": replace(evidence, files=(*evidence.files, evidence.files[0])),
        "everyone_counted": replace(evidence, n_users=2001),
        "enough_users": replace(evidence, plan=plan.model_copy(update={"minimum_users": 2001})),
        "supports_true": replace(evidence, truth=true),
    }
    for name, wrong in broken.items():
        (verdict,) = run_gates(gate for gate in item_gates(wrong) if gate.name == name)
        assert not verdict.passed, name
    assert set(broken) == {gate.name for gate in item_gates(evidence)}


def test_values_pass_and_a_wrong_truth_is_caught(tmp_path: Path) -> None:
    rows = make_rows(2000).unique("user", keep="first", maintain_order=True)
    found = _evidence(world(tmp_path, 2000, rows, **ONE, missing="tea", budget={"total": 3}), tmp_path / "home")
    assert failed(found) == set()
    assert found.truth is not None
    shifted = {key: value + 0.2 for key, value in found.truth.expected.items()}
    assert failed(replace(found, truth=replace(found.truth, expected=shifted))) == {"supports_true"}


def test_the_truth_is_not_for_releases(tmp_path: Path) -> None:
    run, file = opened(world(tmp_path, 20), tmp_path / "home")
    ingested = ingest_rows.fn(run, file)
    with pytest.raises(PldpError, match="true_supports failed"):
        true_supports.fn(run, ingested, ())
    assert KIND.artifacts == ("itemsets", "rules", "budgets")
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
    choices = {"choices": {"bread": "1/2", "beer": 1}}
    with pytest.raises(SpecError, match=r"source\.item and users\.level both read column"):
        load_items(write_spec(tmp_path, users=given, levels=choices))
    assert load_items(write_spec(tmp_path, users={"path": users, "level": "level"})).users is not None
