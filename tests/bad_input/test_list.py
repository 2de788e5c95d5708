"""Bad input, item by item: a clear error that names file, place, rule and remedy and no raw value, or a right answer.

Every case says which item of the list it is for; the last test holds the list itself.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pldp.errors import PldpError, SourceError, SpecError
from pldp.flows.release import release
from pldp.questions.histograms.spec import MAX_VALUES
from pldp.tasks.ingest import ingest
from pldp.tasks.query import connect
from pldp.tasks.references import reference_of
from pldp.tasks.run import Run
from tests.bad_input.wild import MARK, check_message
from tests.flows.conftest import Pldp
from tests.people import histograms_of, make_people, opened, world, write_spec

ITEMS = (
    "missing file", "missing column", "unknown value", "unknown level", "null", "empty file", "zero users in a level",
    "one user", "duplicated user id", "a domain of one value", "10,000 values", "budget 0", "budget negative",
    "budget nan", "budget inf", "budget 1e-9", "budget 1e3", "shares above 1", "unknown keys", "wrong types",
    "non-UTF-8", "truncated Parquet", "CSV with quotes and newlines", "numbers where text is declared",
    "1 M-character cells",
)  # fmt: skip

LONG = "x" * 1_000_000
JOB = [{"name": "job", "values": ["a", "b", "none", "other"], "missing": "none", "other": "other"}]
STRICT = [{"name": "job", "values": ["a", "b"]}]
A, B, NONE, OTHER = range(4)
HIGH, MID, LOW = range(3)
HEADER = b"id,job,level\n"
Content = Any
"""Bytes, a frame or table for Parquet, or a function that writes the file."""


def budget(total: object) -> dict[str, Any]:
    return {"budget": {"total": total}}


def attribute(**keys: Any) -> dict[str, Any]:
    return {"attributes": [{"name": "job", "values": ["a", "b"], **keys}]}


BAD_SPECS: list[tuple[str, dict[str, Any] | bytes, tuple[str, ...]]] = [
    # item, sections or the whole file, what is said
    ("budget 0", budget(0), ("budget.total: input should be greater than 0 (got 0)",)),
    ("budget 0", budget("0/7"), ("budget.total: ", "greater than 0")),
    ("budget negative", budget(-0.5), ("budget.total: input should be greater than 0 (got -0.5)",)),
    ("budget nan", budget(math.nan), ("budget.total must be a finite number", "(got .nan)")),
    ("budget nan", budget("nan"), ("budget.total must be a finite number", "(got 'nan')")),
    ("budget inf", budget(math.inf), ("budget.total must be a finite number", "(got .inf)")),
    ("budget inf", budget(-math.inf), ("budget.total must be a finite number", "(got -.inf)")),
    ("budget inf", budget("1e999"), ("budget.total: input should be less than or equal to 1000",)),
    ("budget inf", budget("1e9_9_9_9_9_9_9_9"), ("budget.total must be written", "without huge exponents")),
    ("budget 1e-9", budget("1e-999"), ("budget.total: a budget below 2^-64 is too small", "Raise it")),
    ("budget 1e-9", budget(1e-300), ("budget.total: a budget below 2^-64 is too small", "Raise it")),
    (
        "budget 1e-9",
        budget(1e-18) | {"mechanism": "brr"},
        ("budget.total: a budget of ", "is too small to leave any signal", "Raise it"),
    ),
    ("budget 1e3", budget(1000.1), ("budget.total: input should be less than or equal to 1000 (got 1000.1)",)),
    (
        "shares above 1",
        {"levels": {"dependence": 1, "column": "level", "choices": {"high": 1.5, "low": 1}}},
        ("levels.choices.high: input should be less than or equal to 1 (got 1.5)",),
    ),
    ("shares above 1", {"levels": {"assigned": {"high": 1.5}}}, ("levels.assigned.high: ", "equal to 1 (got 1.5)")),
    (
        "shares above 1",
        {"levels": {"assigned": {"high": 0.9, "low": 0.9}}},
        ("levels.assigned must sum to 1 (got 1.8)",),
    ),
    (
        "shares above 1",
        {"budget": {"total": 4, "allocation": {"job": 2, "sex": "1/2"}}},
        ("budget.allocation.job: input should be less than or equal to 1 (got 2)",),
    ),
    (
        "shares above 1",
        {"budget": {"total": 4, "allocation": {"job": 0.9, "sex": 0.9}}},
        ("budget.allocation must sum to 1",),
    ),
    ("shares above 1", attribute(assumed=["1e999", 0]), ("attributes[0].assumed must be shares of at most 1",)),
    ("shares above 1", attribute(assumed=[0.9, 0.9]), ("attributes[0].assumed must", "sum to 1 (got a sum of 1.8)")),
    ("unknown keys", {"budgets": {}}, ("budgets is not a key of the spec; did you mean 'budget'?",)),
    ("unknown keys", attribute(vales=[1]), ("attributes[0].vales is not a key", "did you mean 'values'?")),
    ("unknown keys", {"zzz": 1}, ("zzz is not a key of the spec; known keys: attributes, budget",)),
    ("unknown keys", {"\x1b[31m": 1}, (r"'\x1b[31m' is not a key of the spec",)),
    ("unknown keys", {"[/bold]": 1}, ("[/bold] is not a key of the spec",)),
    ("unknown keys", {"k" * 5000: 1}, ("k" * 80 + "… is not a key of the spec",)),
    ("wrong types", {"name": 7}, ("name: input should be a valid string (got 7)",)),
    ("wrong types", {"source": "people.csv"}, ("source must be a mapping of keys to values (got 'people.csv')",)),
    ("wrong types", {"attributes": {"job": ["a"]}}, ("attributes must be a list",)),
    ("wrong types", {"attributes": [3]}, ("attributes[0] must be a mapping of keys to values (got 3)",)),
    ("wrong types", attribute(values="ab"), ("attributes[0].values must be a list (got 'ab')",)),
    ("wrong types", attribute(values=["a", True]), ("attributes[0].values[1] must be text: put it in quotes",)),
    ("wrong types", attribute(values=["a", ["b"]]), ("attributes[0].values[1]: input should be a valid string",)),
    (
        "wrong types",
        attribute(kind=["crosstab"]),
        ("attributes[0]: kind must be category, binned, crosstab or number.",),
    ),
    (
        "wrong types",
        attribute(kind="crostab"),
        ("attributes[0]: kind must be category, binned, crosstab or number (got 'crostab').",),
    ),
    ("wrong types", budget([4]), ('budget.total must be a number or a fraction such as "1/3"',)),
    ("wrong types", budget(True), ("budget.total must be a number", "(got True)")),
    (
        "wrong types",
        {"levels": {"column": 3}},
        ("levels.column: input should be a valid string, or must be a mapping of keys to values (got 3)",),
    ),
    ("wrong types", {"levels": {"column": "l", "choices": ["high"]}}, ("levels.choices must be a mapping",)),
    ("wrong types", {"expected": {"users": "many"}}, ("expected.users: ", "valid integer", "(got 'many')")),
    ("wrong types", {"expected": {"users": True}}, ("expected.users must be a whole number (got True)",)),
    ("wrong types", {"gates": {"minimum_users": 10**30}}, ("gates.minimum_users: ", "less than 1000000000")),
    ("wrong types", {"source": {"path": "a\0b", "user_id": "id"}}, (r"source.path must not hold the character \0",)),
    ("wrong types", {"source": {"path": "", "user_id": "id"}}, ("source.path: ", "at least 1 character")),
    ("wrong types", attribute(values=["\ud800"]), ("attributes[0].values[0] must be text that UTF-8 can write",)),
    (
        "wrong types",
        {"source": {"path": "p.csv", "user_id": "id", "csv": {"delimiter": '"'}}},
        ("source.csv: delimiter, quote and comment must differ from each other",),
    ),
    (
        "wrong types",
        {"source": {"path": "p.csv", "user_id": "id", "csv": {"columns": ["id", "ID"]}}},
        ("source.csv.columns must have different names",),
    ),
    (
        "wrong types",
        b"name: 2024-01-01\nname: x\n",
        ("line 2, column 1: the spec is not valid YAML: a key stands there twice",),
    ),
    ("wrong types", b"- a\n- b\n", ("must be a mapping with name, source",)),
    ("empty file", b"", ("must be a mapping with name, source",)),
    ("non-UTF-8", b"name: caf\xe9\n", ("must be a readable UTF-8 text file",)),
    ("non-UTF-8", "name: x\n".encode("utf-16"), ("must be a readable UTF-8 text file",)),
    ("1 M-character cells", {"name": LONG}, ("name must be 1 to 64 letters", "…")),
    ("1 M-character cells", attribute(values=["a", LONG]), ("attributes[0].values[1]: ", "at most 200 characters")),
    ("1 M-character cells", b"#" + b"x" * (17 << 20), ("a spec has at most 16 MB. Is this the data?",)),
    ("10,000 values", attribute(values=list(range(MAX_VALUES + 1))), ("attributes[0].values: ", "at most 10000")),
    (
        "10,000 values",
        {
            "attributes": [{"name": f"a{i}", "values": list(range(999))} for i in range(4)]
            + [{"name": "x", "kind": "crosstab", "of": ["a0", "a1", "a2", "a3"]}]
        },
        ("attributes: x has 996005996001 combinations, more than 10000",),
    ),
]


@pytest.mark.parametrize(("item", "content", "parts"), BAD_SPECS)
def test_a_bad_spec(
    item: str, content: dict[str, Any] | bytes, parts: tuple[str, ...], tmp_path: Path, pldp: Pldp
) -> None:
    """Field, rule and the spec's own value; and nothing is made, not even the home."""
    path = write_spec(tmp_path, **({} if isinstance(content, bytes) else content))
    if isinstance(content, bytes):
        path.write_bytes(content)
    start = time.monotonic()
    with pytest.raises(SpecError) as caught:
        opened(path, tmp_path / "home")
    assert time.monotonic() - start < 30
    said = str(caught.value)
    for part in parts:
        assert part in said
    check_message(said, path, "Nothing was run.")
    told = pldp("release", path, "--home", tmp_path / "home")
    assert told.code == SpecError.exit_code == 2
    assert told.err == f"Error: {said}\n"
    assert not (tmp_path / "home").exists()


@dataclass(frozen=True)
class Refused:
    item: str
    content: Content
    parts: tuple[str, ...]
    """What is said between the file and the end."""
    name: str = "people.csv"
    sections: dict[str, Any] = field(default_factory=dict)
    ending: str = "Nothing was perturbed."


def table(**columns: Any) -> pa.Table:
    return pa.table(columns)


def names_twice() -> pa.Table:
    return pa.Table.from_arrays([pa.array(["1"]), pa.array(["a"]), pa.array(["b"])], names=["id", "job", "JOB"])


def truncated(cut: int) -> Content:
    def write(path: Path) -> None:
        make_people(500).with_columns(id=pl.format(MARK + "{}", "id")).write_parquet(path, compression="uncompressed")
        content = path.read_bytes()
        path.write_bytes(content[:cut])

    return write


MISSING_COLUMN = "which the spec names. Correct the spec, or source.csv where the header is misread."
WITHOUT_COLUMN = "which the spec names. Correct the spec, or source.path."
WHOLE_FILE = "Check that the file is whole"
NO_USER = "no readable row with a user. Check source and its columns."
UNDECLARED = "add it to values, or add `other: <one of values>` to attribute job."
PARQUET = "people.parquet"

REFUSED = [
    Refused("missing column", f"id,level\n{MARK},low\n".encode(), ("there is no column 'job'", MISSING_COLUMN)),
    Refused("missing column", f"{MARK},a,low\n".encode(), ("there is no column 'id'", MISSING_COLUMN)),
    Refused("missing column", f"id,job,{MARK}\n1,a,low\n".encode(), ("there is no column 'level'", MISSING_COLUMN)),
    Refused("missing column", f"id;job;level\n{MARK};a;low\n".encode(), ("there is no column 'id'", MISSING_COLUMN)),
    Refused("missing column", table(id=[MARK], job=["a"]), ("there is no column 'level'", WITHOUT_COLUMN), PARQUET),
    Refused("missing column", names_twice(), ("have one name, letter case aside", "Rename one of them"), PARQUET),
    Refused(
        "unknown value",
        HEADER + f"1,a,low\n2,{MARK},low\n".encode(),
        ("readable row 2, column job: the cell holds a value that is not declared", UNDECLARED),
        sections={"attributes": STRICT},
    ),
    Refused(
        "unknown value",
        table(id=["1", "2"], job=["a", MARK], level=["low", "low"]),
        ("readable row 2, column job: the cell holds a value that is not declared", UNDECLARED),
        PARQUET,
        {"attributes": STRICT},
    ),
    Refused(
        "null",
        HEADER + f"{MARK},a,low\n{MARK}2,,low\n".encode(),
        ("readable row 2, column job: the cell is empty", "add `missing: <one of values>` to attribute job."),
        sections={"attributes": STRICT},
    ),
    Refused(
        "null",
        table(id=["1", "2"], job=["a", None], level=["low", "low"]),
        ("readable row 2, column job: the cell is empty", "add `missing: <one of values>` to attribute job."),
        PARQUET,
        {"attributes": STRICT},
    ),
    Refused("null", HEADER + f",{MARK},low\n".encode(), (NO_USER,)),
    Refused("null", table(id=pa.nulls(2), job=["a", "b"], level=["low", "low"]), (NO_USER,), PARQUET),
    Refused("empty file", b"", ("cannot be read as csv with a header", WHOLE_FILE)),
    Refused("empty file", b"\n\n", ("cannot be read as csv with a header", WHOLE_FILE)),
    Refused("empty file", HEADER, (NO_USER,)),
    Refused("empty file", HEADER[:-1], (NO_USER,)),
    Refused("empty file", b"", ("cannot be read as parquet", WHOLE_FILE), PARQUET),
    Refused("empty file", make_people(0), (NO_USER,), PARQUET),
    Refused(
        "duplicated user id",
        HEADER + f"{MARK},a,low\nx,b,low\n{MARK},b,high\n".encode(),
        ("column id: a user id stands in more than one row", "would spend twice. Keep one row a user."),
    ),
    Refused(
        "duplicated user id",
        table(id=[7, 8, 7], job=[MARK] * 3, level=["low"] * 3),
        ("column id: a user id stands in more than one row", "Keep one row a user."),
        PARQUET,
    ),
    Refused("non-UTF-8", f"id,job,level\n{MARK},a,low\n".encode("utf-16"), ("there is no column 'id'", MISSING_COLUMN)),
    Refused("non-UTF-8", f"id,j\xf6b,level\n{MARK},a,low\n".encode("latin-1"), ("there is no column 'job'",)),
    Refused("non-UTF-8", HEADER + f"1,{MARK}\xe9,low\n".encode("latin-1"), ("line 2, column job", "not UTF-8")),
    Refused("non-UTF-8", HEADER + b"1,a,low\n2,\xe9,low\n3,b,low\n", ("line 3, column job", "Write the file as UTF-8")),
    Refused("non-UTF-8", b"id,job,level,caf\xe9\n1,a,low,x\n", ("line 1, column 4: the cell holds a byte",)),
    Refused("truncated Parquet", truncated(-1), ("cannot be read as parquet", WHOLE_FILE), PARQUET),
    Refused("truncated Parquet", truncated(-200), ("cannot be read as parquet", WHOLE_FILE), PARQUET),
    Refused("truncated Parquet", truncated(1000), ("cannot be read as parquet", WHOLE_FILE), PARQUET),
    Refused("truncated Parquet", f"PAR1{MARK}PAR1".encode(), ("cannot be read as parquet", WHOLE_FILE), PARQUET),
    Refused(
        "CSV with quotes and newlines",
        HEADER + f"{MARK},a,low\r\n{MARK}2,b,low\n{MARK}3,b,low\r\n".encode(),
        ("cannot be read to its end as csv", "that all its lines end alike"),
    ),
    Refused(
        "CSV with quotes and newlines", HEADER + f'1,"{MARK},low\n2,b,low\n'.encode(), ("line 2: a quote opens here",)
    ),
    Refused("CSV with quotes and newlines", HEADER + b'1,a,low\n2,"b"x,low\n', ("line 3: a quote stands here",)),
    Refused(
        "numbers where text is declared",
        table(id=[1, 2], job=[1.0, 2.0], level=["low"] * 2),
        ("readable row 1, column job: the cell holds a value that is not declared", UNDECLARED),
        PARQUET,
        attribute(values=[1, 2]),
    ),
    Refused(
        "1 M-character cells",
        table(id=["1", "2"], job=["a", MARK + LONG], level=["low"] * 2),
        ("readable row 2, column job: the cell holds a value that is not declared", UNDECLARED),
        PARQUET,
        {"attributes": STRICT},
    ),
    Refused(
        "1 M-character cells",
        table(id=[f"{MARK}{i}{LONG}" for i in range(150)], job=["a"] * 150, level=["low"] * 150),
        ("has cells too long to be read in little memory. Shorten those of the columns that the spec names",),
        PARQUET,
    ),
    Refused("1 M-character cells", b"id,job,level," + LONG.encode() + b"\n1,a,low,x\n", ("cannot be read as csv",)),
]


def write(folder: Path, content: Content, name: str, sections: dict[str, Any]) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif isinstance(content, pl.DataFrame):
        content.write_parquet(path)
    elif callable(content):
        content(path)
    else:
        pq.write_table(content, path)
    source = {"path": name, "user_id": "id", **sections.get("source", {})}
    return write_spec(folder, **{"attributes": JOB, **sections, "source": source})


def nothing_left(home: Path) -> None:
    """No vault, no report, no half a file, no spend."""
    files = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
    kept = {path for path in files if path.endswith(("/spec.json", "/plan.json", "/opened.json"))}
    assert files - kept <= {"vault/key", "lock"}, "only what names the release and the home's own key"


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.item)
def test_a_bad_source(case: Refused, tmp_path: Path) -> None:
    spec = write(tmp_path, case.content, case.name, case.sections)
    run, file = opened(spec, tmp_path / "home")
    start = time.monotonic()
    with pytest.raises(SourceError) as caught:
        ingest.fn(run, file)
    assert time.monotonic() - start < 30
    assert caught.value.exit_code == 2
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    said = str(caught.value)
    for part in case.parts:
        assert part in said
    check_message(said, tmp_path / case.name, case.ending)
    assert LONG[:100] not in said
    nothing_left(tmp_path / "home")


@pytest.mark.parametrize("name", ["none.csv", "none/none.parquet", "spec.yaml/x.csv", "loop.csv", "n" * 300])
def test_a_missing_file(name: str, tmp_path: Path, pldp: Pldp) -> None:
    (tmp_path / "loop.csv").symlink_to(tmp_path / "loop.csv")
    spec, home = write_spec(tmp_path, source={"path": name, "user_id": "id"}), tmp_path / "home"
    told = pldp("release", spec, "--home", home)
    assert told.code == 2
    said = told.err.removeprefix("Error: ").removesuffix("\n")
    assert "cannot be read (" in said
    assert "Correct source.path in the spec, or give --source." in said
    check_message(said, tmp_path / name, "Nothing was run.")
    nothing_left(home)


def test_a_folder_has_files(tmp_path: Path) -> None:
    (tmp_path / "people.csv").mkdir()
    path = write_spec(tmp_path, source={"path": "people.csv", "user_id": "id"}, attributes=JOB)
    with pytest.raises(
        SourceError, match=r"people\.csv: the folder has no file\. Correct the path in the spec"
    ) as caught:
        opened(path, tmp_path / "home")
    check_message(str(caught.value), tmp_path / "people.csv", "Nothing was run.")
    (tmp_path / "people.csv" / "one.csv").write_bytes(HEADER + b"1,a,low\n2,b,low\n")
    assert ingest.fn(*opened(path, tmp_path / "home")).n_users == 2


def test_a_missing_spec(tmp_path: Path, pldp: Pldp) -> None:
    told = pldp("release", tmp_path / "none.yaml", "--home", tmp_path / "home")
    assert told.code == 2
    assert "no such spec. Check the path. Nothing was run." in told.err
    odd = pldp("release", tmp_path / r"a\[/x].yaml", "--home", tmp_path / "home")
    assert r"a\[/x].yaml: no such spec" in odd.err, "brackets in a path are no markup"


@dataclass(frozen=True)
class Right:
    item: str
    content: Content
    rows: list[tuple[int, int]]
    """Value and level of every user, as positions."""
    name: str = "people.csv"
    sections: dict[str, Any] = field(default_factory=dict)
    quarantined: int = 0


TWO = [(A, LOW), (B, LOW)]
LONG_CELL = [(A, LOW), (OTHER, LOW)]

ANY = {"source": {"path": PARQUET, "user_id": "id", "max_left_out": 1}}
ANY_CSV = {"source": {**ANY["source"], "path": "people.csv"}}

RIGHT = [
    Right("missing column", b"id,job,level,\n1,a,low,\n2,b,low,\n", TWO),
    Right("missing file", HEADER + b"1,a,low\n2,b,low\n", TWO, "people[1]*?.csv"),
    Right("missing file", table(id=[1, 2], job=["a", "b"], level=["low"] * 2), TWO, "level=high/job=a/people.parquet"),
    Right("missing file", HEADER + b"1,a,low\n2,b,low\n", TWO, "level=high/job=b/people.csv"),
    Right("missing column", b"id,{columns},level\n1,a,low\n2,b,low\n", TWO, sections=attribute(column="{columns}")),
    Right("unknown value", HEADER + f"1,a,low\n2,{MARK},low\n3,A,low\n".encode(), [*LONG_CELL, (OTHER, LOW)]),
    Right("unknown level", HEADER + f"1,a,{MARK}\n2,b,low\n3,a,LOW\n".encode(), [(A, HIGH), (A, HIGH), (B, LOW)]),
    Right("unknown level", table(id=[1, 2], job=["a", "b"], level=[MARK, None]), [(A, HIGH), (B, HIGH)], PARQUET),
    Right(
        "unknown level",
        table(id=[1, 2], job=["a", "b"], level=[MARK, None]),
        [(A, MID), (B, MID)],
        PARQUET,
        {"levels": {"dependence": 1, "column": "level", "missing": "mid"}},
    ),
    Right("null", HEADER + b'1,,low\n2,"",low\n3,a,\n', [(A, HIGH), (NONE, LOW), (NONE, LOW)]),
    Right("null", table(id=["1", None], job=pa.nulls(2), level=pa.nulls(2)), [(NONE, HIGH)], PARQUET, ANY, 1),
    Right("zero users in a level", HEADER + b"1,a,low\n2,b,low\n", TWO),
    Right("one user", HEADER + b"1,a,low", [(A, LOW)]),
    Right("duplicated user id", HEADER + b"1,a,low\n01,b,low\n", TWO),
    Right("a domain of one value", HEADER + b"1,a,low\n2,a,low\n", [(A, LOW)] * 2, sections=attribute(values=["a"])),
    Right("non-UTF-8", b"\xef\xbb\xbf" + HEADER + b"1,a,low\n2,b,low\n", TWO),
    Right(
        "CSV with quotes and newlines",
        b'"id","job\n1",level\n"1,\n""x""","a","low"\n2,"b\r\nc",low\n3,"say ""hi""",low\n',
        [(0, LOW), (1, LOW), (2, LOW)],
        sections=attribute(column="job\n1", values=["a", "b\r\nc", 'say "hi"']),
    ),
    Right("CSV with quotes and newlines", HEADER + b"1,a,low\n2,b,low\n4,a,low,x,y\n", TWO, "people.csv", ANY_CSV, 1),
    Right(
        "numbers where text is declared",
        table(id=[1, 2], job=pa.array([1, -2], pa.int8()), level=["low"] * 2),
        TWO,
        PARQUET,
        attribute(values=[1, -2]),
    ),
    Right(
        "numbers where text is declared",
        table(id=[1.5, 2.5], job=[1.0, 2.5], level=["low"] * 2),
        TWO,
        PARQUET,
        attribute(values=["1.0", 2.5]),
    ),
    Right(
        "numbers where text is declared",
        table(id=[True, False], job=[True, False], level=["low"] * 2),
        TWO,
        PARQUET,
        attribute(values=["true", "false"]),
    ),
    Right(
        "numbers where text is declared",
        table(id=[1, 2], job=[date(2020, 1, 1), date(2021, 1, 1)], level=["low"] * 2),
        TWO,
        PARQUET,
        attribute(values=["2020-01-01", "2021-01-01"]),
    ),
    Right("1 M-character cells", HEADER + f"1,a,low\n2,{LONG},low\n".encode(), LONG_CELL),
    Right("1 M-character cells", HEADER + f"1,a,low\n{LONG},b,low\n".encode(), TWO),
    Right("1 M-character cells", HEADER + f"1,a,low\n2,b,{LONG}\n".encode(), [(A, LOW), (B, HIGH)]),
    Right("1 M-character cells", f"id,note,job,level\n1,{LONG},a,low\n2,,b,low\n".encode(), TWO),
    Right("1 M-character cells", table(id=[1, 2], job=["a", LONG], level=["low"] * 2), LONG_CELL, PARQUET),
    Right("1 M-character cells", table(id=["1", LONG], job=["a", "b"], level=["low"] * 2), TWO, PARQUET),
    Right(
        "1 M-character cells",
        table(id=range(200), job=["a"] * 200, level=["low"] * 200, note=[f"{i}{LONG}" for i in range(200)]),
        [(A, LOW)] * 200,
        PARQUET,
    ),
]  # fmt: skip


def in_vault(run: Run) -> tuple[list[Any], int]:
    with connect(run.vault, read_only=True) as vault:
        rows = vault.execute("SELECT value_0, level_0 FROM people ORDER BY ALL").fetchall()
        aside = vault.execute("SELECT coalesce(sum(n_rows), 0)::INTEGER FROM quarantine").fetchall()
    return rows, aside[0][0]


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case.item)
def test_a_right_answer(case: Right, tmp_path: Path) -> None:
    spec = write(tmp_path, case.content, case.name, case.sections)
    run, file = opened(spec, tmp_path / "home")
    assert ingest.fn(run, file).n_users == len(case.rows)
    assert in_vault(run) == (sorted(case.rows), case.quarantined)


@pytest.mark.parametrize("written", ["007", "1_000", "0x1F", "12:30", "1.10", "2024-01-01", "=", ".5"])
def test_values_are_text_as_the_spec_writes_them(written: str, tmp_path: Path) -> None:
    """YAML would read 007 as 7 and 12:30 as 750, and every such cell of the data would be an unknown value."""
    spec = write(tmp_path, HEADER + f"1,{written},low\n2,b,low\n".encode(), "people.csv", attribute(values=["V", "b"]))
    spec.write_text(spec.read_text().replace("- V", f"- {written}"))
    run, file = opened(spec, tmp_path / "home")
    assert histograms_of(run).attributes[0].values == (written, "b")
    ingest.fn(run, file)
    assert in_vault(run) == (TWO, 0)


def test_a_file_named_like_a_pattern_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "people1.csv").write_bytes(HEADER + b"1,b,high\n")
    spec = write(tmp_path, HEADER + b"1,a,low\n", "people[1].csv", {})
    run, file = opened(spec, tmp_path / "home")
    ingest.fn(run, file)
    assert in_vault(run) == ([(A, LOW)], 0)


@dataclass(frozen=True)
class Published:
    item: str
    people: pl.DataFrame
    sections: dict[str, Any]
    exact: bool = False
    """Whether the budget leaves no noise to speak of, so the estimate is the truth."""


def plain(values: list[str], levels: list[str]) -> pl.DataFrame:
    return pl.DataFrame({"id": range(len(values)), "job": values, "level": levels})


MANY = [f"v{i}" for i in range(MAX_VALUES)]

PUBLISHED = [
    Published("zero users in a level", plain(["a", "a", "b", "a"] * 50, ["low", "high"] * 100), attribute()),
    Published("zero users in a level", plain(["a", "b"] * 50, ["low"] * 100), attribute() | budget(1000), exact=True),
    Published("one user", plain(["a"], ["low"]), attribute()),
    Published("one user", plain(["b"], ["high"]), attribute() | budget(1000), exact=True),
    Published("a domain of one value", plain(["a"] * 100, ["low", "mid"] * 50), attribute(values=["a"])),
    Published(
        "10,000 values",
        plain([MANY[i * i % MAX_VALUES] for i in range(500)], ["low", "mid", "high", "low"] * 125),
        attribute(values=MANY) | budget(1000),
        exact=True,
    ),
    Published("budget 1e-9", plain(["a", "a", "b", "a"] * 50, ["low", "high"] * 100), attribute() | budget(1e-9)),
    Published("budget 1e3", plain(["a", "a", "b"] * 50, ["low", "mid"] * 75), attribute() | budget(1e3), exact=True),
]


def frame(answer: duckdb.DuckDBPyConnection) -> pl.DataFrame:
    names = [column[0] for column in answer.description or ()]
    return pl.DataFrame(answer.fetchall(), schema=names, orient="row", infer_schema_length=None)


@pytest.mark.usefixtures("server")
@pytest.mark.parametrize("case", PUBLISHED, ids=lambda case: case.item)
def test_the_whole_way(case: Published, tmp_path: Path) -> None:
    """Published with finite numbers, shares that sum to one, and the truth where no noise hides it."""
    start = time.monotonic()
    done = release(world(tmp_path, case.people, **case.sections), tmp_path / "home")
    assert time.monotonic() - start < 120
    assert done.status == "published"
    assert done.page_problem is None
    with duckdb.connect(str(tmp_path / "home" / "results.duckdb"), read_only=True) as results:
        found = frame(results.execute("SELECT * FROM histograms ORDER BY value"))
        levels = frame(results.execute("SELECT frequency, standard_error FROM level_estimates"))
    declared = sorted(str(value) for value in case.sections["attributes"][0]["values"])
    assert found["value"].to_list() == declared
    numbers = found.select(pl.col(pl.Float64))
    assert {"frequency", "standard_error", "ci_low", "ci_high", "unbiased_frequency"} <= set(numbers.columns)
    assert numbers.null_count().sum_horizontal().item() == 0
    assert numbers.select(pl.all().is_finite().all()).row(0) == (True,) * numbers.width
    assert found["frequency"].is_between(0, 1).all()
    assert found["frequency"].sum() == pytest.approx(1)
    assert not levels.select(pl.all().is_nan().any()).sum_horizontal().item(), "a level without users has no estimate"
    if case.exact:
        truth = [(case.people["job"] == value).mean() for value in declared]
        assert found["frequency"].to_list() == pytest.approx(truth, abs=1e-9)


@pytest.mark.usefixtures("server")
def test_a_refused_source_on_the_whole_way_spends_nothing(tmp_path: Path) -> None:
    people = make_people(50).with_columns(sex=pl.lit(MARK))
    with pytest.raises(PldpError) as caught:
        release(world(tmp_path, people), tmp_path / "home")
    check_message(str(caught.value), tmp_path / PARQUET, "Nothing was perturbed.")
    assert "readable row 1, column sex" in str(caught.value)
    nothing_left(tmp_path / "home")
    assert release(world(tmp_path), tmp_path / "home").status == "published", "the home is as good as new"


def test_ten_thousand_values_are_planned_and_placed_in_no_time(tmp_path: Path) -> None:
    start = time.monotonic()
    spec = write(tmp_path, HEADER + b"1,v9999,low\n", "people.csv", attribute(values=MANY))
    run, file = opened(spec, tmp_path / "home")
    ingest.fn(run, file)
    assert in_vault(run) == ([(MAX_VALUES - 1, LOW)], 0)
    assert time.monotonic() - start < 60


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"attribute,value\n",
        b"attribute,value,frequency\njob\n",
        b"\xff\xfe",
        b"attribute,value,frequency\njob,a,x\n",
        b"attribute,value,frequency\njob,a," + LONG.encode(),
    ],
)
def test_a_bad_reference(content: bytes, tmp_path: Path) -> None:
    """The other file a spec may name: short rows, numbers that are none, 1 M-character cells."""
    refuses_reference(content, tmp_path)


def refuses_reference(content: bytes, folder: Path) -> None:
    """Told before anything is spent: by the file, where it is no such table, and by the spec, where it lacks shares."""
    reference = {"method": "op", "reference": {"kind": "public", "path": "known.csv"}}
    (folder / "known.csv").write_bytes(content)
    spec = world(folder, make_people(10), combination=reference, **attribute())

    def refused() -> None:
        reference_of(*opened(spec, folder / "home"))

    with pytest.raises(SpecError, match=r"combination\.reference\.path") as caught:
        refused()
    said = str(caught.value)
    check_message(
        said, folder / "known.csv" if "must be a CSV" in said or "cannot be read" in said else spec, "Nothing was run."
    )


@pytest.mark.parametrize("rows", [b"job,a,0.5\n", b"job,a,0.5\njob,b,nan\n", b"jobs,a,1\njobs,b,0\n"])
def test_a_reference_that_lacks_a_share(rows: bytes, tmp_path: Path) -> None:
    """A table of the right form without a finite share of every declared value is told before anything is spent."""
    refuses_reference(b"attribute,value,frequency\n" + rows, tmp_path)


def test_every_item_of_the_list_has_its_cases() -> None:
    covered = {item for item, *_ in BAD_SPECS}
    for cases in (REFUSED, RIGHT, PUBLISHED):
        covered |= {case.item for case in cases}
    assert covered == set(ITEMS)
