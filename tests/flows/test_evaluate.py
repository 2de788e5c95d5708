"""The evaluation: against the truth, on the vault's side, and never published."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from scipy.stats import norm

from pldp.errors import HomeError, RequestError, SourceError, SpecError
from pldp.flows.evaluate import Evaluated, evaluate
from pldp.tasks.home import Home
from pldp.tasks.publish import publish
from pldp.tasks.run import Run
from tests.flows.conftest import DATA, ROOT, Finished, Pldp
from tests.flows.searcher import files_under
from tests.people import digests, make_people, mode, partial_to_value, world
from tests.slow import repeated

pytestmark = pytest.mark.usefixtures("server")

ADULT = DATA / "adult.data.gz"
TRUTH = {"method": "op", "reference": {"kind": "truth"}}
ALPHA = 1e-6


@pytest.fixture(scope="module")
def evaluated(server: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Evaluated]:
    """One evaluation with the true reference, for tests that only look; its home."""
    folder = tmp_path_factory.mktemp("evaluated")
    spec = world(folder, combination=TRUTH)
    return folder / "home", evaluate(spec, folder / "home", repeat=200, seed=7)


def test_an_evaluation_stays_on_the_vaults_side(evaluated: tuple[Path, Evaluated]) -> None:
    home, done = evaluated
    assert done.folder == home / "evaluations" / done.evaluation_id
    for folder in (home / "evaluations", done.folder, *(path for path in done.folder.rglob("*") if path.is_dir())):
        assert mode(folder) == 0o700, folder
    kept = {path.relative_to(home).parts[0] for path in files_under(home)}
    assert kept == {"evaluations", "vault"}, "no results, no reports, no ledger line, no release folder"
    assert [path.name for path in files_under(home / "vault")] == ["key"]
    assert list((home / "releases").iterdir()) == []


def test_an_evaluation_keeps_its_own_database(evaluated: tuple[Path, Evaluated]) -> None:
    _, done = evaluated
    with duckdb.connect(str(done.folder / "evaluation.duckdb"), read_only=True) as connection:
        tables = {row[0] for row in connection.execute("SHOW TABLES").fetchall()}
        cells = connection.sql("FROM cells").pl()
    assert tables == {"cells", "methods", "coverage", "budgets", "validations"}
    people = make_people(2000)
    for attribute, value, truth in cells.select("attribute", "value", "truth").iter_rows():
        assert truth == (people[attribute] == value).mean()


def test_an_evaluation_uses_the_true_reference_and_the_unbiasedness_gate(evaluated: tuple[Path, Evaluated]) -> None:
    _, done = evaluated
    assert set(done.tables["cells"]["method"]) == {"op"}
    assert "unbiased" in {verdict.gate for verdict in done.verdicts}
    assert all(verdict.passed for verdict in done.verdicts)
    assert {"sum", "oc", "oc+", "op, true reference"} <= set(done.tables["methods"]["method"])


def test_no_command_finds_an_evaluation(evaluated: tuple[Path, Evaluated], pldp: Pldp) -> None:
    home, done = evaluated
    for command in ("show", "validate"):
        for wanted in (done.evaluation_id, "people"):
            said = pldp(command, wanted, "--home", home)
            assert said.code == 2
            assert "no release" in said.err
    said = pldp("releases", "--home", home, "--json")
    assert (said.code, said.out.strip()) == (0, "[]")


def test_publish_refuses_an_evaluation(evaluated: tuple[Path, Evaluated]) -> None:
    home, done = evaluated
    run = Run(str(home), done.evaluation_id, evaluation=True, seed=7)
    with pytest.raises(HomeError, match="cannot be published"):
        publish.fn(run, 2000, {"histograms": done.tables["cells"].drop("truth")}, done.verdicts)
    assert not Home(home).results.exists()


def test_a_release_refuses_the_true_reference(tmp_path: Path, pldp: Pldp) -> None:
    spec, home = world(tmp_path, combination=TRUTH), tmp_path / "home"
    said = pldp("release", spec, "--home", home)
    assert said.code == 2
    assert "spec.yaml: combination.reference.kind must be public or previous in a release (got 'truth')" in said.err
    assert "Nothing was run." in said.err
    assert not (home / "ledger.jsonl").exists()
    assert not Home(home).results.exists()
    assert list((home / "reports").iterdir()) == list((home / "releases").iterdir()) == []


def test_an_evaluation_beside_releases_changes_nothing_of_them(finished: Finished) -> None:
    home = finished.home
    before = {folder: digests(home / folder) for folder in ("releases", "reports")}
    results, spent = (home / "results.duckdb").read_bytes(), (home / "ledger.jsonl").read_bytes()
    done = evaluate(finished.spec, home, repeat=0)
    assert {folder: digests(home / folder) for folder in before} == before
    assert (home / "results.duckdb").read_bytes() == results
    assert (home / "ledger.jsonl").read_bytes() == spent
    assert done.tables["methods"].is_empty()


def test_a_seed_repeats_and_no_seed_does_not(tmp_path: Path) -> None:
    spec = world(tmp_path)
    # Another home has another key; an evaluation's draws must not hang on it.
    once = [evaluate(spec, tmp_path / home, repeat=20, seed=3) for home in ("a", "b")]
    assert once[0].tables["cells"].equals(once[1].tables["cells"])
    assert once[0].tables["methods"].equals(once[1].tables["methods"])
    free = [evaluate(spec, tmp_path / "a", repeat=0) for _ in range(2)]
    assert free[0].evaluation_id != free[1].evaluation_id
    assert not free[0].tables["cells"].equals(free[1].tables["cells"])


def test_levels_that_tell_the_value_are_noticed(tmp_path: Path) -> None:
    """With users' own levels kept, the homogeneity test fires in every repetition, and `sum` stays unbiased."""
    spec = world(tmp_path, partial_to_value(make_people(20_000)), budget={"total": 8})
    done = evaluate(spec, tmp_path / "home", repeat=500, seed=1, keep_levels=True)
    job = done.tables["methods"].filter(pl.col("attribute") == "job")
    assert job["disagreement_rate"][0] == 1.0
    found = {row["method"]: row for row in job.iter_rows(named=True)}
    # Largest mean error of 6 cells over 500 repetitions, in standard errors of that mean.
    bound = norm.isf(ALPHA / 2 / 6) / math.sqrt(500)
    assert found["sum"]["worst_bias"] < bound * found["sum"]["rmse"] * math.sqrt(6)
    assert found["oc+"]["worst_bias"] > 5 * bound * found["sum"]["rmse"] * math.sqrt(6)


def test_levels_are_dealt_by_value_as_far_as_asked(tmp_path: Path, pldp: Pldp) -> None:
    """The table of coverage has rows by how levels were dealt; the same seed gives the same evaluation."""
    spec, home = world(tmp_path), tmp_path / "home"
    said = pldp("evaluate", spec, "--home", home, "--repeat", 10, "--seed", 3, "--dependence", 1.3, "--json")
    assert said.code == 0, said.err
    coverage = json.loads(said.out)["coverage"]
    assert {row["choice"] for row in coverage} == {"by chance", "weaker", "stricter"}
    plain = evaluate(spec, home, repeat=10, seed=3).tables["coverage"].to_dicts()
    assert {row["choice"] for row in plain} == {"by chance"}


@pytest.mark.parametrize(
    ("sections", "options", "rule"),
    [
        ({"levels": {"choices": {"all": 1}}}, {"dependence": 1.3}, "everybody has the same level"),
        ({}, {"dependence": 0.5}, "must be a number of at least 1"),
        ({}, {"dependence": float("nan")}, "must be a number of at least 1"),
        ({}, {"dependence": 1.3, "keep_levels": True}, "give one of both"),
    ],
)
def test_levels_that_cannot_be_dealt_are_refused(
    sections: dict[str, Any], options: dict[str, Any], rule: str, tmp_path: Path
) -> None:
    with pytest.raises(RequestError, match=rule):
        evaluate(world(tmp_path, **sections), tmp_path / "home", repeat=0, **options)
    assert not (tmp_path / "home").exists()


def test_a_missing_source_is_told_before_anything_runs(tmp_path: Path) -> None:
    spec = world(tmp_path)
    (tmp_path / "people.parquet").unlink()
    with pytest.raises(SourceError, match=r"people\.parquet: cannot be read"):
        evaluate(spec, tmp_path / "home", repeat=0)
    with pytest.raises(SpecError, match="no such spec"):
        evaluate(tmp_path / "none.yaml", tmp_path / "home", repeat=0)


@pytest.mark.skipif(not ADULT.exists(), reason="the Adult data lie beside the repository, and are not there")
def test_adult_errors_are_as_predicted(tmp_path: Path) -> None:
    """Root mean squared errors over R repetitions against the plan's formula, every attribute and linear method.

    A squared error of a normal cell has relative deviation √2. The mean over cells and repetitions has at most
    √(2/R), with all cells dependent, and its root half of that. Five attributes × three methods, Bonferroni.
    """
    repeats = repeated(1000, 4000)
    done = evaluate(ROOT / "data" / "adult.yaml", tmp_path / "home", repeat=repeats, seed=1, source=ADULT)
    assert done.n_users == 32_561
    assert all(verdict.passed for verdict in done.verdicts)
    linear = done.tables["methods"].drop_nulls("predicted")
    assert linear.height == 5 * 4
    tolerance = norm.isf(ALPHA / 2 / linear.height) * math.sqrt(2 / repeats) / 2
    for row in linear.iter_rows(named=True):
        assert row["rmse"] == pytest.approx(row["predicted"], rel=tolerance), (row["attribute"], row["method"])
        # The deviation of a share of covered cells is at most √(0.95 · 0.05 / R), again with all cells dependent.
        slack = norm.isf(ALPHA / 2 / linear.height) * math.sqrt(0.95 * 0.05 / repeats)
        assert row["coverage"] == pytest.approx(0.95, abs=slack + 0.005), (row["attribute"], row["method"])


@pytest.mark.skipif(not ADULT.exists(), reason="the Adult data lie beside the repository, and are not there")
def test_adult_is_released(tmp_path: Path, pldp: Pldp) -> None:
    home = tmp_path / "home"
    said = pldp("release", ROOT / "data" / "adult.yaml", "--source", ADULT, "--home", home)
    assert said.code == 0, said.err
    with duckdb.connect(str(home / "results.duckdb"), read_only=True) as results:
        sizes = dict(results.execute("SELECT attribute, count(*) FROM histograms GROUP BY ALL").fetchall())
        truth, error = results.execute(
            "SELECT unbiased_frequency, standard_error FROM histograms WHERE attribute = 'sex' AND value = 'Male'"
        ).fetchone() or (0.0, 0.0)
    assert sizes == {"education": 16, "native-country": 42, "workclass": 9, "marital-status": 7, "sex": 2}
    assert abs(truth - 0.6692) < 6 * error
