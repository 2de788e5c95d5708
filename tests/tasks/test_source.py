"""The description of a table of people: format, columns and rules, and the rows that follow from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pytest

from pldp.errors import SourceError
from pldp.questions.cells import Bins, Choice, Codes, Declared, Product
from pldp.tasks.people import People
from pldp.tasks.source import described
from pldp.tasks.sources.file import File
from pldp.tasks.specfile import load_spec
from tests.people import write_spec


def source_of(folder: Path, name: str, content: bytes = b"", **sections: Any) -> People:
    (folder / name).write_bytes(content)
    source = {"path": name, "user_id": "id", **sections.pop("source", {})}
    file = load_spec(write_spec(folder, source=source, **sections))
    (people,) = described(file)
    assert isinstance(people, People)
    return people


@pytest.mark.parametrize(
    ("name", "stated", "format_"),
    [
        ("a.parquet", None, "parquet"),
        ("a.pq", None, "parquet"),
        ("a.csv", None, "csv"),
        ("a.csv.gz", None, "csv"),
        ("a.data", None, "csv"),
        ("a.csv", "parquet", "parquet"),
    ],
)
def test_the_format_is_stated_or_follows_from_the_name(
    name: str, stated: str | None, format_: str, tmp_path: Path
) -> None:
    file = source_of(tmp_path, name, source={"format": stated}).file
    assert isinstance(file, File)
    assert file.format == format_


def test_odd_column_names_are_quoted(tmp_path: Path) -> None:
    """A column's name is the source's own: quotes and statements in it stay a name."""
    name = 'x"; DROP TABLE people; --'
    content = b'"id","x""; DROP TABLE people; --","level"\n1,a,low\n'
    people = source_of(tmp_path, "a.csv", content, attributes=[{"name": "job", "column": name, "values": ["a"]}])
    with duckdb.connect() as connection:
        assert people.raw(connection).select("cell_0", "raw_0").fetchall() == [("a", 0)]


def test_rules_are_the_declared_values_and_the_levels_strictest_first(tmp_path: Path) -> None:
    levels = {"dependence": 1, "column": "level", "choices": {"low": 1, "high": "1/4", "mid": "1/2"}}
    people = source_of(tmp_path, "a.csv", levels=levels)
    assert people.cells[1].rule == Declared(("female", "male"))
    assert people.choices[0].rule == Choice(("high", "mid", "low"), 0)
    odd = [
        {"name": "job", "values": ["a", "b"], "missing": "b", "other": "a"},
        {"name": "age", "kind": "binned", "edges": [0, 1, 2], "missing": 1.5},
        {"name": "both", "kind": "crosstab", "of": ["age", "job"]},
        {"name": "income", "kind": "number", "bounds": [0, 2]},
    ]
    people = source_of(tmp_path, "a.csv", attributes=odd)
    job, age, income = (cell.rule for cell in people.cells)
    assert job == Declared(("a", "b"), 1, 0)
    assert age == Bins((0.0, 1.0, 2.0), 1)
    assert isinstance(income, Codes)
    assert income.missing is None
    assert people.fields[2].rule == Product((age, job))
    assert people.fields[2].parts == (1, 0)


def test_level_columns(tmp_path: Path) -> None:
    assert [cell.column for cell in source_of(tmp_path, "a.csv").choices] == ["level"]
    each = source_of(tmp_path, "a.csv", levels={"dependence": 1, "column": {"job": "j", "sex": "s"}})
    assert [cell.column for cell in each.choices] == ["j", "s"]
    assert each.levels == ((0,), (1,))
    assigned = source_of(tmp_path, "a.csv", levels={"assigned": {"high": 0.5, "mid": 0.25, "low": 0.25}})
    assert assigned.choices == ()
    assert assigned.assigned == (2**63, 3 * 2**62)


def test_a_missing_column_names_the_specs_column_not_the_files(tmp_path: Path) -> None:
    people = source_of(tmp_path, "a.csv", b"SECRET-1,SECRET-2\n")
    with pytest.raises(SourceError, match="there is no column 'id', which the spec names") as caught:
        people.file.count_with(people.columns)
    assert "SECRET" not in str(caught.value)


def test_a_source_without_undeclared_cells_has_no_error(tmp_path: Path) -> None:
    people = source_of(
        tmp_path, "a.csv", b"id,job,sex,level\n1,farmer,male,low\n", attributes=[{"name": "job", "values": ["farmer"]}]
    )
    with duckdb.connect() as connection, pytest.raises(ValueError, match="not found again"):
        people.undeclared(connection)
