"""Every example of the documents runs against a real release of the sample."""

from __future__ import annotations

import doctest
import os
import re
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest
import yaml

from pldp.flows.release import release
from pldp.flows.sample import write_sample
from tests.baskets import world as baskets
from tests.flows.conftest import ROOT
from tests.items import world

DOCUMENTS = [ROOT / "docs" / "analyst.md", ROOT / "docs" / "tables.md", ROOT / "README.md"]
SHOWN = ("releases", "histograms", "level_estimates", "budgets", "validations")


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", path.read_text(), re.MULTILINE | re.DOTALL)


QUERIES = [
    pytest.param(query, id=f"{path.stem}-{place}")
    for path in DOCUMENTS
    for place, query in enumerate(blocks(path, "sql"), start=1)
]


@pytest.fixture(scope="module")
def place(server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as the README leaves it: data/ with the sample, data/home with its release."""
    folder = tmp_path_factory.mktemp("examples")
    before = os.umask(0o022)
    spec, _ = write_sample(folder / "data", users=20_000)
    assert release(spec, folder / "data" / "home").status == "published"
    for name in ("methods.yaml", "methods-reference.csv"):
        (folder / "data" / name).write_bytes((ROOT / "data" / name).read_bytes())
    assert release(folder / "data" / "methods.yaml", folder / "data" / "home").status == "published"
    hidden = yaml.safe_load(spec.read_text()) | {"name": "census", "combination": {}}
    hidden["levels"] |= {"visibility": "hidden", "epsilon_p": 1, "max_leak": 20}
    spec.with_name("census.yaml").write_text(yaml.safe_dump(hidden))
    assert release(spec.with_name("census.yaml"), folder / "data" / "home").status == "published"
    _release_numbers(folder / "data")
    assert release(world(folder / "films"), folder / "data" / "home").status == "published"
    assert release(baskets(folder / "baskets", 3000), folder / "data" / "home").status == "published"
    os.umask(before)
    return folder


def _release_numbers(folder: Path) -> None:
    rng = np.random.default_rng(1)
    pl.DataFrame({"income": rng.lognormal(10, 0.6, 5000)}).write_parquet(folder / "survey.parquet")
    number = {"name": "income", "kind": "number", "bounds": [0, 100_000], "quantiles": [0.25, 0.5, 0.75], "bins": 16}
    spec = {
        "name": "survey",
        "source": {"path": "survey.parquet", "one_row_per_user": True},
        "attributes": [number],
        "budget": {"total": 4},
        "levels": {"choices": {"all": 1}},
    }
    (folder / "survey.yaml").write_text(yaml.safe_dump(spec))
    assert release(folder / "survey.yaml", folder / "home").status == "published"


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_gives_rows(query: str, place: Path) -> None:
    with duckdb.connect(str(place / "data" / "home" / "results.duckdb"), read_only=True) as results:
        rows = results.execute(query).fetchall()
    assert rows


def test_python_examples_run(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(place)
    for code in blocks(ROOT / "docs" / "analyst.md", "python"):
        exec(compile(code, "analyst.md", "exec"), {})  # noqa: S102
    assert re.search(r"60 and older: \d+\.\d% ± \d+\.\d%", capsys.readouterr().out)


def test_the_readme_session_runs(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    sessions = [code for code in blocks(ROOT / "README.md", "python") if ">>>" in code]
    assert sessions
    for session in sessions:
        names: dict[str, Any] = {}
        for example in doctest.DocTestParser().get_examples(session):
            exec(compile(example.source, "README.md", "single"), names)  # noqa: S102
        names["results"].close()


def test_every_published_table_view_and_macro_has_an_example(place: Path) -> None:
    with duckdb.connect(str(place / "data" / "home" / "results.duckdb"), read_only=True) as results:
        published = {name for (name,) in results.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        views = "SELECT view_name FROM duckdb_views() WHERE NOT internal"
        macros = (
            "SELECT DISTINCT function_name FROM duckdb_functions() WHERE function_type LIKE '%macro' AND NOT internal"
        )
        published |= {name for (name,) in results.execute(f"{views} UNION {macros}").fetchall()}
    assert published >= {*SHOWN, *(f"latest_{table}" for table in SHOWN), "group_estimate"}
    asked = "\n".join(blocks(ROOT / "docs" / "analyst.md", "sql"))
    assert [name for name in sorted(published) if not re.search(rf"(FROM|JOIN|,) {name}\b", asked)] == []
