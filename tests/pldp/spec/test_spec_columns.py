"""A source's column has one role: choices are public, so no value and no user id may be one."""

from __future__ import annotations

import itertools
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from pldp.errors import SpecError
from pldp.flows.cli import app
from pldp.tasks.specfile import load_spec
from tests import baskets
from tests.pldp.questions.aggregates import world as aggregates
from tests.pldp.specs import changed

HIV = {"name": "hiv", "values": ["positive", "negative"]}
INCOME = {"name": "income", "kind": "number", "bounds": [0, 10]}
BINNED = {"name": "income", "kind": "binned", "edges": [0, 5, 10]}
ROWS = {"path": "rows.csv"}

SHARED: list[tuple[str, dict[str, Any], str, str]] = [
    ("histograms", {"levels": {"dependence": 1, "column": "sex"}}, "attributes.sex", "levels.column"),
    ("histograms", {"levels": {"dependence": 1, "column": "SEX"}}, "attributes.sex", "levels.column"),
    (
        "histograms",
        {"attributes": [{**HIV, "column": "test"}], "levels": {"dependence": 1, "column": "test"}},
        "attributes.hiv",
        "levels.column",
    ),
    (
        "histograms",
        {"levels": {"dependence": 1, "column": {"sex": "sex_level", "job": "sex"}}},
        "attributes.sex",
        "levels.column.job",
    ),
    (
        "histograms",
        {"attributes": [INCOME], "levels": {"dependence": 1, "column": "income"}},
        "attributes.income",
        "levels.column",
    ),
    (
        "histograms",
        {"attributes": [BINNED], "levels": {"dependence": 1, "column": "income"}},
        "attributes.income",
        "levels.column",
    ),
    (
        "histograms",
        {"attributes": [INCOME], "numbers": {"tau": 2, "importance": {"income": "income"}}},
        "attributes.income",
        "numbers.importance.income",
    ),
    (
        "histograms",
        {
            "attributes": [
                {**HIV, "only_in_crosstabs": True},
                {"name": "job", "values": ["a", "b"]},
                {"name": "both", "kind": "crosstab", "of": ["hiv", "job"]},
            ],
            "levels": {"dependence": 1, "column": "hiv"},
        },
        "attributes.hiv",
        "levels.column",
    ),
    ("histograms", {"source": {"path": "p.csv", "user_id": "sex"}}, "attributes.sex", "source.user_id"),
    ("histograms", {"source": {"path": "p.csv", "user_id": "level"}}, "levels.column", "source.user_id"),
    ("items", {"source": {**ROWS, "level": "item"}, "users": None}, "source.item", "source.level"),
    ("items", {"source": {**ROWS, "user": "item"}}, "source.item", "source.user"),
    ("items", {"users": {"path": "users.csv", "level": "user"}}, "users.level", "users.user"),
    ("aggregates", {"source": {**ROWS, "profile": "item"}, "users": None}, "source.item", "source.profile"),
    (
        "aggregates",
        {"source": {**ROWS, "count": "n", "profile": "n"}, "users": None},
        "source.count",
        "source.profile",
    ),
    ("aggregates", {"source": {**ROWS, "user": "item"}}, "source.item", "source.user"),
    ("aggregates", {"users": {"path": "users.csv", "profile": "user"}}, "users.profile", "users.user"),
]


def written(folder: Path, kind: str, sections: dict[str, Any]) -> Path:
    path = folder / "spec.yaml"
    whole = {"items": baskets.SPEC, "aggregates": aggregates.SPEC}.get(kind)
    content = changed(**sections) if whole is None else {**deepcopy(whole), **sections}
    path.write_text(yaml.safe_dump({key: value for key, value in content.items() if value is not None}))
    return path


@pytest.mark.parametrize(("kind", "sections", "first", "second"), SHARED)
def test_a_column_with_two_roles_is_refused(
    kind: str, sections: dict[str, Any], first: str, second: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError) as refused:
        load_spec(written(tmp_path, kind, sections))
    assert f"{first} and {second} both read column" in str(refused.value)


@pytest.mark.parametrize("command", ["release", "plan", "evaluate"])
def test_the_exact_count_of_a_value_cannot_be_had_as_that_of_a_level(command: str, tmp_path: Path) -> None:
    """The attack: who "chooses" the level `positive` is everybody who is, and how many choose a level is public."""
    (tmp_path / "people.csv").write_text("id,hiv\n" + "".join(f"{i},negative\n" for i in range(100)))
    levels = {"dependence": 1, "column": "hiv", "choices": {"positive": "1/2", "negative": 1}}
    spec = written(tmp_path, "histograms", {"attributes": [HIV], "levels": levels})
    home = [] if command == "plan" else ["--home", str(tmp_path / "home")]
    done = CliRunner().invoke(app, [command, str(spec), *home])
    assert isinstance(done.exception, SpecError)
    assert "attributes.hiv and levels.column both read column 'hiv'" in str(done.exception)
    assert not (tmp_path / "home").exists()


def test_two_attributes_may_read_one_column(tmp_path: Path) -> None:
    attributes = [{**INCOME, "name": name, "column": "income"} for name in ("mean", "again")]
    for pair in itertools.permutations(attributes):
        load_spec(written(tmp_path, "histograms", {"attributes": list(pair)}))
