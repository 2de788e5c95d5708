"""Releases of numbers, end to end: beside histograms and alone; and that no number of anybody leaves the vault."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from pldp.errors import SourceError
from pldp.flows.evaluate import evaluate
from pldp.flows.release import release
from tests.flows.conftest import DATA, ROOT, Pldp, ended
from tests.flows.searcher import files_under, find, in_bytes
from tests.people import JOBS, make_people, world
from tests.slow import repeated

pytestmark = pytest.mark.usefixtures("server")

CENSUS = DATA / "acs2017_county_data.csv.gz"
N = 4001
CANARY = "48271.90351"
"""Somebody's income, as nobody else writes it."""

ATTRIBUTES: list[dict[str, Any]] = [
    {"name": "job", "values": list(JOBS), "missing": "none", "other": "other"},
    {"name": "income", "kind": "number", "bounds": [0, 100_000], "missing": 0, "quantiles": [0.25, 0.75], "bins": 16},
    {"name": "age", "kind": "number", "bounds": [18, 98], "missing": 50},
    {
        "name": "band",
        "kind": "binned",
        "column": "income",
        "edges": [0, 10_000, 20_000, 30_000, 50_000, 100_000],
        "missing": 0,
        "quantiles": [0.5],
    },
]
MIXED: dict[str, Any] = {
    "attributes": ATTRIBUTES,
    "budget": {"total": 16},
    "numbers": {"tau": 1.5, "importance": {"income": "income_matters", "age": "age_matters"}},
}


def numeric_people() -> pl.DataFrame:
    rng = np.random.default_rng(8)
    income = [f"{value:.2f}" for value in rng.lognormal(10, 0.6, N)]
    income[:4] = [CANARY, "", "nan", "unknown"]
    return make_people(N).with_columns(
        income=pl.Series(income),
        age=pl.Series(rng.normal(45, 15, N)),
        income_matters=pl.Series(rng.choice(["yes", "no"], N)),
        age_matters=pl.Series(rng.choice(["yes", "no"], N)),
    )


def truth() -> dict[str, float]:
    people = numeric_people()
    income = people["income"].cast(pl.Float64, strict=False).fill_nan(0).fill_null(0)
    return {"income": float(income.clip(0, 100_000).mean()), "age": float(people["age"].clip(18, 98).mean())}  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def home(server: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return ended(world(tmp_path_factory.mktemp("numbers"), numeric_people(), **MIXED))


def test_what_is_published(home: tuple[Path, str]) -> None:
    names = ("histograms", "means", "quantiles", "bins", "budgets", "validations")
    with duckdb.connect(str(home[0] / "results.duckdb"), read_only=True) as results:
        tables = {name: results.sql(f"FROM latest_{name}").pl() for name in names}
    known = truth()
    assert tables["means"]["attribute"].to_list() == ["income", "age"]
    for row in tables["means"].iter_rows(named=True):
        assert abs(row["mean"] - known[row["attribute"]]) < 5 * row["standard_error"], "5 errors, 2 means: 1e-6"
        assert row["lower"] <= row["ci_low"] < row["ci_high"] <= row["upper"]
    assert tables["quantiles"].select("attribute", "probability", "method").rows() == [
        ("band", 0.5, "binned guarded"),
        ("income", 0.25, "em"),
        ("income", 0.75, "em"),
    ]
    assert tables["bins"]["method"].value_counts(sort=True).rows() == [("em", 16), ("binned guarded", 5)]
    assert tables["histograms"]["attribute"].unique(maintain_order=True).to_list() == ["job", "band"]
    assert tables["budgets"].height == 12
    assert_binned(tables["histograms"].filter(attribute="band"), tables["quantiles"].filter(attribute="band"))
    assert tables["validations"]["passed"].all()
    gates = set(tables["validations"]["gate"])
    assert {"personal_budgets", "numbers_counted", "partitions_once", "level_sums", "quantiles_usable"} <= gates


def assert_binned(bands: pl.DataFrame, quantiles: pl.DataFrame) -> None:
    """Shares and median within five errors of the truth; the median's, users spread evenly inside bands."""
    edges = np.array([0, 10_000, 20_000, 30_000, 50_000, 100_000])
    income = numeric_people()["income"].cast(pl.Float64, strict=False).fill_nan(0).fill_null(0).clip(0, 100_000)
    shares = np.histogram(income.to_numpy(), edges)[0] / N
    assert bands["value"].to_list()[::4] == ["[0, 10000)", "[50000, 100000]"]
    errors = (bands["unbiased_frequency"].to_numpy() - shares) / bands["standard_error"].to_numpy()
    assert np.abs(errors).max() < 6, "the published error is that after post-processing, a little less"
    median = np.interp(0.5, np.cumsum([0, *shares]), edges)
    (row,) = quantiles.iter_rows(named=True)
    assert abs(row["quantile"] - median) < 5 * row["standard_error"]
    assert row["ci_low"] < row["quantile"] < row["ci_high"]


def test_the_statement_the_page_and_the_ledger(home: tuple[Path, str]) -> None:
    root, release_id = home
    statement = json.loads((root / "releases" / release_id / "privacy.json").read_text())
    assert statement["worst_total"]["nominal_epsilon"] == 16 >= statement["worst_total"]["exact_epsilon"]
    assert any("whether the attribute matters" in sentence for sentence in statement["public"])
    assert json.loads((root / "ledger.jsonl").read_text())["budget"] == 16
    page = (root / "pages" / f"{release_id}.html").read_text()
    assert "Dot chart of income on its bounds from 0 to 100000" in page
    assert "0.25 quantile" in page
    assert "Its quantiles, values inside a bin spread evenly: median at" in page
    index = (root / "pages" / "index.html").read_text()
    assert "ε = 16" in index, "what a user spends is the total, not the sum of what each number could cost"


def test_the_commands(home: tuple[Path, str], pldp: Pldp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = pldp("show", "people", "--home", home[0])
    assert "Means" in shown.out
    assert "Quantiles" in shown.out
    found = json.loads(pldp("show", "people", "--home", home[0], "--json").out)
    assert [row["attribute"] for row in found["means"]] == ["income", "age"]
    assert pldp("validate", "people", "--home", home[0]).code == 0
    assert pldp("export", "people", tmp_path / "out", "--home", home[0]).code == 0
    assert pl.read_parquet(tmp_path / "out" / "means.parquet").height == 2
    spec = world(tmp_path, numeric_people(), **MIXED)
    planned = pldp("plan", spec)
    assert "numbers: sampling" in planned.out
    assert "numbers: means" in planned.out
    plan = json.loads(pldp("plan", spec, "--json", "--target-error", "0.01").out)
    assert {row["method"] for row in plan["predictions"]["numbers"]["means"]} == {
        "scaled",
        "reports",
        "inverse-variance",
    }
    assert plan["target"]["users"] > 100


def test_a_second_run_draws_nothing(home: tuple[Path, str]) -> None:
    again = release(home[0].parent / "spec.yaml", home[0])
    assert again.resumed
    assert again.release_id == home[1]


def test_no_number_of_anybody_leaves_the_vault(home: tuple[Path, str], pldp: Pldp, tmp_path: Path) -> None:
    """The canary as text and as a double, in a good release and in the error of a bad one."""
    needles = [CANARY.encode(), np.float64(CANARY).tobytes(), str(float(CANARY)).encode()]
    assert find(needles, files_under(home[0], without=home[0] / "vault")) == []
    assert find(needles, [home[0].parent / "people.parquet"]), "the search must be able to find it"
    strict = [{key: value for key, value in ATTRIBUTES[1].items() if key != "missing"}]
    people = numeric_people().with_columns(income=pl.lit("zq" + CANARY))
    spec = world(tmp_path, people, attributes=strict, budget={"total": 4})
    said = pldp("release", spec, "--home", tmp_path / "home")
    assert said.code == 2
    assert "readable row 1, column income:" in said.err
    assert "cells hold no number" in said.err
    # The command looks first; the stage itself, as a schedule runs it, must not tell either.
    with pytest.raises(SourceError, match="column income: the cell holds no number"):
        release(spec, tmp_path / "home")
    assert not in_bytes(needles, (said.out + said.err).encode())
    assert find(needles, files_under(tmp_path / "home")) == []


def test_an_evaluation_knows_the_truth(tmp_path: Path) -> None:
    done = evaluate(world(tmp_path, numeric_people(), **MIXED), tmp_path / "home", repeat=repeated(10, 20), seed=1)
    assert all(verdict.passed for verdict in done.verdicts)
    assert {verdict.gate for verdict in done.verdicts} >= {"unbiased", "means_unbiased", "numbers_agree"}
    known = truth()
    (median,) = done.tables["numbers"].filter(attribute="band").iter_rows(named=True)
    assert abs(median["estimate"] - median["truth"]) < 5 * median["standard_error"]
    for row in done.tables["numbers"].filter(pl.col("probability").is_null()).iter_rows(named=True):
        assert row["truth"] == pytest.approx(known[row["attribute"]], rel=1e-6)
    assert done.tables["means"].height == 6
    errors = {row["method"]: row["rmse"] / row["predicted"] for row in done.tables["means"].iter_rows(named=True)}
    assert all(0.4 < ratio < 1.8 for ratio in errors.values())  # 10 repetitions: ± 22 %


@pytest.mark.skipif(not CENSUS.exists(), reason="the census of counties is not beside the repository (shared/data)")
def test_the_census_alone(tmp_path: Path) -> None:
    """Numbers without any histogram, everybody at one level."""
    source = tmp_path / "counties.csv"
    source.write_bytes(gzip.decompress(CENSUS.read_bytes()))
    done = release(ROOT / "data" / "census.yaml", tmp_path / "home", source=source)
    assert done.status == "published"
    assert done.page_problem is None
    counties = pl.read_csv(source)
    with duckdb.connect(str(tmp_path / "home" / "results.duckdb"), read_only=True) as results:
        means = results.sql("FROM means").pl()
        assert results.sql("FROM histograms").pl().is_empty()
    assert means.height == 34
    for row in means.iter_rows(named=True):
        true = counties[row["attribute"]].fill_null(0).clip(row["lower"], row["upper"]).mean()
        assert abs(row["mean"] - true) < 6 * row["standard_error"], row["attribute"]
