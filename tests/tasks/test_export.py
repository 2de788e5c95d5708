"""Export: every table of a release as a file, whole or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

import pldp.tasks.export
from pldp.errors import NotFound, RequestError
from pldp.questions.tables import PUBLISHED
from pldp.tasks.export import Format, export_release
from pldp.tasks.publish import publish
from pldp.tasks.run import Run
from tests.people import digests, opened, world
from tests.tasks.conftest import Staged

if TYPE_CHECKING:
    from pldp.expectations.runner import Verdict

TABLES = {table.name for table in PUBLISHED}


@pytest.fixture
def run(tmp_path: Path, staged: Staged, passed: tuple[Verdict, ...]) -> Run:
    run, _ = opened(world(tmp_path), tmp_path / "home")
    publish.fn(run, 4000, staged.tables, passed)
    return run


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_every_table_and_the_statement(kind: Format, run: Run, staged: Staged, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "out"
    written = export_release(run.home.root, "people", folder, kind)
    assert set(written) == {f"{table}.{kind}" for table in TABLES} | {"privacy.json"}
    assert {path.name for path in folder.iterdir()} == set(written), "no draft is left"
    for table, frame in staged.tables.items():
        path = folder / f"{table}.{kind}"
        found = pl.read_parquet(path) if kind == "parquet" else pl.read_csv(path, schema_overrides=frame.schema)
        assert found["release_id"].unique().to_list() == [run.release_id]
        # Bit for bit, CSV too: floats are written so that they read back the same.
        assert found.select(frame.columns).rows() == frame.rows()
    assert json.loads((folder / "privacy.json").read_text())["release_id"] == run.release_id


def test_one_release_of_several(
    run: Run, staged: Staged, passed: tuple[Verdict, ...], refused: tuple[Verdict, ...], tmp_path: Path
) -> None:
    second, _ = opened(tmp_path / "spec.yaml", run.home.root, slot="second")
    publish.fn(second, 4000, staged.tables, refused)
    export_release(run.home.root, run.release_id, tmp_path / "first")
    assert pl.read_parquet(tmp_path / "first" / "releases.parquet")["release_id"].to_list() == [run.release_id]
    written = export_release(run.home.root, second.release_id, tmp_path / "second")
    assert "privacy.json" in written, "a refused release has spent too"
    heights = {table: pl.read_parquet(tmp_path / "second" / f"{table}.parquet").height for table in TABLES}
    assert heights == dict.fromkeys(TABLES, 0) | {"releases": 1, "spends": 1, "validations": 2}


def test_nothing_is_overwritten_unless_by_force(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "budgets.csv").write_text("mine")
    (folder / "notes.txt").write_text("mine too")
    with pytest.raises(RequestError, match=r"budgets\.csv would be overwritten.*--force\. Nothing was written"):
        export_release(run.home.root, "people", folder, "csv")
    assert {path.name for path in folder.iterdir()} == {"budgets.csv", "notes.txt"}
    export_release(run.home.root, "people", folder, "csv", force=True)
    assert (folder / "budgets.csv").read_text().startswith("release_id,")
    assert (folder / "notes.txt").read_text() == "mine too"


def test_a_failure_leaves_what_was_there(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "out"
    export_release(run.home.root, "people", folder, "csv")
    before = digests(folder)

    def full(frame: pl.DataFrame, path: Path) -> None:
        path.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setitem(pldp.tasks.export._WRITERS, "csv", full)
    with pytest.raises(RequestError, match=r"cannot be written \(No space left on device\)"):
        export_release(run.home.root, "people", folder, "csv", force=True)
    assert digests(folder) == before


def test_a_folder_that_cannot_be(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RequestError, match="cannot be written"):
        export_release(run.home.root, "people", tmp_path / "file" / "out")
    with pytest.raises(NotFound, match="no release 'x' here"):
        export_release(run.home.root, "x", tmp_path / "out")
    assert not (tmp_path / "out").exists()
