"""Several kinds of questions in one release: the statement, an evaluation beside the truth, and MovieLens."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import duckdb
import polars as pl
import pytest

from pldp.flows.evaluate import evaluate
from pldp.flows.release import release
from tests.flows.conftest import ROOT, ended
from tests.several import world

DATA = ROOT.parent / "shared" / "data"
MOVIELENS = ("ml-1m_users.dat.gz", "ml-1m_ratings.parquet", "ml-1m_movies.dat.gz")

pytestmark = pytest.mark.usefixtures("server")


def test_the_statement_has_a_total_per_unit_and_every_kinds_promise(tmp_path: Path) -> None:
    home, release_id = ended(world(tmp_path))
    statement = json.loads((home / "releases" / release_id / "privacy.json").read_text())
    assert statement["kinds"] == ["histograms", "items", "aggregates"]
    assert statement["worst_totals"].keys() == {"user", "occurrence"}
    user = statement["worst_totals"]["user"]
    assert user["nominal_epsilon"] == 16
    assert 15.99 < user["exact_epsilon"] <= 16


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
