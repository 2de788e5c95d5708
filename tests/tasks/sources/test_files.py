"""Folders and patterns of files as one source."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pldp.errors import SourceError
from pldp.tasks.check import check
from pldp.tasks.ingest import ingest
from pldp.tasks.people import People
from pldp.tasks.run import Run
from pldp.tasks.source import described
from pldp.tasks.specfile import SpecFile, load_spec
from tests.people import make_people, opened, write_spec


def split(folder: Path, people: pl.DataFrame, names: list[str]) -> None:
    """The people, dealt to files of these names in equal parts."""
    folder.mkdir(exist_ok=True)
    size = -(-people.height // len(names))
    for i, name in enumerate(names):
        part = people.slice(i * size, size)
        if name.endswith(".parquet"):
            part.write_parquet(folder / name)
        elif name.endswith(".gz"):
            (folder / name).write_bytes(gzip.compress(part.write_csv().encode()))
        else:
            part.write_csv(folder / name)


def spec_of(folder: Path, path: str = "people", **source: Any) -> Path:
    return write_spec(folder, source={"path": path, "user_id": "id", **source})


def looked(spec: Path, home: Path) -> tuple[Run, SpecFile, int]:
    run, file = opened(spec, home)
    return run, file, ingest.fn(run, file).n_users


@pytest.mark.parametrize(
    ("names", "path"),
    [
        (["a.csv", "b.csv", "c.csv"], "people"),
        (["a.parquet", "b.parquet"], "people"),
        (["a.csv.gz", "b.csv"], "people/*"),
        (["2026-01.csv", "2026-02.csv"], "people/2026-*.csv"),
        (["it's [1].csv", 'say "hi".csv', "two\nlines.csv", "a,b;c.csv"], "people"),
        (["[1].parquet", "x*.parquet", "?.parquet"], "people"),
    ],
)
def test_everybody_is_read_once(names: list[str], path: str, tmp_path: Path) -> None:
    split(tmp_path / "people", make_people(600), names)
    _, file, n_users = looked(spec_of(tmp_path, path), tmp_path / "home")
    assert n_users == 600
    assert check(file).problems == []
    (people,) = described(file)
    assert isinstance(people, People)
    assert len(people.file.parts(100)) == len(names)


def test_a_pattern_of_folders_below(tmp_path: Path) -> None:
    people = make_people(400)
    for i, level in enumerate(("level=low", "level=high")):
        (tmp_path / "people" / level).mkdir(parents=True)
        people.slice(i * 200, 200).write_parquet(tmp_path / "people" / level / "rows.parquet")
    run, _, n_users = looked(spec_of(tmp_path, "people/**/*.parquet"), tmp_path / "home")
    assert n_users == 400
    levels = pl.read_parquet(run.vault.with_name("partitions"))["level_0"]
    assert levels.n_unique() == 3, "a folder's name says nothing of the people in it"


def test_a_file_of_a_patterns_very_name_is_that_file(tmp_path: Path) -> None:
    make_people(50).write_csv(tmp_path / "p[12].csv")
    make_people(70).write_csv(tmp_path / "p1.csv")
    assert looked(spec_of(tmp_path, "p[12].csv"), tmp_path / "home")[2] == 50


def test_names_of_no_data_are_passed_over(tmp_path: Path) -> None:
    split(tmp_path / "people", make_people(100), ["a.csv"])
    for name in ("_SUCCESS", ".a.csv.crc"):
        (tmp_path / "people" / name).write_text("no rows")
    assert looked(spec_of(tmp_path), tmp_path / "home")[2] == 100


def link(folder: Path) -> None:
    (folder.parent / "elsewhere.csv").write_text("id,job,sex,level\n")
    (folder / "b.csv").symlink_to(folder.parent / "elsewhere.csv")


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (link, r"b\.csv: is a link, and a source is read from regular files only"),
        (lambda folder: os.mkfifo(folder / "b.csv"), r"b\.csv: is a named pipe"),
        (lambda folder: (folder / "b").mkdir(), r"b: is a folder.*pattern: path: 'folder/\*\*/\*\.parquet'"),
        (lambda folder: (folder / "a.csv").unlink(), "the folder has no file"),
        (
            lambda folder: make_people(3).write_parquet(folder / "b.parquet"),
            r"ends like csv and .*b\.parquet like parquet",
        ),
        (lambda folder: (folder / "b.csv").write_text("id,sex,job,level\n"), r"b\.csv: its columns are not those of"),
        (lambda folder: (folder / "b.csv").write_text("id,job,sex\n"), r"b\.csv: its columns are not those of"),
        (lambda folder: (folder / "b.csv").write_bytes(b"id,job,sex,level\n9,\xff,male,low\n"), r"b\.csv, line 2"),
        (
            lambda folder: (folder / "b.csv").write_text('id,job,sex,level\n9,"smith,male,low\n'),
            r"b\.csv, line 2: a quote",
        ),
        (lambda folder: (folder / "b.csv").write_text(""), r"b\.csv: cannot be read as csv with a header"),
    ],
)
def test_folders_that_cannot_be_read(spoil: Callable[[Path], object], said: str, tmp_path: Path) -> None:
    split(tmp_path / "people", make_people(100), ["a.csv"])
    spoil(tmp_path / "people")
    spec = spec_of(tmp_path)
    with pytest.raises(SourceError, match=said):
        looked(spec, tmp_path / "home")
    (problem,) = check(load_spec(spec)).problems
    assert "Nothing was" not in str(problem)


def test_a_pattern_that_matches_nothing(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"people/\*\.csv: no file has a name of this pattern"):
        opened(spec_of(tmp_path, "people/*.csv"), tmp_path / "home")


def test_parquet_files_of_other_types(tmp_path: Path) -> None:
    """The types of the first would be forced on the second: 1.5 would be 2."""
    people = make_people(10).drop("id").with_row_index("id")
    split(tmp_path / "people", people, ["a.parquet"])
    people.with_columns(id=pl.col("id") + 10.5).write_parquet(tmp_path / "people" / "b.parquet")
    with pytest.raises(SourceError, match=r"b\.parquet: its columns are not those of .*a\.parquet"):
        looked(spec_of(tmp_path), tmp_path / "home")


def test_columns_of_parquet_files_in_another_order(tmp_path: Path) -> None:
    people = make_people(20)
    split(tmp_path / "people", people.head(10), ["a.parquet"])
    people.tail(10).select("level", "sex", "id", "job").write_parquet(tmp_path / "people" / "b.parquet")
    run, _, n_users = looked(spec_of(tmp_path), tmp_path / "home")
    assert n_users == 20
    assert pl.read_parquet(run.vault.with_name("partitions")).null_count().sum_horizontal().item() == 0


def test_a_user_in_two_files(tmp_path: Path) -> None:
    split(tmp_path / "people", make_people(100), ["a.csv"])
    make_people(1).write_csv(tmp_path / "people" / "b.csv")
    spec = spec_of(tmp_path)
    with pytest.raises(SourceError, match="column id: a user id stands in more than one row"):
        looked(spec, tmp_path / "home")
    (problem,) = check(load_spec(spec)).problems
    assert "column id: a user id stands in more than one row" in str(problem)


def test_the_place_of_a_cell_is_that_in_its_file(tmp_path: Path) -> None:
    people = make_people(90)
    bad = people.with_columns(sex=pl.when(pl.col("id") == "user-64").then(pl.lit("zqBADqz")).otherwise("sex"))
    split(tmp_path / "people", bad, ["a.csv", "b.csv", "c.csv"])
    b = tmp_path / "people" / "b.csv"
    b.write_text(b.read_text().replace("user-31,", "user-31,one,too,many,", 1))  # a row that does not parse
    spec = spec_of(tmp_path, max_left_out=0.5)
    with pytest.raises(SourceError, match=r"c\.csv, readable row 5, column sex: the cell holds a value") as refused:
        looked(spec, tmp_path / "home")
    assert "zqBADqz" not in str(refused.value)
    problems = check(load_spec(spec)).problems
    assert [problem for problem in problems if "c.csv, readable row 5, column sex: 1 cell" in str(problem)] == problems


def test_the_release_is_named_after_names_and_contents(tmp_path: Path) -> None:
    folder, home, spec = tmp_path / "people", tmp_path / "home", spec_of(tmp_path)
    split(folder, make_people(100), ["a.csv", "b.csv"])
    first = opened(spec, home)[0].release_id
    (folder / "_SUCCESS").write_text("")
    assert opened(spec, home)[0].release_id == first
    seen = {first}
    for change in (
        lambda: (folder / "b.csv").rename(folder / "c.csv"),
        lambda: (folder / "c.csv").write_text((folder / "a.csv").read_text()),
        lambda: (folder / "d.csv").write_text("id,job,sex,level\n"),
    ):
        change()
        seen.add(opened(spec, home)[0].release_id)
    assert len(seen) == 4


@pytest.mark.parametrize("change", ["grown", "touched", "replaced"])
def test_a_folder_that_changes_while_it_is_read(change: str, tmp_path: Path) -> None:
    folder = tmp_path / "people"
    split(folder, make_people(100), ["a.csv", "b.csv"])
    run, file = opened(spec_of(tmp_path), tmp_path / "home")
    if change == "grown":
        (folder / "c.csv").write_text("id,job,sex,level\nnew,smith,male,low\n")
    elif change == "touched":
        os.utime(folder / "b.csv")
    else:
        (folder / "x").write_bytes((folder / "b.csv").read_bytes())
        (folder / "x").rename(folder / "b.csv")
    with pytest.raises(SourceError, match="was changed or replaced while it was read"):
        ingest.fn(run, file)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_ten_thousand_files(ending: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    many = 10_000 if pytestconfig.getoption("--slow") else 1_500
    split(tmp_path / "people", make_people(2 * many), [f"{i:05d}.{ending}" for i in range(many)])
    assert looked(spec_of(tmp_path), tmp_path / "home")[2] == 2 * many


def test_rows_without_ids_are_told_apart_across_files(tmp_path: Path) -> None:
    split(tmp_path / "people", make_people(100).drop("id"), ["a.csv", "b.csv"])
    spec = write_spec(tmp_path, source={"path": "people", "one_row_per_user": True})
    assert looked(spec, tmp_path / "home")[2] == 100
