"""Several kinds of questions in one release: the statement, an evaluation beside the truth, and MovieLens."""

from __future__ import annotations

import gzip
import html
import json
import re
from pathlib import Path

import duckdb
import polars as pl
import pytest

from pldp.flows.evaluate import evaluate
from pldp.flows.release import release
from pldp.tasks.home import Home
from pldp.tasks.results import list_releases
from tests.flows.conftest import ROOT, ended
from tests.several import BASKETS, FILMS, PEOPLE, world

DATA = ROOT.parent / "shared" / "data"
MOVIELENS = ("ml-1m_users.dat.gz", "ml-1m_ratings.parquet", "ml-1m_movies.dat.gz")

pytestmark = pytest.mark.usefixtures("server")


@pytest.fixture(scope="module")
def done(server: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Histograms on a budget of 4 and item sets on 12, both of a user; aggregates of 2.5 per occurrence come first."""
    return ended(world(tmp_path_factory.mktemp("several"), questions=(FILMS, PEOPLE, BASKETS)))


def test_the_statement_has_a_total_per_unit_and_every_promise_of_its_own(done: tuple[Path, str]) -> None:
    home, release_id = done
    statement = json.loads((home / "releases" / release_id / "privacy.json").read_text())
    assert statement["kinds"] == ["aggregates", "histograms", "items"]
    assert list(statement["worst_totals"]) == ["user", "occurrence"]
    user, occurrence = statement["worst_totals"].values()
    assert (user["nominal_epsilon"], occurrence["nominal_epsilon"]) == (16, 2.5)
    assert 15.99 < user["exact_epsilon"] <= 16
    assert user["meaning"].startswith("histograms and items together")
    assert not {"unit", "neighbours", "worst_total", "by_level", "providers"} & statement.keys()
    films, people, baskets = statement["questions"]
    assert [part["unit"] for part in statement["questions"]] == ["occurrence", "user", "user"]
    assert [part["worst_total"]["nominal_epsilon"] for part in statement["questions"]] == [2.5, 4, 12]
    assert (people["by_level"]["low"], films["providers"][0]["provider"], baskets["protocol"]) == (4, "shop", "bounded")
    assert len({part["neighbours"] for part in statement["questions"]}) == 3


def test_the_page_adds_up_what_adds_up_and_says_once_what_is_common(done: tuple[Path, str]) -> None:
    home, release_id = done
    page = html.unescape((home / "pages" / f"{release_id}.html").read_text()).replace("\u00a0", " ")
    promise = page[page.index('id="privacy"') : page.index('id="histograms"')]
    said = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", promise))
    assert "A user 16 8,890,000 times likelier" in said
    assert "One occurrence of an item of a user 2.5 12.2 times likelier" in said
    assert "All your answers to these questions together" in said
    assert "Nobody can spend more than ε = 4 on them" in said
    assert "all together 2.5 2.5 12.2 times likelier" in said
    assert "The promise is about one occurrence :" in said
    for once in ("The model:", "Privacy statement as JSON", "What is public, and what the promise rests on"):
        assert promise.count(once) == 1, once
    lead = re.sub(r"\s+", " ", page[page.index('class="lead"') : page.index("On this page")])
    assert "A user spent at most ε = 16. One occurrence of an item of a user spent at most ε = 2.5." in lead
    index = re.sub(r"\s+", " ", (home / "pages" / "index.html").read_text())
    assert "16 of one user<br>2.5 of one occurrence" in index
    assert "A user in the one release of several has spent up to ε = 16" in index
    assert "One occurrence of an item of a user in the one release of several has spent up to ε = 2.5" in index


def test_spends_and_gates_have_rows_of_their_own(done: tuple[Path, str]) -> None:
    home, _ = done
    with duckdb.connect(str(home / "results.duckdb"), read_only=True) as results:
        spends = results.execute("SELECT unit, worst_epsilon FROM spends").fetchall()
        assert results.execute("SELECT protects, worst_epsilon FROM releases").fetchall() == spends[:1]
        gates = results.execute("SELECT gate, question FROM validations").fetchall()
    assert spends == [("user", 16.0), ("occurrence", 2.5)]
    recorded = {spend["unit"]: spend["budget"] for spend in Home(home).spends()}
    assert recorded == dict(spends), "as the ledger has it"
    listed = list_releases(home)
    assert dict(zip(listed["unit"], listed["spent"], strict=True)) == dict(spends)
    assert len(set(gates)) == len(gates)
    assert {question for gate, question in gates if gate == "everyone_counted"} == {"histograms", "items", "aggregates"}
    assert {question for gate, question in gates if gate == "tables_as_computed"} == {None}


def test_an_evaluation_compares_every_kind_with_the_truth(tmp_path: Path) -> None:
    done = evaluate(world(tmp_path, 1500), tmp_path / "home", repeat=2, seed=1)
    assert {"unbiased", "supports_true"} <= {verdict.gate for verdict in done.verdicts}
    assert all(verdict.passed for verdict in done.verdicts)


@pytest.mark.skipif(not all((DATA / name).exists() for name in MOVIELENS), reason="MovieLens-1M is not here")
def test_movielens(tmp_path: Path) -> None:
    """Shares of ages within five standard errors (7 cells: 4e-6); everybody takes part in both."""
    for name in MOVIELENS[:2]:
        (tmp_path / name).symlink_to(DATA / name)
    with gzip.open(DATA / MOVIELENS[2], "rt", encoding="latin-1") as lines:
        movies = [line.rstrip("\n").split("::") for line in lines]
    rows = [(movie, genre) for movie, _, genres in movies for genre in genres.split("|")]
    pl.DataFrame(rows, schema=["item", "attribute"], orient="row").write_csv(tmp_path / "movies.csv")
    spec = tmp_path / "spec.yaml"
    spec.write_bytes((ROOT / "data" / "movielens-people.yaml").read_bytes())
    done = release(spec, tmp_path / "home")
    assert done.status == "published"
    with gzip.open(DATA / MOVIELENS[0], "rt") as lines:
        ages = pl.Series([line.split("::")[2] for line in lines])
    with duckdb.connect(str(tmp_path / "home" / "results.duckdb"), read_only=True) as results:
        found = results.execute(
            "SELECT value, unbiased_frequency, unbiased_standard_error FROM histograms WHERE attribute = 'age'"
        ).fetchall()
        (users,) = results.execute("SELECT DISTINCT n_users FROM aggregates").fetchall()
    assert users == (6040,)
    for value, share, error in found:
        assert abs(share - (ages == value).mean()) < 5 * error, value
