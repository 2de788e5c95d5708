"""Privacy rule 1: no raw value leaves. Marked values go in; everything a run leaves behind is searched for them."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import os
import pickle
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from tests.flows.conftest import PATIENCE, Finished
from tests.flows.searcher import files_under, find, in_bytes
from tests.items import make_catalogue, make_items, true_totals
from tests.items import write_spec as write_items_spec
from tests.people import JOBS, make_people, mode, write_spec

MARK = b"zqCANARYqz"
N_USERS = 1501
"""A prime, so that a true share is a long decimal nobody writes by accident."""

COMMANDS = """
import json, sys
import pldp.tasks.check
from pldp.flows.cli import main
look = pldp.tasks.check.check
for looks, arguments in json.loads(sys.argv[1]):
    pldp.tasks.check.check = look if looks else lambda file: pldp.tasks.check.Checked()
    sys.argv = ["pldp", *arguments]
    try:
        main()
        code = 0
    except SystemExit as stop:
        code = stop.code or 0
    print("\\nexit", code, flush=True)
"""
"""The console script, several times in one process: they share one temporary server.

Some without the look at the source that comes first: stages must refuse it by themselves, and tell nobody either.
"""


def marked_people() -> pl.DataFrame:
    mark = MARK.decode()
    return make_people(N_USERS).with_columns(
        id=pl.format(f"{mark}Id{{}}", pl.int_range(pl.len())),
        note=pl.format(f"{mark}Note{{}}", pl.int_range(pl.len())),
    )


def good_source() -> bytes:
    """Marked ids, unknown values, unknown levels, and rows that do not parse."""
    mark = MARK.decode()
    people = marked_people()
    unknown = people.with_columns(
        job=pl.when(pl.col("job") == "other").then(pl.lit(f"{mark}Job")).otherwise("job"),
        level=pl.when(pl.int_range(pl.len()) < 50).then(pl.lit(f"{mark}Level")).otherwise("level"),
    )
    broken = [
        f"{mark}Few,{mark}Job".encode(),
        f"{mark}Many,nurse,male,low,{mark}Note,{mark}Extra".encode(),
        f",nurse,male,low,{mark}Nameless".encode(),
    ]
    return unknown.write_csv().encode() + b"\n".join(broken) + b"\n"


def failing_sources(folder: Path) -> dict[str, tuple[bytes, dict[str, Any]]]:
    """Sources that ingest must refuse: what each holds, and how its spec differs."""
    people = marked_people()
    parquet = folder / "whole.parquet"
    people.write_parquet(parquet, compression="uncompressed")
    whole, text = parquet.read_bytes(), people.write_csv().encode()
    parquet.unlink()
    undeclared = people.with_columns(job=pl.lit(MARK.decode() + "Job"))
    strict = [{"name": "job", "values": list(JOBS)}]
    spoilt = bytearray(whole)
    spoilt[64 : len(whole) // 2] = bytes(len(whole) // 2 - 64)
    csv = {"path": "people.csv", "user_id": "id"}
    return {
        "undeclared": (undeclared.write_csv().encode(), {"attributes": strict, "source": csv}),
        "empty": (text.replace(b",nurse,", b",,"), {"attributes": strict, "source": csv}),
        "twice": (text + text.splitlines()[1] + b"\n", {"source": csv}),
        "cut-parquet": (whole[:-200], {"source": {**csv, "format": "parquet"}}),
        "spoilt-parquet": (bytes(spoilt), {"source": {**csv, "format": "parquet"}}),
        "cut-gzip": (gzip.compress(text)[:-300], {"source": {**csv, "path": "people.csv.gz"}}),
        "headless": (text.split(b"\n", 1)[1], {"source": csv}),
        "wrong-delimiter": (text, {"source": {**csv, "csv": {"delimiter": ";"}}}),
        "not-text": (text.replace(b",nurse,", b",nurse\xff,"), {"source": csv}),
        "open-quote": (text + MARK + b',"' + MARK + b"Quote,male,low,note\n", {"source": csv}),
        "many-left-out": (text + (MARK + b"Few\n") * 50, {"source": csv}),
        "all-broken": (b"id,job,sex,level\n" + text.split(b"\n", 1)[1], {"source": csv}),
    }


def item_commands(root: Path, home: Path) -> list[tuple[bool, list[str]]]:
    """A release of aggregates, its evaluation, and two that ingest must refuse; users, items, profiles are marked."""
    mark = MARK.decode()
    catalogue = make_catalogue().with_columns(item=mark + pl.col("item"))
    items = make_items(N_USERS).with_columns(user=mark + pl.col("user"), item=mark + pl.col("item"))
    stranger = pl.DataFrame({"user": [f"{mark}Id"], "item": [f"{mark}Stranger"]})
    # One of them states a profile that is declared: a source of which none is would be refused.
    profile = pl.when(pl.int_range(pl.len()) == 0).then(pl.lit("open")).otherwise(pl.lit(f"{mark}Profile"))
    users = items.select("user").unique(maintain_order=True).with_columns(profile=profile)
    broken = f"{mark}Few\n{mark}Many,{mark}a,{mark}b\n,{mark}Nameless\n".encode()
    commands: list[tuple[bool, list[str]]] = []
    for name, source, refuse in (("items", items, "ignore"), ("stranger", items, "refuse"), ("torn", items, "ignore")):
        folder = root / name
        folder.mkdir()
        catalogue.write_csv(folder / "catalogue.csv")
        stated = (
            users if name != "torn" else pl.concat([users.with_columns(profile=pl.lit(p)) for p in ("open", "shy")])
        )
        stated.write_csv(folder / "users.csv")
        (folder / "items.csv").write_bytes(pl.concat([source, stranger]).write_csv().encode() + broken)
        spec = write_items_spec(folder, name=name, source={"path": "items.csv", "unknown": refuse})
        commands.append((True, ["release", str(spec), "--home", str(home)]))
        if name == "items":
            commands.append((True, ["evaluate", str(spec), "--home", str(home), "--seed", "1"]))
        else:
            commands.append((False, ["release", str(spec), "--home", str(home)]))
    return commands


@dataclass(frozen=True)
class Canary:
    home: Path
    elsewhere: list[Path]
    """Temporary and home folder of the process."""
    said: bytes
    codes: list[int]
    failing: list[str]


@pytest.fixture(scope="module")
def canary(tmp_path_factory: pytest.TempPathFactory) -> Canary:
    """A good release, an evaluation, and releases that fail, with a home and a temporary server of their own."""
    root = tmp_path_factory.mktemp("canary")
    home, elsewhere = root / "home", [root / "tmp", root / "user"]
    sources = {"good": (good_source(), {"source": {"path": "people.csv", "user_id": "id"}})} | failing_sources(root)
    for folder in (*elsewhere, *(root / name for name in sources)):
        folder.mkdir()
    commands: list[tuple[bool, list[str]]] = []
    for name, (content, sections) in sources.items():
        (root / name / sections["source"]["path"]).write_bytes(content)
        spec = write_spec(root / name, name=name, **sections)
        commands.append((True, ["release", str(spec), "--home", str(home)]))
        if name == "good":
            commands.append((True, ["evaluate", str(spec), "--home", str(home), "--repeat", "50", "--seed", "1"]))
        else:
            commands.append((False, ["release", str(spec), "--home", str(home)]))
    commands += item_commands(root, home)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "PLDP_"))}
    done = subprocess.run(
        [sys.executable, "-c", COMMANDS, json.dumps(commands)],
        env={**kept, "TMPDIR": str(elsewhere[0]), "HOME": str(elsewhere[1])},
        cwd=root / "user",
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    codes = [int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith(b"exit ")]
    return Canary(home, elsewhere, done.stdout + done.stderr, codes, list(sources)[1:])


def test_the_canary_ran(canary: Canary) -> None:
    """One release published, one evaluation, and every bad source refused as the source's fault."""
    assert canary.codes == [0, 0] + [2, 2] * len(canary.failing) + [0, 0] + [2, 2] * 2, canary.said.decode()
    with duckdb.connect(str(canary.home / "results.duckdb"), read_only=True) as results:
        rows = results.execute("SELECT name, status, n_users FROM releases").fetchall()
    n_owners = make_items(N_USERS)["user"].n_unique() + 1
    assert rows == [("good", "published", N_USERS), ("items", "published", n_owners)]
    spent = [json.loads(line)["name"] for line in (canary.home / "ledger.jsonl").read_text().splitlines()]
    assert spent == ["good", "items"]


def test_no_marked_value_leaves_the_vault(canary: Canary) -> None:
    paths = files_under(canary.home, without=canary.home / "vault")
    assert any(path.name == "prefect.db" for path in paths)
    assert find([MARK], paths) == []


def test_no_marked_value_is_said(canary: Canary) -> None:
    assert not in_bytes([MARK], canary.said)
    assert b"Traceback" not in canary.said


def test_nothing_is_left_in_temporary_folders(canary: Canary) -> None:
    """A stronger wish than finding no marker there."""
    assert [path for folder in canary.elsewhere for path in folder.rglob("*")] == []


def test_vaults_are_gone_after_publishing_and_after_a_refused_source(canary: Canary) -> None:
    assert [path.name for path in files_under(canary.home / "vault")] == ["key"]
    assert not list((canary.home / "vault").glob("good-*"))
    assert not list(canary.home.glob("evaluations/*/vault"))


def true_needles() -> list[bytes]:
    """The true histogram of jobs, as text, JSON and arrays."""
    job = make_people(N_USERS)["job"]
    counts = np.array([(job == value).sum() for value in JOBS])
    texts = [f"{count / N_USERS:.17g}"[:9] for count in counts]  # a printed array has eight digits
    pairs = [f"{a}{comma}{b}" for a, b in itertools.pairwise(counts) for comma in (", ", ",")]
    arrays = [counts.astype(np.int64).tobytes()[:24], (counts / N_USERS).tobytes()[:16]]
    totals = true_totals(make_items(N_USERS))
    arrays.append(totals.astype(np.int64).tobytes())
    pairs.append(", ".join(map(str, totals)))
    return [text.encode() for text in texts + pairs] + arrays


def test_an_evaluations_truth_stays_on_the_vaults_side(canary: Canary) -> None:
    evaluations = canary.home / "evaluations"
    outside = files_under(canary.home, without=evaluations)
    assert find(true_needles(), outside) == []
    assert find(true_needles(), files_under(evaluations)), "the search must be able to find the truth"


def test_kept_vaults_are_the_operators_alone(finished: Finished) -> None:
    vault = finished.home / "vault"
    assert (vault / finished.done.release_id / "vault.duckdb").exists()
    for folder in (vault, *(path for path in vault.rglob("*") if path.is_dir())):
        assert mode(folder) == 0o700, folder
    for path in files_under(vault):
        assert mode(path) & 0o077 == 0, path


def test_reports_are_not_the_analysts(finished: Finished) -> None:
    assert mode(finished.home / "reports") == 0o700
    assert mode(finished.home / "evaluations") == 0o700


def _sqlite_pickle(path: Path) -> None:
    failure = pickle.dumps(ValueError(f"line 3: {MARK.decode()} " + "x" * 10_000))
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE run_state (message TEXT)")
        connection.execute("INSERT INTO run_state VALUES (?)", ["data: " + base64.b64encode(failure).decode()])


def _duckdb_zipped(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE found AS SELECT ?::BLOB AS cell", [gzip.compress(b"a" * 500 + MARK)])


def _plain(wrap: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def plant(path: Path) -> None:
        path.write_bytes(b"noise " + wrap(b"before " + MARK + b" after") + b" noise")

    return plant


@pytest.mark.parametrize(
    "plant",
    [
        _sqlite_pickle,
        _duckdb_zipped,
        _plain(lambda mark: mark),
        _plain(lambda mark: mark.decode().encode("utf-16-le")),
        _plain(lambda mark: mark.hex().encode()),
        _plain(lambda mark: base64.urlsafe_b64encode(zlib.compress(pickle.dumps([mark])))),
        _plain(lambda mark: json.dumps({"data": base64.b64encode(b"q" + mark).decode()}).encode()),
        lambda path: pl.DataFrame({"cell": [MARK.decode()] * 9}).write_parquet(path, compression="zstd"),
    ],
)
def test_the_searcher_finds_what_is_planted(plant: Callable[[Path], None], tmp_path: Path) -> None:
    plant(tmp_path / "planted")
    assert find([MARK], files_under(tmp_path))
    assert not find([b"anotherMARKnobodyPlanted"], files_under(tmp_path))
