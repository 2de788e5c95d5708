"""A release whose levels stay hidden, end to end: what it publishes, and that nothing of it is by level."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import duckdb
import polars as pl
import pytest

from pldp.flows.evaluate import evaluate
from pldp.flows.release import release
from tests.flows.conftest import DATA, ROOT, Pldp, ended
from tests.flows.searcher import files_under
from tests.people import LEVELS, make_people, world

pytestmark = pytest.mark.usefixtures("server")

ADULT = DATA / "adult.data.gz"
HIDDEN = {"dependence": 1, "column": "level", "visibility": "hidden", "epsilon_p": 1, "max_leak": 8}


@pytest.fixture(scope="module")
def home(server: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return ended(world(tmp_path_factory.mktemp("hidden"), make_people(5000), levels=HIDDEN))


def test_what_is_published(home: tuple[Path, str]) -> None:
    with duckdb.connect(str(home[0] / "results.duckdb"), read_only=True) as results:
        tables = {name: results.sql(f"FROM latest_{name}").pl() for name in ("histograms", "level_shares", "budgets")}
        assert results.sql("FROM level_estimates").pl().is_empty()
    assert set(tables["histograms"]["method"]) == {"auem"}
    assert set(tables["histograms"]["interval"]) == {"inverted test"}
    assert set(tables["histograms"]["dependence"]) == {"1"}
    assert tables["level_shares"]["level"].to_list() == list(LEVELS)
    assert tables["level_shares"]["share"].sum() == pytest.approx(1)
    assert tables["budgets"]["n_users"].null_count() == 6
    truth = make_people(5000)
    for row in tables["histograms"].iter_rows(named=True):
        share = (truth[row["attribute"]] == row["value"]).mean()
        assert abs(row["frequency"] - share) < 5 * row["standard_error"], "5 errors, 8 cells: 5e-6"


def test_nothing_right_of_the_boundary_is_by_level(home: tuple[Path, str]) -> None:
    """No file, folder or count that one level's users had to themselves."""
    root, release_id = home
    for path in files_under(root / "reports"):
        assert not any(level in str(path.relative_to(root)) for level in LEVELS)
    assert len(files_under(root / "reports" / release_id)) == 3, "the levels told, and two attributes"
    sizes = {str((make_people(5000)["level"] == level).sum()) for level in LEVELS}
    for path in files_under(root / "releases" / release_id):
        content = path.read_text()
        assert not any(f" {size}" in content or f":{size}" in content for size in sizes), path


def test_the_statement_and_the_page_tell_the_leak(home: tuple[Path, str]) -> None:
    root, release_id = home
    statement = json.loads((root / "releases" / release_id / "privacy.json").read_text())
    hidden = statement["hidden_levels"]
    assert hidden["epsilon_p"] == 1
    assert hidden["exact_epsilon_p"] <= 1
    assert 1 < hidden["exact_leak"] <= hidden["max_leak"] == 8
    assert not any("level" in public for public in statement["public"])
    page = (root / "pages" / f"{release_id}.html").read_text()
    assert "Which level a user chose is hidden" in page
    assert "Each level alone" not in page
    assert "The fallback was taken" not in page, "the plan chose the method"


def test_the_commands(home: tuple[Path, str], pldp: Pldp, tmp_path: Path) -> None:
    shown = pldp("show", "people", "--home", home[0])
    assert "Hidden levels: how many chose each" in shown.out
    assert pldp("validate", "people", "--home", home[0]).code == 0
    refused = pldp("group", "people", "job", "farmer", "nurse", "--home", home[0])
    assert refused.code != 0
    assert "has no level estimates" in refused.err
    spec = world(tmp_path, levels=HIDDEN)
    plan = json.loads(pldp("plan", spec, "--json").out)
    protocols = plan["predictions"]["histograms"]["protocols"]
    assert {row["mechanism"] for row in protocols} == {"krr", "brr", "oue", "olh", "subset"}
    leaks = {row["mechanism"]: row["level_leak"] for row in protocols if row["attribute"] == "job"}
    assert leaks["olh"] is leaks["subset"] is None
    assert leaks["krr"] < leaks["brr"] < leaks["oue"]
    told = pldp("plan", spec).out
    assert "histograms: protocols" in told
    assert re.search(r"job +│ krr +│ yes", told)


def test_the_published_em_is_for_evaluations(home: tuple[Path, str], pldp: Pldp, tmp_path: Path) -> None:
    spec = world(tmp_path, make_people(2000), levels={**HIDDEN, "max_leak": 20}, combination={"method": "emoa-paper"})
    said = pldp("release", spec, "--home", tmp_path / "home")
    assert said.code != 0
    assert "must not be emoa-paper in a release" in said.err
    done = evaluate(spec, tmp_path / "home", repeat=0, seed=1)
    assert set(done.tables["cells"]["method"]) == {"emoa-paper"}


def test_an_evaluation_shows_what_hiding_costs(tmp_path: Path) -> None:
    done = evaluate(world(tmp_path, make_people(3000), levels=HIDDEN), tmp_path / "home", repeat=60, seed=1)
    job = done.tables["methods"].filter(attribute="job")
    errors = dict(zip(job["method"], job["rmse"], strict=True))
    assert set(errors) == {"auem", "sum", "oc+, levels public", "uniform, strictest", "uniform, weakest", "em"}
    assert errors["uniform, weakest"] < errors["oc+, levels public"] < errors["auem"] < errors["uniform, strictest"]
    assert all(verdict.passed for verdict in done.verdicts)


@pytest.mark.skipif(not ADULT.exists(), reason="the Adult data set is not beside the repository (shared/data)")
def test_adult_with_hidden_levels(tmp_path: Path) -> None:
    source = tmp_path / "adult.data"
    source.write_bytes(gzip.decompress(ADULT.read_bytes()))
    done = release(ROOT / "data" / "adult-hidden.yaml", tmp_path / "home", source=source)
    assert done.status == "published"
    rows = pl.read_csv(source, has_header=False, separator=",", infer_schema=False)
    truth = rows["column_9"].str.strip_chars().value_counts(normalize=True)
    with duckdb.connect(str(tmp_path / "home" / "results.duckdb"), read_only=True) as results:
        found = results.sql("FROM histograms WHERE attribute = 'sex'").pl()
    for row in found.iter_rows(named=True):
        share = truth.filter(pl.col("column_9") == row["value"])["proportion"][0]
        assert abs(row["frequency"] - share) < 5 * row["standard_error"]
