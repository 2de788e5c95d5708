"""The source file: format, columns, and the statements made from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pldp.errors import SourceError
from pldp.tasks.source import SourceFile
from pldp.tasks.specfile import load_spec
from tests.people import write_spec


def source_of(folder: Path, name: str, content: bytes = b"", **sections: Any) -> SourceFile:
    (folder / name).write_bytes(content)
    source = {"path": name, "user_id": "id", **sections.pop("source", {})}
    file = load_spec(write_spec(folder, source=source, **sections))
    return SourceFile(file.spec, file.source, file.plan.levels)


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
    assert source_of(tmp_path, name, source={"format": stated}).format == format_


def test_odd_column_names_are_quoted(tmp_path: Path) -> None:
    """A column's name is the source's own: quotes and statements in it stay a name."""
    name = 'x"; DROP TABLE people; --'
    header = b'"id","x""; DROP TABLE people; --","level"\n'
    source = source_of(tmp_path, "a.csv", header, attributes=[{"name": "job", "column": name, "values": ["a"]}])
    query, parameters = source.people(tmp_path / "pieces")
    assert '"x""; DROP TABLE people; --"' in query
    assert parameters["path"] == str(tmp_path / "a.csv")


def test_domains_are_the_declared_values_and_the_levels_strictest_first(tmp_path: Path) -> None:
    levels = {"column": "level", "choices": {"low": 1, "high": "1/4", "mid": "1/2"}}
    source = source_of(tmp_path, "a.csv", levels=levels)
    found = dict(source.domains())
    assert found["domain_1"] == ("female", "male")
    assert found["level_domain"] == ("high", "mid", "low")


def test_level_columns(tmp_path: Path) -> None:
    assert source_of(tmp_path, "a.csv").level_columns == ("level",)
    each = source_of(tmp_path, "a.csv", levels={"column": {"job": "j", "sex": "s"}})
    assert each.level_columns == ("j", "s")
    assigned = source_of(tmp_path, "a.csv", levels={"assigned": {"high": 0.5, "mid": 0.2, "low": 0.3}})
    assert assigned.level_columns == ()


def test_a_missing_column_names_the_specs_column_not_the_files(tmp_path: Path) -> None:
    source = source_of(tmp_path, "a.csv", b"SECRET-1,SECRET-2\n")
    with pytest.raises(SourceError, match="there is no column 'id', which the spec names") as caught:
        source.people(tmp_path / "pieces")
    assert "SECRET" not in str(caught.value)


def test_a_row_without_undeclared_cells_is_no_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="every cell of the row is declared"):
        source_of(tmp_path, "a.csv").undeclared((1, 0, 0))
