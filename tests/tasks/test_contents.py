"""What was published can be told from what somebody made of it later."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from pldp.errors import HomeError
from pldp.flows import cli
from pldp.tasks.analyst import ask, ask_group
from pldp.tasks.contents import compare_contents
from pldp.tasks.export import export_release
from pldp.tasks.home import Home
from pldp.tasks.page import build_page
from pldp.tasks.results import list_releases, read_release
from tests.people import mode
from tests.tasks.published import publish_by_hand

WRITER = """
import duckdb, sys
results = duckdb.connect(sys.argv[1])
results.execute(sys.argv[2])
results.close()
"""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """To copy, not to change."""
    return publish_by_hand(tmp_path_factory.mktemp("published"), "first")[0]


@pytest.fixture
def home(published: Path, tmp_path: Path) -> Path:
    copy: Path = shutil.copytree(published, tmp_path / "home", symlinks=True)
    return copy


def validate(home: Path, wanted: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", ["pldp", "validate", wanted, "--home", str(home)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def write(home: Path, statement: str) -> None:
    """Another program changes the results, as whoever owns them can."""
    path = (home / "results.duckdb").resolve()
    path.chmod(0o600)
    subprocess.run([sys.executable, "-c", WRITER, str(path), statement], check=True)


def test_a_release_verifies_and_is_carried_along(
    tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    first = str(list_releases(home)["release_id"][0])
    before = compare_contents(Home(home), first)
    assert before.recorded
    assert before.problems == ()
    for slot in ("second", "third", "fourth", "fifth"):
        publish_by_hand(tmp_path, slot)
    assert compare_contents(Home(home), first) == before, "in another file by now"
    assert validate(home, first, monkeypatch) == 0
    assert f"sha256 {before.sha256}, as published" in capsys.readouterr().out
    record = json.loads((home / "releases" / first / "contents.json").read_text())
    assert record["contents_sha256"] == before.sha256
    assert mode(home / "releases" / first / "contents.json") == mode(home / "publications.jsonl") == 0o644


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE histograms SET frequency = 0.9 WHERE value = 'farmer'",
        "UPDATE histograms SET frequency = nextafter(frequency, 1) WHERE value = 'farmer'",
        "DELETE FROM budgets WHERE level = 'low'",
        "INSERT INTO histograms FROM histograms LIMIT 1",
        "UPDATE releases SET n_users = 5000",
        "UPDATE validations SET observed = 0",
        "CREATE OR REPLACE VIEW latest_histograms AS SELECT 'people' AS name, * REPLACE (0.9 AS count) FROM histograms",
        "CREATE OR REPLACE MACRO group_estimate(a, b, c) AS TABLE SELECT 0.9 AS frequency",
    ],
)
def test_results_that_another_program_changed_do_not_verify(
    statement: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert validate(home, "people", monkeypatch) == 0
    write(home, statement)
    assert validate(home, "people", monkeypatch) == 1
    assert ", not what was published\n" in capsys.readouterr().out


def test_a_results_file_that_no_release_made_does_not_verify(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its rows are those of the release; its views need not be."""
    link = home / "results.duckdb"
    shutil.copyfile(link, home / "results-9.duckdb")
    link.unlink()
    link.symlink_to("results-9.duckdb")
    write(home, "CREATE OR REPLACE VIEW latest_histograms AS SELECT * REPLACE (0.99 AS frequency) FROM histograms")
    assert validate(home, "people", monkeypatch) == 1
    assert "results-9.duckdb is not a file that was published" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("name", ["spec.json", "privacy.json"])
def test_a_statement_or_spec_that_was_changed_does_not_verify(
    name: str, home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (path,) = (home / "releases").glob(f"*/{name}")
    path.chmod(0o600)
    path.write_text(path.read_text() + " ")
    assert validate(home, "people", monkeypatch) == 1
    assert f"{name} does not have the hash" in " ".join(capsys.readouterr().err.split())


def test_falsified_rows_are_told_in_later_files_too(tmp_path: Path, home: Path) -> None:
    """The next publication carries them along; the release they belong to still does not verify, the next does."""
    first = str(list_releases(home)["release_id"][0])
    write(home, "UPDATE histograms SET frequency = 0.9 WHERE value = 'farmer'")
    _, second = publish_by_hand(tmp_path, "second")
    assert len(compare_contents(Home(home), first).problems) == 2, "one for each record"
    assert compare_contents(Home(home), second).problems == ()


def test_the_attack_by_a_write_ahead_log(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A log made elsewhere, planted beside the results, changes what a plain reader sees; none of ours takes it."""
    path = (home / "results.duckdb").resolve()
    elsewhere = tmp_path / "elsewhere" / path.name
    elsewhere.parent.mkdir()
    shutil.copyfile(path, elsewhere)
    code = (
        "import duckdb, os, sys; c = duckdb.connect(sys.argv[1]); "
        "c.execute(\"UPDATE histograms SET frequency = 0.99 WHERE value = 'farmer'\"); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(elsewhere)], check=True)
    log = Path(f"{path}.wal")
    shutil.copyfile(f"{elsewhere}.wal", log)
    with duckdb.connect(str(path), read_only=True) as plain:
        seen = plain.execute("SELECT max(frequency) FROM histograms").fetchone()
    assert seen == (0.99,), "the attack works on whoever opens the file without looking"
    readers: list[Callable[[], Any]] = [
        lambda: ask(home, "FROM histograms"),
        lambda: ask_group(home, "people", "job", ["farmer"]),
        lambda: export_release(home, "people", tmp_path / "out"),
        lambda: read_release(home, "people"),
        lambda: list_releases(home),
        lambda: build_page(home, "people"),
        lambda: compare_contents(Home(home), "people"),
        lambda: publish_by_hand(tmp_path, "second"),
    ]
    for reader in readers:
        with pytest.raises(HomeError, match=r"results-1\.duckdb\.wal: a write-ahead log stands beside"):
            reader()
    assert validate(home, "people", monkeypatch) == 3
    assert "move the log away" in capsys.readouterr().err
    log.unlink()
    assert validate(home, "people", monkeypatch) == 0


def test_a_record_that_was_changed_or_is_gone_is_told(home: Path) -> None:
    release_id = str(list_releases(home)["release_id"][0])
    record, listed = home / "releases" / release_id / "contents.json", home / "publications.jsonl"
    content, lines = record.read_text(), listed.read_text()
    record.write_text(content.replace('"contents_sha256": "', '"contents_sha256": "0'))
    assert compare_contents(Home(home), release_id).problems
    record.write_text("{")
    assert compare_contents(Home(home), release_id).problems
    record.unlink()
    assert compare_contents(Home(home), release_id).problems
    record.write_text(content)
    listed.write_text(lines.replace('"contents_sha256": "', '"contents_sha256": "0'))
    assert compare_contents(Home(home), release_id).problems
    listed.write_text(lines)
    assert not compare_contents(Home(home), release_id).problems


def test_a_release_from_before_hashes_is_not_refused(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    release_id = str(list_releases(home)["release_id"][0])
    (home / "releases" / release_id / "contents.json").unlink()
    (home / "publications.jsonl").unlink()
    assert validate(home, release_id, monkeypatch) == 0
    assert "not compared: published before hashes were recorded" in capsys.readouterr().out


def test_a_column_that_a_later_version_adds_leaves_the_hash(home: Path) -> None:
    release_id = str(list_releases(home)["release_id"][0])
    write(home, "ALTER TABLE histograms ADD COLUMN something DOUBLE")
    (problem,) = compare_contents(Home(home), release_id).problems
    assert problem.startswith("results-1.duckdb is not the file"), "the file is another, the release is the same"


def test_rows_in_another_order_have_the_same_hash(home: Path) -> None:
    release_id = str(list_releases(home)["release_id"][0])
    before = compare_contents(Home(home), release_id).sha256
    write(home, "CREATE OR REPLACE TABLE histograms AS FROM histograms ORDER BY frequency, value DESC")
    after = compare_contents(Home(home), release_id)
    assert after.sha256 == before
    assert len(after.problems) == 1, "the file is another"
