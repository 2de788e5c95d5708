"""What analysts ask: answers, sentences for mistakes, and no way to write or to read anything else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from statistics import NormalDist
from typing import TYPE_CHECKING

import duckdb
import pytest

from pldp.errors import HomeError, NotFound, RequestError
from pldp.tasks.analyst import ask, ask_difference, ask_group
from pldp.tasks.publish import publish
from tests.people import JOBS, digests, opened, world
from tests.pldp.groups import combine_difference, combine_group, group_interval
from tests.tasks.conftest import Staged
from tests.tasks.published import PASSED

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict


@pytest.fixture(scope="module")
def published(staged: Staged, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """To copy, not to change."""
    folder = tmp_path_factory.mktemp("published")
    run, _ = opened(world(folder), folder / "home")
    publish.fn(run, 4000, staged.tables, (PASSED,))
    return folder / "home"


@pytest.fixture
def home(published: Path, tmp_path: Path) -> Path:
    copy: Path = shutil.copytree(published, tmp_path / "home", symlinks=True)
    return copy


def test_an_answer_has_columns_and_rows(home: Path) -> None:
    answer = ask(home, "SELECT attribute, count(*) AS n FROM histograms GROUP BY attribute ORDER BY attribute")
    assert answer.columns == ("attribute", "n")
    assert answer.rows == [("job", 6), ("sex", 2)]
    assert answer.whole
    assert answer.as_dicts() == [{"attribute": "job", "n": 6}, {"attribute": "sex", "n": 2}]


def test_a_limit_says_whether_there_is_more(home: Path) -> None:
    for limit, whole in ((5, False), (6, True), (7, True)):
        answer = ask(home, "FROM histograms WHERE attribute = 'job'", limit)
        assert (len(answer.rows), answer.whole) == (min(limit, 6), whole)


def test_columns_named_alike_are_not_mixed_up(home: Path) -> None:
    with pytest.raises(RequestError, match="two columns alike"):
        ask(home, "SELECT 1 AS a, 2 AS a").as_dicts()


@pytest.mark.parametrize("query", ["", " ; ", "-- nothing"])
def test_an_empty_query(query: str, home: Path) -> None:
    with pytest.raises(RequestError, match="The query is empty"):
        ask(home, query)


def test_a_wrong_query_gets_the_databases_words(home: Path) -> None:
    with pytest.raises(RequestError, match=r"(?s)Table with name histogram does not exist.*Nothing was changed\."):
        ask(home, "FROM histogram")


FORBIDDEN = [
    "DELETE FROM histograms",
    "INSERT INTO releases SELECT * FROM releases",
    "CREATE TABLE t AS SELECT 1",
    "CREATE OR REPLACE MACRO group_estimate(a) AS a",
    "DROP VIEW latest_histograms",
    "COPY histograms TO '{home}/stolen.csv'",
    "EXPORT DATABASE '{home}/stolen'",
    "FROM read_text('{home}/vault/key')",
    "FROM read_blob('{home}/ledger.jsonl')",
    "FROM '{home}/reports/x.parquet'",
    "FROM glob('{home}/*')",
    "ATTACH '{home}/vault/vault.duckdb' AS vault (READ_ONLY)",
    "ATTACH '{home}/new.duckdb' AS new",
    "INSTALL httpfs",
    "LOAD httpfs",
    "SET enable_external_access = true",
    "RESET enable_external_access",
    "SET lock_configuration = false",
    "SET temp_directory = '{home}'",
    "SET allowed_directories = ['/']",
    "SELECT 1; DELETE FROM histograms",
    "SELECT 1; SELECT 2",
    "COPY (SELECT 1) TO '{log}'",
    "COPY (SELECT 1) TO '{log}' (USE_TMP_FILE false)",
    "WITH x AS (COPY releases TO '{log}') FROM x",
    "EXPLAIN ANALYZE COPY releases TO '{log}' (USE_TMP_FILE false)",
    "EXPLAIN COPY releases TO '{log}'",
    "EXPLAIN/**/ANALYZE COPY releases TO '{log}'",
    "EXPLAIN ANALYZE WITH x AS (COPY releases TO '{log}') FROM x",
    "WITH x AS (DELETE FROM histograms RETURNING value) FROM x",
    "FROM query('COPY releases TO ''{log}''')",
    "FROM '{file}'",
    "FROM read_blob('{file}')",
    "ATTACH '{file}' AS again (READ_ONLY)",
    "CREATE TEMP TABLE t AS SELECT 1",
    "PRAGMA database_size",
    "CALL pragma_version()",
    "IMPORT DATABASE '{home}'",
    "CHECKPOINT",
    "COMMIT",
    "PREPARE x AS SELECT 1",
    "UPDATE EXTENSIONS",
    "FROM read_csv('/etc/passwd')",
    "FROM read_text('/proc/self/environ')",
    "FROM secret",
]


@pytest.mark.parametrize("query", FORBIDDEN)
def test_a_query_reads_the_results_and_nothing_else(query: str, home: Path) -> None:
    secret = "a variable of this program is no table either"  # noqa: F841, S105
    duckdb.connect(str(home / "vault" / "vault.duckdb")).execute("CREATE TABLE people AS SELECT 1 AS a").close()
    before = digests(home)
    file = (home / "results.duckdb").resolve()
    with pytest.raises(RequestError):
        ask(home, query.format(home=home, file=file, log=f"{file}.wal"))
    assert digests(home) == before


@pytest.mark.parametrize(
    "query",
    [
        "FROM histograms",
        "-- with a remark\nSELECT 1;",
        "WITH x AS (SELECT 1) FROM x",
        "VALUES (1)",
        "TABLE releases",
        "DESCRIBE histograms",
        "SUMMARIZE histograms",
        "SHOW TABLES",
        "PIVOT histograms ON value USING first(frequency)",
        "EXPLAIN FROM histograms",
        "EXPLAIN ANALYZE SELECT 1",
        "explain (format json) select 1",
        "FROM group_estimate('people', 'job', ['farmer'])",
        "SELECT comment FROM duckdb_columns() WHERE table_name = 'histograms' AND comment IS NOT NULL",
        "SELECT 'no file is allowed' WHERE current_setting('allowed_paths') = []",
    ],
)
def test_what_reads_is_answered(query: str, home: Path) -> None:
    before = digests(home)
    assert ask(home, query).rows
    assert digests(home) == before


def test_no_results_yet(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"no results yet\. `pldp release SPEC"):
        ask(tmp_path / "nowhere", "SELECT 1")


def test_results_that_somebody_opened_for_writing(home: Path, tmp_path: Path) -> None:
    """Only root or the operator can; whoever asks meanwhile learns why it does not work."""
    path = (home / "results.duckdb").resolve()
    path.chmod(0o600)
    code = f"import duckdb, sys; c = duckdb.connect({str(path)!r}); print('open', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdout is not None
        assert writer.stdout.readline() == b"open\n"
        with pytest.raises(HomeError, match="open for writing"):
            ask(home, "SELECT 1")
        writer.communicate()
    assert ask(home, "SELECT 1").rows == [(1,)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_results_that_may_not_be_read(home: Path) -> None:
    (home / "results.duckdb").resolve().chmod(0)
    with pytest.raises(HomeError, match="cannot be opened"):
        ask(home, "SELECT 1")


class TestGroups:
    def test_one_value_is_the_published_one(self, home: Path) -> None:
        """Its interval is nearly that of the histogram, which weighs levels anew for every share that it tests; the
        published error is of the post-processed frequency."""
        for value, unbiased, low, high in ask(
            home, "SELECT value, unbiased_frequency, ci_low, ci_high FROM histograms WHERE attribute = 'job'"
        ).rows:
            found = ask_group(home, "people", "job", [value])
            assert found["frequency"] == pytest.approx(unbiased, rel=1e-12)
            assert (found["ci_low"], found["ci_high"]) == pytest.approx((low, high), abs=0.05 * (high - low))

    def test_a_group_is_combine_group(self, home: Path, staged: Staged) -> None:
        levels, method = staged.result.levels[0].levels, staged.result.histograms[0].method
        for members in ([0, 1], [2, 3, 4], list(range(len(JOBS)))):
            expected = combine_group("oc+" if method == "guarded" else method, levels, members)
            found = ask_group(home, "people", "job", [JOBS[j] for j in members], confidence=0.9)
            assert found["frequency"] == pytest.approx(float(expected.frequency), rel=1e-12)
            assert found["standard_error"] == pytest.approx(float(expected.standard_error), rel=1e-12)
            ends = group_interval(expected, levels, len(members), NormalDist().inv_cdf(0.95))
            assert found["ci_high"] == pytest.approx(ends.high[0], rel=1e-9)

    def test_a_difference_is_that_of_both_groups_with_one_set_of_weights(self, home: Path, staged: Staged) -> None:
        levels, method = staged.result.levels[0].levels, staged.result.histograms[0].method
        linear = "oc+" if method == "guarded" else method
        expected, ends = combine_difference(linear, levels, [0, 1], [2], NormalDist().inv_cdf(0.95))
        found = ask_difference(home, "people", "job", [JOBS[0], JOBS[1]], [JOBS[2]], confidence=0.9)
        assert found["difference"] == pytest.approx(float(expected.frequency), rel=1e-9)
        assert found["standard_error"] == pytest.approx(float(expected.standard_error), rel=1e-9)
        assert (found["ci_low"], found["ci_high"]) == pytest.approx((ends.low[0], ends.high[0]), rel=1e-6)
        with pytest.raises(RequestError, match=f"both groups have {JOBS[0]}"):
            ask_difference(home, "people", "job", [JOBS[0]], [JOBS[0]])

    def test_mistakes_are_told(self, home: Path) -> None:
        said = f'attribute "job" has no value nobody, only {", ".join(sorted(JOBS))}'
        with pytest.raises(RequestError, match=said):
            ask_group(home, "people", "job", ["farmer", "nobody"])
        said = 'has no level estimates of an attribute "jobs", only of job, sex'
        with pytest.raises(RequestError, match=said):
            ask_group(home, "people", "jobs", ["farmer"])
        with pytest.raises(RequestError, match='no release "x"'):
            ask_group(home, "x", "job", ["farmer"])

    def test_results_from_before_groups(self, home: Path, tmp_path: Path) -> None:
        path = (home / "results.duckdb").resolve()
        path.chmod(0o600)
        duckdb.connect(str(path)).execute("DROP MACRO TABLE group_estimate").close()
        with pytest.raises(NotFound, match="the next release adds them"):
            ask_group(home, "people", "job", ["farmer"])

    def test_results_from_before_groups_had_a_macro_of_levels(self, home: Path) -> None:
        asked = ask_group(home, "people", "job", ["farmer"])
        path = (home / "results.duckdb").resolve()
        path.chmod(0o600)
        with duckdb.connect(str(path)) as results:
            results.execute("DROP MACRO TABLE group_levels; DROP MACRO TABLE chosen_release")
        assert ask_group(home, "people", "job", ["farmer"]) == asked

    def test_the_next_release_brings_groups_to_old_results(
        self, home: Path, tmp_path: Path, staged: Staged, passed: tuple[Verdict, ...]
    ) -> None:
        path = (home / "results.duckdb").resolve()
        path.chmod(0o600)
        duckdb.connect(str(path)).execute("DROP MACRO TABLE group_estimate").close()
        run, _ = opened(world(tmp_path), home, slot="second")
        publish.fn(run, 4000, staged.tables, passed)
        assert ask_group(home, "people", "job", ["farmer"])["n_values"] == 1
