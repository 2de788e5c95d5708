"""Reading a spec file: errors in the words of the file, and its identity."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pldp.errors import SpecError
from pldp.questions.histograms.question import Histograms
from pldp.questions.people.spec import Spec
from pldp.tasks.specfile import load_spec
from tests.people import JOBS, SPEC, world, write_spec


def message(path: Path) -> str:
    with pytest.raises(SpecError) as caught:
        load_spec(path)
    said = str(caught.value)
    assert said.endswith("Nothing was run.")
    assert str(path) in said
    assert caught.value.exit_code == 2
    return said


def test_a_spec_and_its_paths(tmp_path: Path) -> None:
    file = load_spec(world(tmp_path))
    assert file.source == tmp_path / "people.parquet"
    assert file.resolve("../x.csv") == tmp_path.parent / "x.csv"
    (question,) = file.plan.questions
    assert isinstance(question, Histograms)
    assert [attribute.name for attribute in question.attributes] == ["job", "sex"]


def test_the_identity_is_the_content_not_the_writing(tmp_path: Path) -> None:
    first = load_spec(write_spec(tmp_path))
    text = first.path.read_text()
    first.path.write_text("# another remark\n" + text)
    assert load_spec(first.path).identity == first.identity
    assert load_spec(write_spec(tmp_path, budget={"total": 5})).identity != first.identity


def test_another_source_is_another_identity(tmp_path: Path) -> None:
    path = write_spec(tmp_path)
    other = load_spec(path, tmp_path / "other.csv")
    assert other.source == tmp_path / "other.csv"
    assert other.identity != load_spec(path).identity


@pytest.mark.parametrize(
    ("sections", "said"),
    [
        ({"budgets": {}}, "budgets is not a key of the spec; did you mean 'budget'?"),
        ({"budget": {"total": 4, "alocation": "equal"}}, "budget.alocation is not a key of the spec; did you mean"),
        ({"budget": {"total": 4, "zzz": 1}}, "known keys: allocation, total"),
        ({"budget": {"total": -0.5}}, "budget.total: input should be greater than 0 (got -0.5)"),
        ({"budget": {"total": "much"}}, "budget.total must be a finite number or a fraction"),
        ({"budget": {}}, "budget.total is required"),
        ({"source": {"path": "p.csv"}}, "source needs either user_id or one_row_per_user: true"),
        ({"source": {"path": "p.csv", "user_id": "id", "csv": {"delimeter": ";"}}}, "did you mean 'delimiter'?"),
        ({"attributes": []}, "attributes: "),
        ({"attributes": [{"name": "job", "valeus": ["a"]}]}, "attributes[0].valeus is not a key of the spec; did you"),
        ({"attributes": [{"name": "j", "values": [True]}]}, "attributes[0].values[0] must be text: put it in quotes"),
        (
            {"attributes": [{"name": "j", "values": ["a", "a"]}]},
            "values must differ from each other (got 'a' more than once)",
        ),
        (
            {"attributes": [{"name": "c", "kind": "crosstab", "of": ["a", "b"], "assumd": 1}]},
            "attributes[0].assumd is not a key of the spec; did you mean 'assumed'?",
        ),
        (
            {"levels": {"dependence": 1, "column": "l", "choices": {"high": "1/3"}}},
            "choices must give 1, the whole budget",
        ),
        (
            {"levels": {"dependence": 1, "column": "l", "missing": "none"}},
            "missing must be one of choices (got 'none')",
        ),
        (
            {"levels": {"dependence": 0.9, "column": "l"}},
            "levels.dependence: input should be greater than or equal to 1, or input should be 'unknown' (got 0.9)",
        ),
        ({"attributes": [{"name": "Größe", "values": ["a"]}]}, "attributes[0].name must be 1 to 64 letters (a to z)"),
        ({"combination": {"method": "op"}}, "method op needs a reference"),
        ({"combination": {"reference": {"kind": "public"}}}, "needs path exactly when kind is public"),
        ({"retention": {"vault": "burn"}}, "retention.vault: "),
        ({"budget": {"total": 1e-20}}, "budget.total: "),
    ],
)
def test_a_broken_rule_names_field_and_rule(sections: dict[str, Any], said: str, tmp_path: Path) -> None:
    assert said in message(write_spec(tmp_path, **sections))


def test_all_broken_rules_are_told_at_once(tmp_path: Path) -> None:
    said = message(write_spec(tmp_path, budget={"total": 0}, levels={"colum": "l"}, nmae="x"))
    assert "budget.total" in said
    assert "levels.colum" in said
    assert "nmae" in said


def test_several_is_no_kind_that_an_author_writes(tmp_path: Path) -> None:
    """It named keys that no spec has."""
    (tmp_path / "spec.yaml").write_text("kind: several\nname: x\nsource: {path: people.csv}\n")
    with pytest.raises(SpecError, match="several at once stand under questions"):
        load_spec(tmp_path / "spec.yaml")


def test_long_values_are_cut(tmp_path: Path) -> None:
    said = message(write_spec(tmp_path, name="x" * 500))
    assert "…" in said
    assert len(said) < 500


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"name: [", "line 1, column 8: the spec is not valid YAML"),
        (b"- a\n- b\n", "must be a mapping"),
        (b"", "must be a mapping"),
        (b"\xff\xfe\x00", "readable UTF-8 text file"),
        (b"!!python/object/apply:os.getcwd []\n", "not valid YAML"),
    ],
)
def test_a_file_that_is_no_spec(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.yaml"
    path.write_bytes(content)
    assert said in message(path)


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    assert "no such spec" in message(tmp_path / "none.yaml")
    assert "readable UTF-8 text file" in message(tmp_path)


def test_the_shared_spec_is_what_the_tests_think(tmp_path: Path) -> None:
    spec = load_spec(write_spec(tmp_path)).spec
    assert isinstance(spec, Spec)
    assert spec.labels(spec.published[0]) == JOBS
    assert spec.name == SPEC["name"]
