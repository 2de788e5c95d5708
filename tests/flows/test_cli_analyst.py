"""The analyst's commands: what they print, their exit codes, and that a release under way does not disturb them."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tests.faults.dying import start
from tests.flows.conftest import PATIENCE, Finished, Pldp

COMMAND = [sys.executable, "-m", "pldp.flows.cli"]
WHOLE = """
    SELECT releases.release_id, releases.status,
        (SELECT count(*) FROM histograms h WHERE h.release_id = releases.release_id) AS histograms,
        (SELECT count(*) FROM level_estimates l WHERE l.release_id = releases.release_id) AS level_estimates,
        (SELECT count(*) FROM budgets b WHERE b.release_id = releases.release_id) AS budgets,
        (SELECT count(*) FROM validations v WHERE v.release_id = releases.release_id) AS validations
    FROM releases ORDER BY created_at
"""
"""What a release has in every table."""


ANALYST = """
import sys
import duckdb

results = duckdb.connect(f"{sys.argv[1]}/results.duckdb", read_only=True)
for line in sys.stdin:
    print(results.execute("SELECT count(*) FROM releases").fetchone()[0], flush=True)
"""
"""Keeps one connection open and counts releases whenever asked."""


def shape(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row.values())[1:]


class TestQuery:
    def test_a_table_for_people(self, finished: Finished, pldp: Pldp) -> None:
        query = "SELECT value, frequency, reliable FROM latest_histograms WHERE attribute = 'job' AND value = 'farmer'"
        said = pldp("query", query, "--home", finished.home)
        assert said.code == 0
        assert "farmer" in said.out
        assert "frequency" in said.out
        assert "rows" not in said.out

    def test_more_rows_than_shown(self, finished: Finished, pldp: Pldp) -> None:
        said = pldp("query", "SELECT range FROM range(250)", "--home", finished.home)
        assert " 99 " in said.out
        assert "│   100 │" not in said.out
        assert "The first 100 rows; --limit shows more, --csv and --json give all." in said.out
        said = pldp("query", "SELECT range FROM range(250)", "--limit", 250, "--home", finished.home)
        assert " 249 " in said.out
        assert "The first" not in said.out

    def test_too_wide_for_a_table_is_shown_in_full(self, finished: Finished, pldp: Pldp) -> None:
        said = pldp("query", "FROM latest_histograms", "--limit", 1, "--home", finished.home)
        assert "unbiased_frequency" in said.out
        assert finished.done.release_id in said.out

    def test_markup_is_text(self, finished: Finished, pldp: Pldp) -> None:
        assert "[bold]x[/]" in pldp("query", "SELECT '[bold]x[/]' AS \"[red]\"", "--home", finished.home).out

    def test_json(self, finished: Finished, pldp: Pldp) -> None:
        query = (
            "SELECT 'a,\"b' AS text, 1.5::DECIMAL(4, 2) AS number, sum(1) AS whole, 'nan'::DOUBLE AS none, "
            "true AS yes, DATE '2026-01-02' AS day, [1, NULL] AS list, {'k': 'inf'::DOUBLE} AS struct"
        )
        said = pldp("query", query, "--json", "--home", finished.home)
        assert json.loads(said.out) == [
            {
                "text": 'a,"b',
                "number": 1.5,
                "whole": 1,
                "none": None,
                "yes": True,
                "day": "2026-01-02",
                "list": [1, None],
                "struct": {"k": None},
            }
        ]
        assert json.loads(pldp("query", "SELECT 1 WHERE false", "--json", "--home", finished.home).out) == []

    def test_csv_is_complete_and_exact(self, finished: Finished, pldp: Pldp) -> None:
        said = pldp("query", "FROM latest_histograms", "--csv", "--limit", 1, "--home", finished.home)
        found = list(csv.DictReader(io.StringIO(said.out)))
        exact = json.loads(pldp("query", "FROM latest_histograms", "--json", "--home", finished.home).out)
        assert [float(row["frequency"]) for row in found] == [row["frequency"] for row in exact]
        assert len(found) == 8
        assert {row["reliable"] for row in found} <= {"true", "false"}

    @pytest.mark.parametrize(
        ("query", "part"),
        [
            ("SELEC 1", "syntax error"),
            ("FROM nowhere", "Table with name nowhere does not exist"),
            ("DELETE FROM histograms", "only reads"),
            ("WITH x AS (DELETE FROM histograms RETURNING value) FROM x", "read-only"),
            ("SELECT 1; SELECT 2", "One statement at a time"),
            ("FROM read_csv('/etc/passwd')", "file system operations are disabled"),
            ("", "The query is empty"),
        ],
    )
    def test_a_bad_query_is_exit_code_2(self, query: str, part: str, finished: Finished, pldp: Pldp) -> None:
        said = pldp("query", query, "--home", finished.home)
        assert said.code == 2
        assert said.err.startswith("Error: ")
        assert part in said.err
        assert "Nothing was changed." in said.err
        assert said.out == ""

    def test_json_or_csv(self, finished: Finished, pldp: Pldp) -> None:
        said = pldp("query", "SELECT 1", "--json", "--csv", "--home", finished.home)
        assert said.code == 2
        assert "not both" in said.err

    def test_a_query_may_begin_with_a_comment(self, finished: Finished, pldp: Pldp) -> None:
        """As files of SQL do; the shell hands it over as one word that looks like an option."""
        said = pldp("query", "-- what = there\nSELECT 7 AS n -- is\n;", "--csv", "--home", finished.home)
        assert (said.code, said.out) == (0, "n\n7\n")
        for wrong in (["SELECT 1", "--cvs"], ["--cvs", "SELECT 1"], ["--cvs"]):
            assert pldp("query", *wrong, "--home", finished.home).code == 2

    def test_lists_in_csv_are_json(self, finished: Finished, pldp: Pldp) -> None:
        """As in exported files, for programs that are not written in Python."""
        query = "SELECT ['it''s', 'b\u00e9'] AS l, {'a': 1.5::DECIMAL(9, 2), 'b': DATE '2026-01-01'} AS s, [] AS n"
        said = pldp("query", query, "--csv", "--home", finished.home)
        (row,) = csv.DictReader(io.StringIO(said.out))
        found = {name: json.loads(cell) for name, cell in row.items()}
        assert found == {"l": ["it's", "b\u00e9"], "s": {"a": 1.5, "b": "2026-01-01"}, "n": []}

    def test_no_results_yet(self, tmp_path: Path, pldp: Pldp) -> None:
        said = pldp("query", "SELECT 1", "--home", tmp_path / "home")
        assert said.code == 2
        assert "no results yet" in said.err
        assert not (tmp_path / "home").exists(), "looking makes nothing"

    def test_whoever_reads_may_stop(self, finished: Finished) -> None:
        query = [*COMMAND, "query", "FROM range(1000000)", "--csv", "--home", str(finished.home)]
        with subprocess.Popen(query, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"range\n"
            process.stdout.close()
            assert process.wait(PATIENCE) == 0
            assert process.stderr is not None
            assert process.stderr.read() == b""


class TestGroup:
    def test_a_group(self, finished: Finished, pldp: Pldp) -> None:
        said = pldp("group", "people", "job", "farmer", "nurse", "--home", finished.home, "--json")
        found = json.loads(said.out)
        assert said.code == 0
        # Truth 0.65: 40 % farmers and 25 % nurses; 6 standard errors.
        assert abs(found["frequency"] - 0.65) < 6 * found["standard_error"]
        assert found["ci_low"] < found["frequency"] < found["ci_high"]
        assert (found["n_values"], found["n_reports"], found["confidence"]) == (2, 3000, 0.95)
        wider = json.loads(
            pldp(
                "group", "people", "job", "farmer", "nurse", "--confidence", 0.99, "--home", finished.home, "--json"
            ).out
        )
        assert wider["ci_low"] < found["ci_low"]
        shown = pldp("group", finished.done.release_id, "job", "farmer", "nurse", "--home", finished.home).out
        assert "job: farmer, nurse" in shown
        assert "95 % interval" in shown

    def test_mistakes_are_exit_code_2(self, finished: Finished, pldp: Pldp) -> None:
        for arguments, part in (
            (
                ("people", "job", "farmers"),
                'attribute "job" has no value farmers, only clerk, farmer, none, nurse, other, smith',
            ),
            (("people", "jobs", "farmer"), 'no level estimates of an attribute "jobs", only of job, sex'),
            (("persons", "job", "farmer"), 'no release "persons"'),
        ):
            said = pldp("group", *arguments, "--home", finished.home)
            assert said.code == 2
            assert part in said.err


def test_export(finished: Finished, pldp: Pldp, tmp_path: Path) -> None:
    said = pldp("export", "people", tmp_path / "out", "--home", finished.home)
    assert said.code == 0
    assert "histograms.parquet" in said.out
    assert pl.read_parquet(tmp_path / "out" / "histograms.parquet").height == 8
    again = pldp("export", "people", tmp_path / "out", "--home", finished.home)
    assert again.code == 2
    assert "--force" in again.err
    assert pldp("export", "people", tmp_path / "out", "--force", "--home", finished.home).code == 0
    assert pldp("export", "people", tmp_path / "out", "--format", "xlsx", "--home", finished.home).code == 2


@pytest.fixture
def home(finished: Finished, tmp_path: Path) -> Path:
    """A home with one release, to add to."""
    copy: Path = shutil.copytree(finished.home, tmp_path / "home", symlinks=True)
    return copy


def test_queries_while_a_release_runs_and_publishes(finished: Finished, home: Path, pldp: Pldp) -> None:
    """An analyst holds the results open and others come and go: all see the release before or after, never half."""
    (first,) = json.loads(pldp("query", WHOLE, "--home", home, "--json").out)
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", ANALYST, str(home)], stdin=pipe, stdout=pipe, text=True) as analyst:
        assert analyst.stdin is not None
        assert analyst.stdout is not None

        def ask_analyst() -> int:
            print("again", file=analyst.stdin, flush=True)
            assert analyst.stdout is not None
            return int(analyst.stdout.readline())

        assert ask_analyst() == 1
        running = start(home.parent / "said", "release", finished.spec, "--home", home, "--slot", "second")
        seen = []
        while running.is_alive():
            said = pldp("query", WHOLE, "--home", home, "--json")
            assert said.code == 0, said.err
            seen.append(json.loads(said.out))
            assert ask_analyst() == 1, "an open connection keeps its file"
        assert running.exitcode == 0
        seen.append(json.loads(pldp("query", WHOLE, "--home", home, "--json").out))
        assert ask_analyst() == 1
        analyst.stdin.close()
    assert seen[0] == [first], "the release was still running"
    assert len(seen[-1]) == 2
    for rows in seen:
        assert rows[0] == first
        assert [shape(row) for row in rows] == [shape(first)] * len(rows)
    counts = [len(rows) for rows in seen]
    assert counts == sorted(counts)


PUBLICATIONS = 8
PUBLISHER = """
import sys
from pathlib import Path
import polars as pl
from pldp.tasks.home import Home
from pldp.tasks.publish import _replace
from pldp.tasks.results import read_release

home = Path(sys.argv[1])
found = read_release(home, "people")
print("begins", flush=True)
for number in range(int(sys.argv[2])):
    _replace(Home(home), f"people-{number}", found.tables)
"""


def test_queries_during_many_publications(home: Path, pldp: Pldp) -> None:
    """The swap itself, many times: every answer is whole, and none is an error."""
    (first,) = json.loads(pldp("query", WHOLE, "--home", home, "--json").out)
    words = [sys.executable, "-c", PUBLISHER, str(home), str(PUBLICATIONS)]
    publisher = subprocess.Popen(words, stdout=subprocess.PIPE)
    assert publisher.stdout is not None
    publisher.stdout.readline()  # it has imported what it needs
    counts = []
    while publisher.poll() is None:
        said = pldp("query", WHOLE, "--home", home, "--json")
        assert said.code == 0, said.err
        rows = json.loads(said.out)
        assert {shape(row) for row in rows} == {shape(first)}
        counts.append(len(rows))
    publisher.stdout.close()
    assert publisher.returncode == 0
    assert counts == sorted(counts)
    assert len(set(counts)) > 2, "answers came from several files"
    assert len(json.loads(pldp("query", WHOLE, "--home", home, "--json").out)) == 1 + PUBLICATIONS
