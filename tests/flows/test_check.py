"""`pldp check`: everything that is wrong, at once, in seconds, without Prefect; and `release` says the same first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import baskets, items, people
from tests.flows.conftest import Pldp

MARK = "zqMARKqz"


WRONG: list[dict[str, Any]] = [
    {"name": "job", "values": ["a", "b"]},
    {"name": "sex", "values": ["f", "m"]},
    {"name": "income", "kind": "number", "bounds": [0, 10]},
]


@pytest.fixture
def wrong(tmp_path: Path) -> Path:
    """A spec and source with everything wrong that a spec and source can have, but for what hides the rest."""
    lines = [f"{i},a,f,1,low" for i in range(200)]
    lines[3], lines[5], lines[7] = f"3,{MARK},f,1,low", f"5,{MARK},,1,low", f"7,a,f,{MARK},low"
    lines += [f"8,a,f,1,{MARK}", ",a,f,1,low", ",a,f,1,low", ",a,f,1,low", "9,a"]
    (tmp_path / "people.csv").write_text("id,job,sex,income,level\n" + "\n".join(lines) + "\n")
    return people.write_spec(tmp_path, source={"path": "people.csv", "user_id": "id"}, attributes=WRONG)


def test_all_problems_at_once_and_never_a_value(wrong: Path, pldp: Pldp) -> None:
    done = pldp("check", wrong)
    assert done.code == 2
    said = " ".join(done.err.split())
    for part in (
        "readable row 4, column job: 2 cells hold a value that is not declared",
        "column sex: 1 cell holds nothing, and no missing value is declared",
        "column income: 1 cell holds no number",
        "column id: a user id stands in more than one row (1 row too many)",
        "4 of 205 rows would be left out (1 of too few or too many cells, 3 without a user id)",
        "Nothing was run.",
    ):
        assert part in said, part
    assert "column level: 1 cells hold what the spec does not declare, and count as high" in " ".join(done.out.split())
    assert MARK not in done.out + done.err


@pytest.mark.parametrize("command", ["release", "evaluate"])
def test_a_release_says_the_same_before_anything_starts(command: str, wrong: Path, pldp: Pldp) -> None:
    done = pldp(command, wrong, "--home", wrong.parent / "home")
    assert done.code == 2
    assert done.err == pldp("check", wrong).err
    assert not (wrong.parent / "home").exists(), "nothing half made"


@pytest.mark.usefixtures("server")
def test_a_large_source_is_looked_at_by_ingest_and_all_is_told_and_nothing_left(
    wrong: Path, pldp: Pldp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a release does before it starts does not grow with the users; what is told of a bad source is the same."""
    first = pldp("check", wrong)
    monkeypatch.setattr("pldp.tasks.check.MOST_BYTES", 0)
    home = wrong.parent / "home"
    done = pldp("release", wrong, "--home", home)
    assert done.code == 2
    told = [
        line for line in " ".join(first.err.split()).removesuffix("Nothing was run.").split(". ") if "column" in line
    ]
    said = " ".join(done.err.split())
    assert told
    assert all(part in said for part in told), said
    assert said.endswith("Nothing was perturbed.")
    assert MARK not in done.out + done.err
    assert not any(path.is_dir() for path in (home / "vault").iterdir()), "the home's key alone"
    assert not any((home / "releases").iterdir())


def test_a_large_source_without_a_column_is_refused_before_anything_starts(
    wrong: Path, pldp: Pldp, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pldp.tasks.check.MOST_BYTES", 0)
    (wrong.parent / "people.csv").write_text("id,job,sex,level\n1,a,f,low\n")
    done = pldp("release", wrong, "--home", wrong.parent / "home")
    assert done.code == 2
    assert "there is no column 'income', which the spec names" in " ".join(done.err.split())
    assert not (wrong.parent / "home").exists()


def test_missing_columns_the_header_and_a_likely_delimiter(tmp_path: Path, pldp: Pldp) -> None:
    (tmp_path / "people.csv").write_text("id;job;level\n1;farmer;low\n")
    spec = people.write_spec(tmp_path, source={"path": "people.csv", "user_id": "id"})
    said = " ".join(pldp("check", spec).err.split())
    for column in ("id", "job", "sex", "level"):
        assert f"there is no column '{column}', which the spec names" in said
    assert "the header has these columns: id;job;level." in said
    (tmp_path / "people.csv").write_text(f"number,job,sex,level\n1,{MARK},male,low\n")
    attributes = [{"name": "job", "values": ["a", "b"]}]
    done = pldp(
        "check", people.write_spec(tmp_path, source={"path": "people.csv", "user_id": "id"}, attributes=attributes)
    )
    assert "there is no column 'id'" in done.err
    assert "column job: 1 cell holds a value that is not declared" in done.err, "both at once"
    assert 'the delimiter is likely a semicolon: say `delimiter: ";"` under source.csv' in said


def test_a_first_line_that_may_be_somebodys_row_is_not_shown(tmp_path: Path, pldp: Pldp) -> None:
    source = {"path": "people.csv", "user_id": "id"}
    for line in (f"{MARK},farmer,male,low\n", f"{MARK};farmer;male;low\n", f"{MARK}\n"):
        (tmp_path / "people.csv").write_text(line * 2)
        done = pldp("check", people.write_spec(tmp_path, source=source))
        assert done.code == 2
        assert "no column of the spec; if it is no header, say `header: false`" in " ".join(done.err.split())
        assert MARK not in done.err + done.out


@pytest.mark.parametrize("where", ["source", "spec"])
def test_a_pipe_or_a_device_is_refused_at_once(where: str, tmp_path: Path, pldp: Pldp) -> None:
    """Nobody may ever write to a pipe, and the device has no end."""
    spec = people.write_spec(tmp_path, source={"path": "people.csv", "user_id": "id"})
    bad = spec if where == "spec" else tmp_path / "people.csv"
    for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
        bad.unlink(missing_ok=True)
        make(bad)
        done = pldp("check", spec)
        assert done.code == 2
        assert ("regular file" if where == "source" else "must be a readable UTF-8 text file") in done.err


def test_a_folder_a_missing_file_and_a_stray_quote(tmp_path: Path, pldp: Pldp) -> None:
    spec = people.world(tmp_path)
    assert "State source.format, or name files of one format" in pldp("check", spec, "--source", tmp_path).err
    assert "cannot be read (No such file" in pldp("check", spec, "--source", tmp_path / "nowhere").err
    (tmp_path / "people.csv").write_text('id,job,sex,level\n1,"farmer,male,low\n')
    done = pldp("check", spec, "--source", tmp_path / "people.csv")
    assert "line 2: a quote opens here" in done.err
    bad = people.write_spec(tmp_path, budget={"total": 0})
    assert pldp("check", bad).code == 2


def test_items_and_aggregates(tmp_path: Path, pldp: Pldp) -> None:
    spec = baskets.world(tmp_path / "a", 50, pl.DataFrame({"user": ["user-1", None], "item": [MARK, "milk"]}))
    said = " ".join(pldp("check", spec).err.split())
    assert "column item: 1 cell: the item is not declared" in said
    assert "1 of 2 rows would be left out (0 of too few or too many cells, 1 without a user id)" in said
    assert "Mend them, or state a larger share." in said
    rows = pl.DataFrame({"user": ["user-1"] * 2, "item": ["film-1", MARK], "n": ["1", "-3"]})
    source = {"path": "items.parquet", "count": "n"}
    said = " ".join(pldp("check", items.world(tmp_path / "b", 50, rows, source=source)).err.split())
    assert "column item: 1 cell: the item is not in the catalogue" in said
    assert "column n: 1 cell is no whole number" in said
    assert MARK not in said
    for good in (baskets.world(tmp_path / "c", 50), items.world(tmp_path / "d", 50)):
        done = pldp("check", good)
        assert done.code == 0, done.err
        assert "a release would read this. Nothing was run." in " ".join(done.out.split())


def test_what_a_check_passes_ingest_reads_and_it_is_quick_without_prefect(tmp_path: Path, pldp: Pldp) -> None:
    """The sample of 100,000; in about 3 s on a quiet machine."""
    assert pldp("sample", tmp_path).code == 0
    program = (
        "import json, sys, time; start = time.process_time(); from pldp.flows.cli import app; "
        f"app(['check', {str(tmp_path / 'sample.yaml')!r}], standalone_mode=False); "
        "heavy = [name in sys.modules for name in ('prefect', 'great_expectations')]; "
        "print(json.dumps([time.process_time() - start, *heavy]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    seconds, *imported = json.loads(done.stdout.splitlines()[-1])
    assert imported == [False, False]
    assert seconds < 6
    assert "100,000 rows, 0 left out" in " ".join(done.stdout.split())
    assert {path.name for path in tmp_path.iterdir()} == {"sample.yaml", "sample.parquet"}


@pytest.mark.usefixtures("server")
def test_what_was_left_out_is_told_on_the_terminal_and_nowhere_else(tmp_path: Path, pldp: Pldp) -> None:
    lines = [f"{i},farmer,male,low" for i in range(997)] + ["x,farmer,male,huh", "y,farmer", ",farmer,male,low"]
    (tmp_path / "people.csv").write_text("id,job,sex,level\n" + "\n".join(lines) + "\n")
    spec = people.write_spec(tmp_path, source={"path": "people.csv", "user_id": "id"})
    home = tmp_path / "home"
    done = pldp("release", spec, "--home", home)
    assert done.code == 0, done.err
    told = (
        "source: 1 of 1,000 rows was left out: with too few cells",
        "source: 1 of 1,000 rows was left out: without a user id",
        "column level: 1 cells hold what the spec does not declare, and count as high",
    )
    for remark in told:
        assert f"ingest: {remark}" in done.err
        assert remark not in done.out
    kept = [path for path in home.rglob("*") if path.is_file()]
    words = (b"left out: ", b"hold what the spec", b"TOO FEW", b"MISSING COLUMNS", b"NO USER ID")
    assert not [path for path in kept for word in words if word in path.read_bytes()]


def test_a_source_without_a_readable_row_is_told(tmp_path: Path, pldp: Pldp) -> None:
    """It ended in a TypeError: there was nothing to count."""
    spec = people.write_spec(tmp_path, source={"path": "people.csv", "user_id": "id", "max_left_out": 1})
    (tmp_path / "people.csv").write_text("id,job,sex,level\n" + "few,cells\n" * 50)
    done = pldp("check", spec)
    assert done.code == 2
    assert "people.csv: no readable row with a user. Check source and its columns." in done.err
    assert "50 rows, 50 left out" in done.out + done.err


def test_reports_of_clients_are_looked_at(tmp_path: Path, pldp: Pldp) -> None:
    values = ["soup", "salad"]
    spec = people.write_spec(
        tmp_path, source={"reports": "sent"}, attributes=[{"name": "meal", "values": values}], levels={"dependence": 1}
    )
    done = pldp("check", spec)
    assert done.code == 2
    assert "sent: cannot be read (No such file or directory). Correct source.reports" in done.err
    folder = tmp_path / "sent" / "attribute=meal" / "level=high"
    folder.mkdir(parents=True)
    assert "sent: no reports. Check source.reports and its folders." in pldp("check", spec).err
    pq.write_table(pa.table({"report": pa.array([0], pa.uint8())}), folder / "1.parquet")
    done = pldp("check", spec)
    assert done.code == 0, done.err
    assert "sent: reports of 1 users in 1 files." in done.out
    pq.write_table(pa.table({"report": pa.array([7], pa.uint8())}), folder / "2.parquet")
    done = pldp("check", spec)
    assert done.code == 2
    assert "set aside: 1 report: no report that the plan's channel can make" in done.out
    assert "0.5 of what clients sent would be set aside, more than the share source.max_left_out allows" in done.err
    assert "the gate set_aside would refuse the release. Take these files away" in done.err
    people.write_spec(
        tmp_path,
        source={"reports": "sent", "max_left_out": 0.5},
        attributes=[{"name": "meal", "values": values}],
        levels={"dependence": 1},
    )
    done = pldp("check", spec)
    assert done.code == 0, done.err
    assert "set aside: 1 report" in done.out


def test_a_plan_of_aggregates_writes_the_share_of_everybody_in_full(tmp_path: Path, pldp: Pldp) -> None:
    done = pldp("plan", items.world(tmp_path, 50, profiles={"even": 1}, default="even", expected={"users": 50}))
    assert done.code == 0, done.err
    assert "profiles: even 100%" in done.out


@pytest.mark.parametrize("number", [{"kind": "number", "bounds": [0, 10]}, {"kind": "binned", "edges": [0, 5, 10]}])
def test_a_column_without_a_single_number_is_refused_and_some_texts_are_told(
    number: dict[str, Any], tmp_path: Path, pldp: Pldp
) -> None:
    """Decimal commas, of which all would count as missing, and everybody's mean as that value."""
    spec = people.write_spec(
        tmp_path,
        source={"path": "people.csv", "user_id": "id"},
        attributes=[{"name": "income", "missing": 0, **number}],
    )
    source = tmp_path / "people.csv"
    source.write_text("id,income,level\n" + "".join(f'{i},"{i},5",low\n' for i in range(9)) + "9,,low\n")
    for command in (("check", spec), ("release", spec, "--home", tmp_path / "home")):
        done = pldp(*command)
        said = " ".join(done.err.split())
        assert done.code == 2, said
        assert "people.csv, column income: 9 cells hold no number but other text, and no cell a number" in said
        assert "Write numbers as 1234.5" in said
        assert "8,5" not in done.out + done.err
    source.write_text("id,income,level\n1,2.5,low\n2,,low\n3,n/a,low\n4,none,low\n5,NaN,low\n")
    done = pldp("check", spec)
    assert done.code == 0, done.err
    assert "column income: 2 cells hold no number but other text, and count as missing." in " ".join(done.out.split())
    source.write_text("id,income,level\n1,,low\n2,nan,low\n")
    assert pldp("check", spec).code == 0


def test_levels_of_which_none_is_declared_are_refused_and_some_are_told(tmp_path: Path, pldp: Pldp) -> None:
    """A mistyped column or level: all would be protected alike, by the level of those who state none."""
    source = {"path": "people.csv", "user_id": "id"}
    spec, answers = people.write_spec(tmp_path, source=source), tmp_path / "people.csv"
    answers.write_text(f"id,job,sex,level\n1,farmer,male,{MARK}\n2,nurse,male,Low\n3,nurse,male,\n")
    for command in (("check", spec), ("release", spec, "--home", tmp_path / "home")):
        done = pldp(*command)
        said = " ".join(done.err.split())
        assert done.code == 2, said
        assert "people.csv, column level: 2 cells hold a choice, and none one that the spec declares" in said
        assert "so everybody would count as high" in said
        assert said.endswith("Nothing was run.")
        assert MARK not in done.out + done.err
    for line, told in (("4,nurse,male,low\n", 2), ("4,nurse,male,\n", 0)):
        answers.write_text("id,job,sex,level\n" + (f"1,nurse,male,{MARK}\n2,nurse,male,Low\n" if told else "") + line)
        done = pldp("check", spec)
        assert done.code == 0, done.err
        assert (f"{told} cells hold what the spec does not declare, and count as high." in done.out) == bool(told)
    rows = pl.DataFrame({"user": ["user-1", "user-2"], "item": ["film-1"] * 2, "taste": [MARK, None]})
    world = items.world(tmp_path / "b", 2, rows, source={"path": "items.parquet", "profile": "taste"}, users=None)
    said = " ".join(pldp("check", world).err.split())
    assert "column taste: 1 cell holds a choice, and none one that the spec declares" in said
    assert MARK not in said


def test_a_user_of_two_choices_is_told_before_anything_starts(tmp_path: Path, pldp: Pldp) -> None:
    """An empty cell chooses too: it states the default."""
    for stated, refused in ((["even", "odd"], True), (["even", None], True), (["even", "even"], False)):
        rows = pl.DataFrame({"user": ["user-1"] * 2, "item": ["film-1", "film-2"], "taste": stated})
        profiles = {"profiles": {"even": 1, "odd": 1, "shy": "1/2"}, "default": "shy", "users": None, "expected": None}
        spec = items.world(tmp_path, 2, rows, source={"path": "items.parquet", "profile": "taste"}, **profiles)
        done = pldp("check", spec)
        assert (done.code == 2) is refused, done.err
        told = "items.parquet, column taste: a user states two different profiles, and only one can be kept"
        assert (told in " ".join(done.err.split())) is refused
    one = {"holds": "one", "itemsets": {"minimum_support": 0.1, "length": 1}, "users": None, "levels": None}
    for held, refused in ((["milk", "beer"], True), (["milk", None], False), (["milk", "milk"], False)):
        rows = pl.DataFrame({"user": ["user-1"] * 2, "item": held})
        done = pldp("check", baskets.world(tmp_path, 2, rows, **one))
        assert (done.code == 2) is refused, done.err
        told = "rows.parquet, column item: a user has two different values, and only one can be kept. Give every user"
        assert (told in " ".join(done.err.split())) is refused


def test_what_ingest_refuses_of_all_that_a_user_holds_is_told_before_anything_starts(
    tmp_path: Path, pldp: Pldp
) -> None:
    one = {"holds": "one", "itemsets": {"minimum_support": 0.1, "length": 1}, "users": None, "levels": None}
    for held, missing, refused in ((["milk", None], {}, True), (["milk", None], {"missing": "beer"}, False)):
        rows = pl.DataFrame({"user": ["user-1", "user-2"], "item": held})
        done = pldp("check", baskets.world(tmp_path, 2, rows, **one, **missing))
        assert (done.code == 2) is refused, done.err
        told = "rows.parquet, column item: a user has no value. Give every user one, or declare `missing`"
        assert (told in " ".join(done.err.split())) is refused
    for count, refused in ((10**9, True), (10**6, False)):
        rows = pl.DataFrame({"user": ["user-1"] * 20, "item": ["film-1"] * 20, "n": [count] * 20})
        source = {"path": "items.parquet", "count": "n"}
        done = pldp("check", items.world(tmp_path, 2, rows, source=source))
        assert (done.code == 2) is refused, done.err
        assert ("items.parquet: the items of a user add up to more than" in " ".join(done.err.split())) is refused
