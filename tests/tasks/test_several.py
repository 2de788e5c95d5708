"""Several kinds of questions, the same people: who takes part, what they have in one row, and what is refused."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pldp.tasks.ingest
from pldp.errors import SourceError, SpecError
from pldp.tasks.home import Home
from pldp.tasks.ingest import Ingested, ingest
from pldp.tasks.leftout import remarks
from pldp.tasks.partitions import read_partition
from pldp.tasks.run import Run, open_run
from pldp.tasks.specfile import load_spec
from tests import baskets, items, people
from tests.pldp.questions.aggregates.world import ATTRIBUTES, PROFILES
from tests.several import BASKETS, FILMS, PEOPLE, stranger, world, write_spec

FIELDS = ["value_0", "value_1", "level_0", "level", "items", "profile", "a_0", "a_1", "a_2"]


def filled(spec: Path) -> tuple[Run, Ingested]:
    file = load_spec(spec)
    run = open_run(Home(spec.parent / "home").prepare(), file, "manual")
    return run, ingest.fn(run, file)


def vault(run: Run, found: Ingested) -> pl.DataFrame:
    return pl.concat([read_partition(run, i, FIELDS) for i in range(found.partitions)])


def expected(n_users: int) -> list[tuple[Any, ...]]:
    """Everybody's row by plain joins of the frames."""
    table, takers = baskets.make_table(n_users), baskets.make_users(n_users)["level"]
    films = items.make_items(n_users).join(items.make_catalogue(), on="item")
    counted = {(user, attribute): n for user, attribute, n in films.group_by("user", "attribute").len().iter_rows()}
    profiles = dict(items.make_users(n_users).iter_rows())
    rows = []
    for i, (user, job, sex, level) in enumerate(people.make_people(n_users).iter_rows()):
        sums = [counted.get((user, attribute), 0) for attribute in ATTRIBUTES]
        own = (people.JOBS.index(job), people.SEXES.index(sex), people.LEVELS.index(level))
        held = (("high", "low").index(takers[i]), tuple(np.flatnonzero(table[i]).tolist()))
        rows.append((*own, *held, PROFILES.index(profiles[user]), *sums))
    return sorted(rows)


@pytest.mark.parametrize("cells", [None, 30_000])
def test_a_row_of_the_vault_is_one_persons_answers_to_all_questions(
    cells: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if cells is not None:
        monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", cells)
    run, found = filled(world(tmp_path, 500))
    assert found.n_users == 500
    assert (found.partitions > 1) == (cells is not None)
    rows = [(*row[:4], tuple(row[4]), *row[5:]) for row in vault(run, found).iter_rows()]
    assert sorted(rows) == expected(500)


def test_who_takes_part_stands_in_the_table_of_people(tmp_path: Path) -> None:
    """Whoever holds nothing has the empty set; rows of anybody else are left out, counted and told."""
    spec = world(tmp_path, 500)
    stranger(tmp_path, 3)
    run, found = filled(spec)
    assert found.n_users == 500
    assert vault(run, found)["items"].list.len().min() == 0
    assert [line for line in remarks(run) if "table of people" in line] == [
        f"source: 3 of {len(baskets.make_rows(500)) + 3:,} rows were left out: of users who do not stand in the table "
        "of people"
    ]
    stranger(tmp_path, 100)
    with pytest.raises(SourceError, match=r"rows\.parquet: 103 of .* would be left out .*source.max_left_out"):
        filled(spec)
    assert not list((tmp_path / "home" / "vault").rglob("vault.duckdb"))[1:], "nothing of it is kept"


def test_without_a_table_of_people_everybody_who_is_named_takes_part(tmp_path: Path) -> None:
    spec = world(tmp_path, 200, questions=(BASKETS, FILMS))
    stranger(tmp_path, 1)
    assert filled(spec)[1].n_users == 201


def test_a_person_in_two_rows_is_refused(tmp_path: Path) -> None:
    spec = world(tmp_path, 100)
    rows = pl.read_parquet(tmp_path / "people.parquet")
    pl.concat([rows, rows[:1]]).write_parquet(tmp_path / "people.parquet")
    with pytest.raises(SourceError, match="column id: a user id stands in more than one row"):
        filled(spec)


def test_budgets_of_a_unit_add_up_and_units_do_not(tmp_path: Path) -> None:
    plan = load_spec(world(tmp_path, 10)).plan
    assert plan.units == ("user", "occurrence")
    assert plan.total == Fraction(4) + Fraction(12)
    assert plan.worst_total("user") == 16
    assert plan.worst_total("occurrence") == load_spec(write_films(tmp_path)).plan.worst_total("occurrence")
    assert [question.kind for question in plan.questions] == ["histograms", "items", "aggregates"]


def write_films(folder: Path) -> Path:
    return items.write_spec(folder)


ONE_ROW = {**PEOPLE, "source": {"path": "people.parquet", "one_row_per_user": True}}
AS_LEVEL = {
    **BASKETS,
    "users": {"path": "people.parquet", "user": "id", "level": "SEX"},
    "levels": {"choices": {"female": "1/2", "male": 1}, "dependence": 1},
}
AS_ITEMS = {**PEOPLE, "attributes": [{"name": "items", "column": "job", "values": list(people.JOBS)}]}
HIDDEN = {**PEOPLE, "levels": {**PEOPLE["levels"], "visibility": "hidden", "epsilon_p": 1, "max_leak": 8}}
SAME_LEVEL = {**BASKETS, "users": {"path": "people.parquet", "user": "id", "level": "level"}}


@pytest.mark.parametrize(
    ("questions", "sections", "told"),
    [
        ((PEOPLE, PEOPLE), {}, "must be of different kinds"),
        ((ONE_ROW, BASKETS), {}, "needs source.user_id beside other tables"),
        ((PEOPLE, AS_LEVEL), {}, r"questions\[0\]\.attributes\.sex and questions\[1\]\.users\.level both read column"),
        ((HIDDEN, SAME_LEVEL), {}, r"both read column 'level'"),
        ((PEOPLE, {**BASKETS, "name": "b"}), {}, "name is said once, at the top"),
        ((PEOPLE, {**BASKETS, "expected": {"users": 5}}), {}, "expected.users is said once"),
        ((PEOPLE, BASKETS), {"source": {"reports": "sent"}}, "takes no source where clients' reports"),
        ((PEOPLE,), {}, "questions"),
        ((PEOPLE, {**FILMS, "providers": {"job": {"epsilon": 1}}}), {}, r"must have different names \(got job\)"),
        ((AS_ITEMS, BASKETS), {}, r"must have different names \(got items\)"),
        ((PEOPLE, {**BASKETS, "kind": "zebras"}), {}, "kind must be histograms, items or aggregates"),
    ],
)
def test_what_is_refused_with_its_reason(
    questions: tuple[Any, ...], sections: dict[str, Any], told: str, tmp_path: Path
) -> None:
    world(tmp_path, 20)
    with pytest.raises(SpecError, match=told):
        load_spec(write_spec(tmp_path, *questions, **sections))
    assert load_spec(write_spec(tmp_path, PEOPLE, SAME_LEVEL)).plan.units == ("user",), "public choices may be shared"


def test_another_source_for_several_tables_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="--source names one table, and the spec reads several"):
        load_spec(world(tmp_path, 20), tmp_path / "people.parquet")


def test_no_two_questions_share_a_stream(tmp_path: Path) -> None:
    """A provider, a level and an attribute may have the same name; noise of an evaluation is everybody's own."""
    alike = {**FILMS, "providers": {"low": {"epsilon": 1}, "high": {"epsilon": 2}}}
    world(tmp_path, 10)
    plan = load_spec(write_spec(tmp_path, PEOPLE, BASKETS, alike)).plan
    labels = [sheet.labels for _, sheet in plan.sheets]
    assert len(set(labels)) == len(labels)
    assert len({sheet.path for _, sheet in plan.sheets}) == len(labels)
