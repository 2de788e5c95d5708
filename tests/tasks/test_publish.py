"""Publish: one replacement; all tables of a release appear together or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import pldp.tasks.publish
from pldp import __version__
from pldp.errors import HomeError, StageFailed
from pldp.tasks.publish import publish, status_of
from pldp.tasks.query import connect
from pldp.tasks.run import Run
from tests.people import mode, opened, world
from tests.tasks.conftest import Staged

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict


def ask(run: Run, query: str) -> list[Any]:
    with connect(run.home.results.resolve(), read_only=True) as results:
        return results.execute(query).fetchall()


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return opened(world(tmp_path), tmp_path / "home")[0]


def test_a_published_release(run: Run, staged: Staged, passed: tuple[Verdict, ...]) -> None:
    assert status_of(run.home, run.release_id) is None
    assert publish.fn(run, 4000, staged.tables, passed) == "published"
    assert status_of(run.home, run.release_id) == "published"
    ((release_id, name, status, at, users, spec, plan, version, worst, protects),) = ask(run, "FROM releases")
    assert (release_id, name, status, users) == (run.release_id, "people", "published", 4000)
    assert (spec, plan, version) == (run.spec_sha256, run.plan.sha256, __version__)
    assert (worst, protects) == (4.0, "user"), "the total of the spec"
    assert at.isoformat() in json.loads((run.folder / "opened.json").read_text())["at"]
    for table, frame in staged.tables.items():
        columns = ", ".join(f'"{column}"' for column in frame.columns)
        found = ask(run, f"SELECT {columns} FROM {table} ORDER BY rowid")  # noqa: S608
        assert found == frame.rows()
    assert ask(run, "SELECT gate, passed, observed, bound, false_alarm FROM validations") == [
        ("one", True, 1.0, 2.0, 0.0),
        ("two", True, 0.0, 0.0, 1e-6),
    ]
    statement = json.loads((run.folder / "privacy.json").read_text())
    assert statement["release_id"] == run.release_id
    assert mode(run.folder / "privacy.json") == 0o644


def test_a_refused_release_leaves_its_row_and_its_gates(run: Run, staged: Staged, refused: tuple[Verdict, ...]) -> None:
    assert publish.fn(run, 4000, staged.tables, refused) == "refused"
    assert ask(run, "SELECT status FROM releases") == [("refused",)]
    assert ask(run, "SELECT gate, passed FROM validations") == [("one", True), ("two", False)]
    for table in ("histograms", "level_estimates", "budgets", "latest_releases", "latest_validations"):
        assert ask(run, f"FROM {table}") == []
    assert (run.folder / "privacy.json").exists(), "its users have spent, and are told what"


def test_a_repeat_changes_nothing(
    run: Run, staged: Staged, passed: tuple[Verdict, ...], refused: tuple[Verdict, ...]
) -> None:
    publish.fn(run, 4000, staged.tables, refused)
    before = run.home.results.resolve()
    assert publish.fn(run, 4000, staged.tables, passed) == "refused", "a verdict stands"
    assert run.home.results.resolve() == before
    assert ask(run, "SELECT count(*) FROM releases") == [(1,)]


def test_an_evaluation_is_not_published(tmp_path: Path, staged: Staged, passed: tuple[Verdict, ...]) -> None:
    run, _ = opened(world(tmp_path), tmp_path / "home", evaluation=True)
    with pytest.raises(HomeError, match=r"cannot be published\. Nothing was published"):
        publish.fn(run, 4000, staged.tables, passed)
    assert not run.home.results.exists()


@pytest.mark.parametrize("broken", ["histograms", "budgets"])
def test_all_tables_or_none(broken: str, run: Run, staged: Staged, passed: tuple[Verdict, ...]) -> None:
    """A table that does not fit takes the whole release down, and the earlier one stays as it was."""
    other = Run(run.root, run.release_id)
    publish.fn(other, 4000, staged.tables, passed)
    before, number = run.home.results.read_bytes(), run.home.results.readlink()
    second, _ = opened(run.home.root.parent / "spec.yaml", run.home.root, "second")
    tables = staged.tables | {broken: staged.tables[broken].with_columns(pl.lit(None, pl.String).alias("attribute"))}
    with pytest.raises(StageFailed, match="Stage publish failed"):
        publish.fn(second, 4000, tables, passed)
    assert run.home.results.readlink() == number
    assert run.home.results.read_bytes() == before
    assert sorted(path.name for path in run.home.root.glob("*results*")) == ["results-1.duckdb", "results.duckdb"]
    assert not list(run.home.root.glob(".*")), "no draft is left"
    assert publish.fn(second, 4000, staged.tables, passed) == "published"
    assert ask(run, "SELECT count(*) FROM releases") == [(2,)]


def test_a_table_that_nobody_declared_is_not_published(run: Run, staged: Staged, passed: tuple[Verdict, ...]) -> None:
    tables = staged.tables | {"strange": staged.tables["budgets"]}
    with pytest.raises(StageFailed, match="Stage publish failed"):
        publish.fn(run, 4000, tables, passed)
    assert not run.home.results.exists()


def test_a_crash_before_the_swap_is_made_up_for(
    run: Run, staged: Staged, passed: tuple[Verdict, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next file is there, the link is not: a repeat builds another and nobody saw half of it."""

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(pldp.tasks.publish, "_point", die)
        with pytest.raises(KeyboardInterrupt):
            publish.fn(run, 4000, staged.tables, passed)
    assert not run.home.results.exists()
    assert publish.fn(run, 4000, staged.tables, passed) == "published"
    assert ask(run, "SELECT count(*), count(DISTINCT release_id) FROM releases") == [(1, 1)]


def test_files_are_numbered_read_only_and_the_oldest_go(run: Run, staged: Staged, passed: tuple[Verdict, ...]) -> None:
    spec = run.home.root.parent / "spec.yaml"
    for slot in "abcde":
        publish.fn(opened(spec, run.home.root, slot)[0], 4000, staged.tables, passed)
    numbered = sorted(path.name for path in run.home.root.glob("results-*"))
    assert numbered == ["results-3.duckdb", "results-4.duckdb", "results-5.duckdb"]
    assert {mode(run.home.root / name) for name in numbered} == {0o444}
    assert str(run.home.results.readlink()) == "results-5.duckdb", "relative: a home may be moved"
    assert ask(run, "SELECT count(*) FROM releases") == [(5,)]


OLDER = """
DROP VIEW latest_histograms;
ALTER TABLE histograms DROP COLUMN unbiased_standard_error;
CREATE VIEW latest_histograms AS
    SELECT latest_releases.name, histograms.* FROM histograms JOIN latest_releases USING (release_id);
"""
"""Results as 0.2.0 published them."""


def test_results_of_the_version_before_get_the_error_of_the_unbiased_frequency(
    run: Run, staged: Staged, passed: tuple[Verdict, ...]
) -> None:
    publish.fn(run, 4000, staged.tables, passed)
    path = run.home.results.resolve()
    path.chmod(0o600)
    with connect(path) as results:
        results.execute(OLDER)
    second, _ = opened(run.home.root.parent / "spec.yaml", run.home.root, "second")
    publish.fn(second, 4000, staged.tables, passed)
    query = "SELECT release_id, count(unbiased_standard_error) FROM {} GROUP BY ALL"
    assert dict(ask(run, query.format("histograms"))) == {run.release_id: 0, second.release_id: staged.rows.height}
    assert ask(run, query.format("latest_histograms")) == [(second.release_id, staged.rows.height)]
