"""A release of aggregates towards providers, end to end: what it publishes, resumes, evaluates, shows and refuses."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

from pldp.errors import RequestError
from pldp.flows.evaluate import evaluate
from pldp.flows.options import out
from pldp.flows.release import release
from tests.flows.conftest import DATA, ROOT, Pldp, broken_off, ended, resumes
from tests.flows.searcher import files_under, find
from tests.items import make_items, true_totals, world, write_spec
from tests.people import mode
from tests.pldp.questions.aggregates.world import ATTRIBUTES

pytestmark = pytest.mark.usefixtures("server")

N_USERS = 1499


@pytest.fixture(scope="module")
def home(server: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return ended(world(tmp_path_factory.mktemp("aggregates"), N_USERS))


def test_what_is_published(home: tuple[Path, str]) -> None:
    root, release_id = home
    with duckdb.connect(str(root / "results.duckdb"), read_only=True) as results:
        rows = results.sql("FROM latest_aggregates").pl()
        budgets = results.sql("FROM latest_budgets").pl()
        assert results.sql("SELECT name, n_users FROM latest_releases").fetchall() == [("films", N_USERS)]
        assert results.sql("FROM histograms").pl().is_empty()
    assert list(zip(rows["provider"], rows["attribute"], strict=True)) == [
        (provider, attribute) for provider in ("shop", "ads") for attribute in ATTRIBUTES
    ]
    z = (rows["total"] - np.tile(true_totals(make_items(N_USERS)), 2)) / rows["standard_error"]
    assert z.abs().max() < 5.2, "six totals: 1e-6"
    assert set(budgets["unit"]) == {"occurrence"}
    assert set(budgets["provider"]) == {"shop", "ads"}
    spends = [json.loads(line) for line in (root / "ledger.jsonl").read_text().splitlines()]
    assert [(spent["release_id"], spent["unit"], spent["budget"]) for spent in spends] == [
        (release_id, "occurrence", 2.5)
    ]
    statement = json.loads((root / "releases" / release_id / "privacy.json").read_text())
    assert statement["unit"] == "occurrence"
    assert statement["worst_total"]["nominal_epsilon"] == 2.5


def test_what_lies_where(home: tuple[Path, str]) -> None:
    root, release_id = home
    reports = root / "reports" / release_id
    names = [str(path.relative_to(reports)) for path in files_under(reports)]
    assert names == ["provider=ads/00000.parquet", "provider=shop/00000.parquet"]
    assert mode(root / "reports") == 0o700
    assert [path.name for path in files_under(root / "vault")] == ["key"], "the raw items are gone"
    outside = files_under(root, without=root / "vault")
    assert find([b"user-1", b"film-1"], outside) == []


def test_the_same_release_resumes(home: tuple[Path, str]) -> None:
    resumes(*home)


def test_a_release_that_broke_off_draws_the_rest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert broken_off(world(tmp_path, 200), "pldp.flows.release.publish", monkeypatch) == (2, 2)


def test_a_refused_release_tells_what_it_spent(tmp_path: Path, pldp: Pldp, monkeypatch: pytest.MonkeyPatch) -> None:
    """And budgets of an item, of the same name, are told apart from those of an occurrence: never added."""
    spec = world(tmp_path, 30, gates={"minimum_users": 31}, count={"cap": 1})
    home, release_id = ended(spec, "refused")
    page = (home / "pages" / f"{release_id}.html").read_text()
    assert "up to ε = 2.5 of one item" in page
    with duckdb.connect(str(home / "results.duckdb"), read_only=True) as results:
        assert results.sql("FROM aggregates").pl().is_empty()
    refused = pldp("reports", release_id, tmp_path / "out", "--provider", "shop", "--home", home)
    assert refused.code == 2
    assert "was refused (enough_users): no provider gets its reports. Nothing was written." in refused.err
    for seed in (1, 2):
        release(world(tmp_path, 31, items=make_items(31, seed)), home)
    index = (home / "pages" / "index.html").read_text()
    assert "3 releases of 1 name, " in index
    assert "One item of a user in the one release of films has spent up to ε = 2.5" in index
    assert "One occurrence of an item of a user in all 2 releases of films has spent up to ε = 5" in index
    monkeypatch.setattr(out, "_width", 200)  # workers of a test run fix it at 80
    listed = pldp("releases", "--home", home).out
    assert "ε = 2.5 of one item" in listed
    assert "One occurrence of an item of a user in all 2 releases of films has spent up to ε = 5." in listed
    assert "all 3 releases" not in listed


def test_the_page(home: tuple[Path, str]) -> None:
    root, release_id = home
    page = (root / "pages" / f"{release_id}.html").read_text()
    for words in (
        "Estimated totals over 1,499 users",
        "all together",
        "audited",
        "2.5",
        "gates passed",
        "one occurrence",
    ):
        assert words in page
    assert page.count("<svg") == 2
    assert "http://" not in page.replace("http://www.w3.org", "")
    index = (root / "pages" / "index.html").read_text()
    assert "One occurrence of an item of a user in the one release of films has spent up to ε = 2.5" in index
    assert "<td>2.5 of one occurrence</td>" in index, "beside what users spend it would be one of theirs"


def test_a_provider_gets_its_reports_and_nothing_else(home: tuple[Path, str], pldp: Pldp, tmp_path: Path) -> None:
    root, release_id = home
    asked = ("reports", "films", tmp_path / "out", "--home", root, "--provider")
    assert pldp(*asked, "ads").code == 0
    (copy,) = files_under(tmp_path / "out")
    assert copy.name == "ads-00000.parquet"
    assert copy.read_bytes() == (root / "reports" / release_id / "provider=ads" / "00000.parquet").read_bytes()
    again = pldp(*asked, "ads")
    assert again.code == 2
    assert "ads-00000.parquet would be overwritten. Give another folder, or --force. Nothing was written." in again.err
    assert pldp(*asked, "ads", "--force").code == 0
    for name in ("bank", "../shop"):
        unknown = pldp(*asked, name)
        assert unknown.code == 2
        assert f"--provider must be one of release {release_id}'s: shop, ads (got {name!r})." in unknown.err
        assert "Nothing was written." in unknown.err
    assert len(files_under(tmp_path / "out")) == 1
    failed = pldp("reports", "films", copy / "in", "--home", root, "--provider", "ads")
    assert failed.code == 2
    assert "the reports cannot be written (Not a directory). Check the folder. Results are as they were." in failed.err


def test_the_commands(home: tuple[Path, str], pldp: Pldp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, release_id = home
    monkeypatch.setattr(out, "_width", 200)  # workers of a test run fix it at 80
    shown = pldp("show", "films", "--home", root)
    assert "shop: totals of 1,499 users" in shown.out
    assert "ads: ε of one occurrence, spent of allowed" in shown.out
    assert json.loads(pldp("show", release_id, "--home", root, "--json").out)["aggregates"][0]["provider"] == "shop"
    assert pldp("validate", "films", "--home", root).code == 0
    assert pldp("export", "films", tmp_path / "out", "--home", root).code == 0
    assert pl.read_parquet(tmp_path / "out" / "aggregates.parquet").height == 6
    spec = root.parent / "spec.yaml"
    planned = pldp("plan", spec)
    assert "One occurrence of an item of a user spends at most ε = 2.5" in planned.out
    assert "note: default" not in planned.out
    assert "equal scaling" in planned.out
    plan = json.loads(pldp("plan", spec, "--json").out)
    assert (
        plan["plan_sha256"] == json.loads((root / "releases" / release_id / "privacy.json").read_text())["plan_sha256"]
    )
    rich = write_spec(tmp_path, providers={"shop": {"epsilon": 9}})
    for name in ("catalogue.csv", "users.csv", "items.parquet"):
        (tmp_path / name).write_bytes((root.parent / name).read_bytes())
    assert "is at or above the turning point of 2 of 2 profiles" in pldp("plan", rich).out
    loose = pldp("plan", write_spec(tmp_path, default="open")).out
    assert "note: default: open is not the profile of the least budgets (shy), and users who state none" in loose
    profiles = {f"p{i}": {"drama": 1, "comedy": f"1/{i + 1}", "war": 0.1} for i in range(300)}
    many = pldp("plan", write_spec(tmp_path, profiles=profiles, default="p299")).out
    assert "p5 0.333% and 294 more" in many
    assert "ads: ε of one occurrence, spent of allowed, over 300 profiles" in many
    assert "median of 300" in many
    assert len(many.splitlines()) < 60
    target = pldp("plan", spec, "--target-error", "0.1")
    assert target.code == 2
    assert "is for histograms and means: a total's error follows from the budgets in the plan." in target.err
    bad = pldp("release", write_spec(tmp_path, providers={"shop": {"epsilon": -1}}), "--home", tmp_path / "home")
    assert bad.code == 2
    assert "providers.shop.epsilon: input should be greater than 0 (got -1)" in bad.err
    assert "Nothing was run." in bad.err


def test_an_evaluation(home: tuple[Path, str], pldp: Pldp, monkeypatch: pytest.MonkeyPatch) -> None:
    root, _ = home
    monkeypatch.setattr(out, "_width", 200)  # workers of a test run fix it at 80
    spec = root.parent / "spec.yaml"
    with pytest.raises(RequestError, match="aggregates: a total adds up everybody's reports, each unbiased whoever"):
        evaluate(spec, root, seed=1, dependence=1.3)
    done = evaluate(spec, root, seed=1)
    cells = done.tables["aggregates"]
    truth = true_totals(make_items(N_USERS))
    assert cells["truth"].to_list() == [*truth, *truth]
    assert all(verdict.passed for verdict in done.verdicts)
    assert "totals_true" in {verdict.gate for verdict in done.verdicts}
    ratio = cells["mean_error"] / cells["predicted_mean_error"]
    assert (ratio - 1).abs().max() < 5.2 / N_USERS**0.5, "E|Z| has a standard deviation of about its mean; 6 cells"
    assert set(done.tables["losses"]["spending"]) == {"mae", "equal scaling", "lower bound"}
    said = pldp("evaluate", spec, "--home", root, "--seed", "1", "--json")
    assert json.loads(said.out)["aggregates"] == json.loads(json.dumps(cells.to_dicts()))
    assert "never published" in pldp("evaluate", spec, "--home", root, "--seed", "1").out
    needles = [truth.astype(np.int64).tobytes(), ", ".join(map(str, truth)).encode()]
    assert find(needles, files_under(root, without=root / "evaluations")) == []


@pytest.mark.skipif(not (DATA / "ml-1m_ratings.parquet").exists(), reason="MovieLens-1M is not beside the repository")
def test_movielens(tmp_path: Path) -> None:
    """The example as the documents have it: the catalogue made by their SQL, the release run on it."""
    (tmp_path / "movies.dat").write_bytes(gzip.decompress((DATA / "ml-1m_movies.dat.gz").read_bytes()))
    (tmp_path / "movielens.yaml").write_bytes((ROOT / "data" / "movielens.yaml").read_bytes())
    text = (ROOT / "docs" / "aggregates.md").read_text()
    sql = text.split("```sql\n", 1)[1].split("```", 1)[0].replace("movies.dat", str(tmp_path / "movies.dat"))
    duckdb.connect().execute(sql.replace("movies.csv", str(tmp_path / "movies.csv")))
    done = release(tmp_path / "movielens.yaml", tmp_path / "home", source=DATA / "ml-1m_ratings.parquet")
    assert done.status == "published"
    ratings = pl.read_parquet(DATA / "ml-1m_ratings.parquet").with_columns(pl.col("movie_id").cast(pl.String))
    genres = pl.read_csv(tmp_path / "movies.csv", infer_schema=False)
    truth = dict(ratings.join(genres, left_on="movie_id", right_on="item").group_by("attribute").len().iter_rows())
    with duckdb.connect(str(tmp_path / "home" / "results.duckdb"), read_only=True) as results:
        rows = results.sql("FROM aggregates").pl()
    for row in rows.iter_rows(named=True):
        assert abs(row["total"] - truth[row["attribute"]]) < 5.5 * row["standard_error"], "36 totals: 1.4e-6"
