"""Rows that are left out: none is lost unseen, none because of its value, and the operator is told how many."""

from __future__ import annotations

import csv
import gzip
import io
import json
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import polars as pl
import pytest

import pldp.tasks.sources.csvbytes
from pldp.errors import Outcome, SourceError
from pldp.spec.source import Csv
from pldp.tasks.home import Home
from pldp.tasks.ingest import ingest
from pldp.tasks.leftout import rejected, remarks
from pldp.tasks.run import open_run
from pldp.tasks.sources.csvfaults import LONGEST, MOST_LINES, CsvFault
from pldp.tasks.sources.csvfile import CsvFile
from pldp.tasks.sources.csvlines import read_lines
from pldp.tasks.specfile import load_spec
from tests import baskets, items
from tests.people import opened, write_spec

JOB = {"name": "job", "values": ["a", "b", "none", "other"], "missing": "none", "other": "other"}
SOURCE = {"path": "people.csv", "user_id": "id"}


def people(folder: Path, content: bytes, name: str = "people.csv", **sections: Any) -> int:
    """How many people are in the vault."""
    (folder / name).write_bytes(content)
    source = {**SOURCE, "path": name, **sections.pop("source", {})}
    run, file = opened(write_spec(folder, **{"source": source, "attributes": [JOB], **sections}), folder / "home")
    return ingest.fn(run, file).n_users


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(SourceError) as refused:
        call()
    assert refused.value.__context__ is None, "the first exception may quote a row"
    return str(refused.value)


def test_one_stray_quote_does_not_remove_everybody_after_it(tmp_path: Path) -> None:
    """The attack: 200,003 lines, of which one user was ingested and published without a word."""
    lines = ["id,job,level", "0,a,low", '1,"b,low', *(f"{i},a,low" for i in range(2, 200_001))]
    content = ("\n".join(lines) + "\n").encode()
    said = refusal(lambda: people(tmp_path, content))
    assert f"{tmp_path / 'people.csv'}, line 3: a quote opens here that is not closed" in said
    assert said.endswith("Nothing was perturbed.")
    assert not list((tmp_path / "home" / "vault").rglob("vault.duckdb*"))
    assert people(tmp_path, content, source={"csv": {"quote": ""}}) == 200_001


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (b'1,a,low\n2,"b,low\n3,a,low\n4,"c",low\n5,a,low\n', 3),
        (b'1,a,low\n2,"b,low\n3,a,low\n4,"""c"" d",low\n5,a,low\n', 3),
        (b'1,a,low\n2,"b"x,low\n3,a,low\n', 3),
        (b'1,a,low\n2,b,"low', 3),
        (b'1,"a\nb",low\n2,"b,low\n', 4),
        (b'1,a,low\n2,b""c,low\n', 3),
        (b'1,a,low\n2,"' + b"x\n" * (MOST_LINES + 1) + b'",low\n3,a,low\n', 3),
        (b"1,a,low\n2," + b"x" * (LONGEST + 1) + b",low\n3,a,low\n", 3),
        (b"1,a,low\n2," + b"x" * 9_000_000 + b",low\n3,a,low\n", 3),
    ],
    ids=[
        "later-quote",
        "later-doubled",
        "text-behind",
        "last-line",
        "after-two-lines",
        "doubled",
        "many-lines",
        "long",
        "longer",
    ],
)
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_what_the_reader_would_lose_is_refused_by_its_line(rows: bytes, line: int, end: bytes, tmp_path: Path) -> None:
    said = refusal(lambda: people(tmp_path, (b"id,job,level\n" + rows).replace(b"\n", end)))
    assert f"people.csv, line {line}: " in said, said


def test_cells_of_several_lines_and_other_dialects_still_work(tmp_path: Path) -> None:
    many = (
        b'id,job,level\n1,"a",low\n2,"b\n\nb",low\n3,"say ""hi"", she said",low\n4, "a" ,low\n5,5" pipe,low\n6,"""",low'
    )
    for content in (many, many + b"\n", many + b"\n\n\n", many.replace(b"\n", b"\r\n"), many.replace(b"\n", b"\r")):
        assert people(tmp_path, content) == 6
    remark = b'# say "x\nid,job,level\n1,a,low\n # and "y\n2,"b\n# no remark",low\n'
    assert people(tmp_path, remark, source={"csv": {"comment": "#"}}) == 2
    assert people(tmp_path, gzip.compress(many), "people.csv.gz") == 6
    assert people(tmp_path, "id;job;level\n1;é;low\n".encode(), source={"csv": {"delimiter": ";"}}) == 1
    one: dict[str, Any] = {"source": {"user_id": None, "one_row_per_user": True}, "levels": {"choices": {"only": 1}}}
    assert people(tmp_path, b"job\na\n\nb\n\n", **one) == 4


def database_reads(path: Path, dialect: Csv) -> tuple[int, int]:
    """Rows and rejected rows."""
    file = CsvFile("source", Outcome.NOTHING_RUN, path, dialect)
    with duckdb.connect() as database:
        rows = file.cells(database, {name: name for name in ("id", "job", "level")}).fetchall()
        return len(rows), rejected(database, file)[0]


def test_records_are_those_that_the_database_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Random well-formed files, cut into chunks anywhere: Python's own writer, the database and we agree."""
    rng, path = Random(seed), tmp_path / "x.csv"  # noqa: S311
    texts = ("a", "", "a,b", "x\ny", 'say "hi"', '"', " s ", "é", "\n", ",", "#", "a\n\nb", '",\n"', "名")
    for _ in range(40):
        end, comment = rng.choice(("\n", "\r\n", "\r")), rng.choice(("", "#"))
        text = io.StringIO(newline="")
        every = comment or rng.random() < 0.5
        writer = csv.writer(text, lineterminator=end, quoting=csv.QUOTE_ALL if every else csv.QUOTE_MINIMAL)
        n = rng.randrange(1, 12)
        writer.writerows(
            [("id", "job", "level"), *((i, *(rng.choice(texts).replace("\n", end) for _ in "ab")) for i in range(n))]
        )
        whole = text.getvalue().removesuffix(rng.choice(("", end)))
        path.write_bytes(whole.encode())
        monkeypatch.setattr(pldp.tasks.sources.csvbytes, "_CHUNK", rng.choice((5, 33, 1 << 22)))
        dialect = Csv(comment=comment)
        assert read_lines(path, dialect).records == n == sum(database_reads(path, dialect)), whole


def test_a_spoilt_file_is_never_read_in_part(tmp_path: Path, seed: int) -> None:
    """Files with quotes put anywhere: either every line is accounted for, or the file is refused."""
    rng, home = Random(seed), tmp_path / "home"  # noqa: S311
    outcomes = []
    for case in range(30):
        text = list(
            "id,job,level\n" + "".join(f"{i},{rng.choice(('a', chr(34) + 'b' + chr(34)))},low\n" for i in range(20))
        )
        for _ in range(rng.randrange(1, 4)):
            text.insert(rng.randrange(13, len(text)), '"')
        folder = tmp_path / str(case)
        folder.mkdir()
        (folder / "people.csv").write_text("".join(text))
        file = load_spec(write_spec(folder, source={**SOURCE, "max_left_out": 1}, attributes=[JOB]))
        try:
            n = ingest.fn(open_run(Home(home).prepare(), file, f"s{case}"), file).n_users
        except SourceError:
            outcomes.append("refused")
        else:
            outcomes.append("read")
            with (folder / "people.csv").open(newline="") as handle:
                inside = sum(cell.count("\n") for row in csv.reader(handle) for cell in row)
            assert n >= 20 - inside
    assert set(outcomes) == {"read", "refused"}


BAD_BYTE, LONG, DECLARED = b"\xff", b"x" * 4_500_000, b"1"
VALUES = [
    {"name": "job", "values": ["1", "2"], "other": "2"},
    {"name": "job", "kind": "binned", "edges": [0, 1, 2], "missing": 0},
    {"name": "job", "kind": "number", "bounds": [0, 2], "missing": 0},
]


@pytest.mark.parametrize("odd", [BAD_BYTE, LONG], ids=["byte", "long"])
@pytest.mark.parametrize("attribute", VALUES, ids=["category", "binned", "number"])
def test_whether_a_person_counts_does_not_depend_on_the_value(
    attribute: dict[str, Any], odd: bytes, tmp_path: Path
) -> None:
    whole = b"id,job,level\n" + b"".join(b"%d,1,low\n" % i for i in range(500))
    assert people(tmp_path, whole, attributes=[attribute]) == 500
    said = refusal(lambda: people(tmp_path, whole.replace(b"77,1,", b"77," + odd + b","), attributes=[attribute]))
    assert "line 79" in said
    assert odd is LONG or "line 79, column job: the cell holds a byte that is not UTF-8" in said


@pytest.mark.parametrize("odd", [BAD_BYTE, LONG], ids=["byte", "long"])
@pytest.mark.parametrize("kind", ["items", "aggregates", "counts", "users"])
def test_nor_does_it_of_items_counts_and_choices(kind: str, odd: bytes, tmp_path: Path) -> None:
    rows = b"user,item,n\n" + b"".join(b"%d,VALUE,1\n" % i for i in range(300))
    tables = {"items": b"milk", "aggregates": b"film-1", "counts": b"film-1", "users": b"milk"}
    rows = rows.replace(b"VALUE", tables[kind])
    users = b"user,level\n" + b"".join(b"%d,low\n" % i for i in range(300))
    place = {"users": (b"7,low", b"7,"), "counts": (b"\n7,film-1,1", b"\n7,film-1,")}
    old, new = place.get(kind, (b"\n7," + tables[kind], b"\n7,"))
    spoilt = users.replace(old, new + odd) if kind == "users" else rows.replace(old, new + odd)
    for name, content in (("plain", rows), ("odd", spoilt)):
        folder = tmp_path / name
        folder.mkdir()
        if kind in ("items", "users"):
            spec = baskets.world(folder, 3, source={"path": "rows.csv", "unknown": "ignore"})
            (folder / "rows.csv").write_bytes(rows if kind == "users" else content)
            (folder / "users.csv").write_bytes(users if kind == "items" or name == "plain" else content)
            run_items, file_items = baskets.opened(spec, folder / "home")
            fill: Callable[[], object] = partial(ingest.fn, run_items, file_items)
        else:
            source = {"path": "items.csv", "unknown": "ignore", "count": "n" if kind == "counts" else None}
            spec = items.world(folder, 3, source=source, users=None, profiles={"only": 1}, default=None)
            (folder / "items.csv").write_bytes(content)
            run, file = items.opened(spec, folder / "home")
            fill = partial(ingest.fn, run, file)
        if name == "plain":
            assert getattr(fill(), "n_users") == 300  # noqa: B009
        else:
            assert ", line 9" in refusal(fill)


def test_parquet_with_a_byte_that_is_no_text_is_refused(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": [str(i) for i in range(50)], "job": ["aaaa"] * 49 + ["bbbb"], "level": ["low"] * 50})
    frame.write_parquet(tmp_path / "people.parquet", compression="uncompressed", use_pyarrow=True)
    spoilt = (tmp_path / "people.parquet").read_bytes().replace(b"bbbb", b"\xff\xff\xff\xff")
    assert "cannot be read" in refusal(lambda: people(tmp_path, spoilt, "people.parquet"))


def test_too_many_left_out_refuse_and_the_share_is_stated(tmp_path: Path) -> None:
    content = b"id,job,level\n" + b"".join(b"%d,a,low\n" % i for i in range(196)) + b",a,low\n,a,low\n7\n8,a,low,x\n"
    said = refusal(lambda: people(tmp_path, content))
    assert "4 of 200 rows would be left out (1 with too few cells, 1 with too many cells, 2 without a user id)" in said
    assert "more than the share source.max_left_out allows (0.01)" in said
    assert "would be left out" in refusal(lambda: people(tmp_path, content, source={"max_left_out": 0.019}))
    assert people(tmp_path, content, source={"max_left_out": "1/50"}) == 196
    frame = pl.DataFrame({"id": ["a", None], "job": ["a", "a"], "level": ["low", "low"]})
    frame.write_parquet(tmp_path / "p.parquet")
    said = refusal(lambda: people(tmp_path, (tmp_path / "p.parquet").read_bytes(), "p.parquet"))
    assert "1 of 2 rows would be left out (1 without a user id)" in said


def test_the_share_is_neither_published_nor_part_of_the_identity(tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text("id,job,level\n1,a,low\n")
    plain = load_spec(write_spec(tmp_path, source=SOURCE))
    stated = load_spec(write_spec(tmp_path, source={**SOURCE, "max_left_out": 1}))
    assert plain.identity == stated.identity
    assert "max_left_out" not in json.loads(stated.public)["source"]


def test_the_operator_is_told_what_was_left_out_and_how_many_levels_were_unknown(tmp_path: Path) -> None:
    content = b"id,job,level\n" + b"1,a,huh\n2,a,\n3,a,LOW\n,a,huh\n4,a,low\n5,a\n"
    (tmp_path / "people.csv").write_bytes(content)
    spec = write_spec(tmp_path, source={**SOURCE, "max_left_out": 1}, attributes=[JOB])
    run, file = opened(spec, tmp_path / "home")
    assert ingest.fn(run, file).n_users == 4
    assert remarks(run) == [
        "source: 1 of 6 rows was left out: with too few cells",
        "source: 1 of 6 rows was left out: without a user id",
        "column level: 1 cells hold nothing, and count as high",
        "column level: 2 cells hold what the spec does not declare, and count as high",
    ]


@pytest.mark.parametrize("spoilt", ["rows.csv", "users.csv"])
def test_each_of_two_files_is_accounted_for_by_itself(spoilt: str, tmp_path: Path) -> None:
    """The reader's list of rows that do not parse goes on from one file to the next."""
    files = {"rows.csv": "user,item\n" + "u,milk\n" * 300, "users.csv": "user,level\n" + "u,low\n" * 300}
    files[spoilt] += "u\nu,a,b\n"
    spec = baskets.world(tmp_path, 3, source={"path": "rows.csv"})
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    run, file = baskets.opened(spec, tmp_path / "home")
    assert ingest.fn(run, file).n_users == 1
    role = "source" if spoilt == "rows.csv" else "users"
    assert remarks(run) == [
        f"{role}: 1 of 302 rows was left out: with too few cells",
        f"{role}: 1 of 302 rows was left out: with too many cells",
    ]


def test_unknown_levels_of_items_and_profiles_are_counted_too(tmp_path: Path) -> None:
    spec = baskets.world(tmp_path / "items", 5)
    (tmp_path / "items" / "users.csv").write_text("user,level\nuser-0,low\nuser-1,huh\nuser-2,\nuser-3,huh\n")
    run, file = baskets.opened(spec, tmp_path / "home")
    ingest.fn(run, file)
    assert remarks(run) == [
        "column level: 1 cells hold nothing, and count as high",
        "column level: 2 cells hold what the spec does not declare, and count as high",
    ]
    spec = items.world(tmp_path / "films", 5)
    (tmp_path / "films" / "users.csv").write_text("user,profile\nuser-0,open\nuser-1,huh\n")
    films, films_file = items.opened(spec, tmp_path / "other")
    ingest.fn(films, films_file)
    assert remarks(films) == ["column profile: 1 cells hold what the spec does not declare, and count as shy"]


def test_looking_at_a_file_takes_little_beside_reading_it(tmp_path: Path) -> None:
    """Two million lines; ten million take five times as long, and seconds (measured: 0.1 µs a plain line)."""
    path = tmp_path / "x.csv"
    path.write_bytes(b"id,job,level\n" + b"1234567,farmer,low\n" * 2_000_000)
    start = time.process_time()
    assert read_lines(path, Csv()).records == 2_000_000
    assert time.process_time() - start < 2
    path.write_bytes(b"id,job,level\n" + b'"1234567","farmer","low"\n' * 500_000 + b'"')
    with pytest.raises(CsvFault) as fault:
        read_lines(path, Csv())
    assert fault.value.line == 500_002
