"""A release of frequent items, end to end: what it publishes, resumes, evaluates, shows and refuses."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest
import yaml
from rich.console import Console

from pldp.flows.evaluate import evaluate
from pldp.flows.release import release
from pldp.flows.render import show_evaluation
from pldp.flows.shown import show_study
from tests.baskets import ITEMS, make_rows, make_table, true_support, world, write_spec
from tests.flows.conftest import DATA, ROOT, Pldp, broken_off, ended, resumes
from tests.flows.searcher import files_under, find
from tests.people import mode

pytestmark = pytest.mark.usefixtures("server")

N_USERS = 3000


@pytest.fixture(scope="module")
def home(server: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return ended(world(tmp_path_factory.mktemp("items"), N_USERS))


def test_what_is_published(home: tuple[Path, str]) -> None:
    root, release_id = home
    with duckdb.connect(str(root / "results.duckdb"), read_only=True) as results:
        rows = results.sql("FROM latest_itemsets").pl()
        rules = results.sql("FROM latest_rules").pl()
        budgets = results.sql("FROM latest_budgets").pl()
        assert results.sql("SELECT name, n_users FROM latest_releases").fetchall() == [("baskets", N_USERS)]
        longest = results.sql(
            "SELECT items FROM itemsets WHERE list_contains(items, 'bread') AND length = 2"
        ).fetchall()
    assert (["bread", "milk"],) in longest
    assert sorted(items[0] for items in rows.filter(length=1)["items"].to_list()) == sorted(ITEMS)
    table = make_table(N_USERS)
    truth = np.array([true_support(table, items) for items in rows["items"].to_list()])
    z = (rows["support"].to_numpy() - truth) / rows["standard_error"].to_numpy()
    assert np.abs(z).max() < 5.5, "some ten sets, of which those that noise lifts are kept: 1e-6"
    sure = rows.filter(pl.col("probability_frequent") > 0.999)["items"].to_list()
    assert ["bread", "milk"] in sure
    (rule,) = rules.filter(
        pl.col("antecedent").list.join("+") == "bread", pl.col("consequent").list.join("+") == "milk"
    )["confidence", "standard_error", "lift"].to_dicts()
    right = true_support(table, ["bread", "milk"]) / true_support(table, ["bread"])
    assert abs(rule["confidence"] - right) < 5 * rule["standard_error"]
    assert rule["lift"] > 1
    assert budgets.select("attribute", "level", "unit", "nominal_epsilon").rows() == [
        ("items", "high", "user", 6.0),
        ("items", "low", "user", 12.0),
    ]
    assert (budgets["exact_epsilon"] <= budgets["nominal_epsilon"]).all()
    assert budgets["n_users"].sum() == N_USERS
    spends = [json.loads(line) for line in (root / "ledger.jsonl").read_text().splitlines()]
    assert [(spent["release_id"], spent["unit"], spent["budget"]) for spent in spends] == [(release_id, "user", 12.0)]
    statement = json.loads((root / "releases" / release_id / "privacy.json").read_text())
    assert statement["worst_total"]["finite"]
    assert len(statement["items"]) == len(ITEMS)


def test_what_lies_where(home: tuple[Path, str]) -> None:
    root, release_id = home
    reports = root / "reports" / release_id
    names = [str(path.relative_to(reports)) for path in files_under(reports)]
    assert names == ["items/level=high/00000.parquet", "items/level=low/00000.parquet"]
    assert mode(root / "reports") == 0o700
    assert [path.name for path in files_under(root / "vault")] == ["key"], "the raw items are gone"
    # Items are declared, so their names are public; nobody's id is, and no pair of one with an item.
    assert find([b"user-1"], files_under(root, without=root / "vault")) == []


def test_a_canary_item_is_nowhere(tmp_path: Path) -> None:
    """An item that is not declared is dropped, and stays in the vault."""
    canary = pl.DataFrame({"user": ["user-1", "canary-7f3a"], "item": ["canary-item-91c2", None]})
    rows = pl.concat([make_rows(300), canary])
    spec = world(
        tmp_path,
        300,
        rows,
        source={"path": "rows.parquet", "unknown": "ignore"},
        retention={"vault": "keep"},
    )
    done = release(spec, tmp_path / "home")
    assert done.status == "published"
    outside = files_under(tmp_path / "home", without=tmp_path / "home" / "vault")
    assert find([b"canary-7f3a", b"canary-item-91c2", b"user-1"], outside) == []
    with duckdb.connect(str(tmp_path / "home" / "results.duckdb"), read_only=True) as results:
        assert results.sql("SELECT n_users FROM releases").fetchall() == [(301,)], "who has nothing counts too"


def test_the_same_release_resumes(home: tuple[Path, str]) -> None:
    resumes(*home)


def test_a_release_that_broke_off_between_its_halves_draws_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first half of a sampled release is drawn once, and the second asked what the first half's reports say."""
    spec = world(tmp_path, 400, protocol="sampling")
    assert broken_off(spec, "pldp.flows.pipeline._adapt", monkeypatch) == (2, 4)


def test_a_refused_release_tells_what_it_spent(tmp_path: Path) -> None:
    home, release_id = ended(world(tmp_path, 30, gates={"minimum_users": 31}), "refused")
    page = (home / "pages" / f"{release_id}.html").read_text()
    assert "up to ε = 12 a user" in page
    with duckdb.connect(str(home / "results.duckdb"), read_only=True) as results:
        assert results.sql("FROM itemsets").pl().is_empty()


def test_the_page(home: tuple[Path, str]) -> None:
    root, release_id = home
    page = (root / "pages" / f"{release_id}.html").read_text()
    for words in ("Single items", "Sets of 2", "Rules", "bread + milk", "exact ε, at most", "12", "gates passed"):
        assert words in page
    assert page.count("<svg") >= 2
    assert "http://" not in page.replace("http://www.w3.org", "")
    index = (root / "pages" / "index.html").read_text()
    assert "A user in the one release of baskets has spent up to ε = 12" in index


def test_the_commands(home: tuple[Path, str], pldp: Pldp, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root, release_id = home
    monkeypatch.setenv("COLUMNS", "200")
    shown = pldp("show", "baskets", "--home", root)
    assert "Items: 6, of which" in shown.out
    assert "bread + milk" in shown.out
    assert json.loads(pldp("show", release_id, "--home", root, "--json").out)["itemsets"][0]["length"] == 1
    assert pldp("validate", "baskets", "--home", root).code == 0
    assert pldp("export", "baskets", tmp_path / "out", "--home", root, "--format", "csv").code == 0
    assert '"[""bread"", ""milk""]"' in (tmp_path / "out" / "itemsets.csv").read_text()
    query = "SELECT items, support FROM latest_itemsets WHERE len(items) = 2"
    assert json.loads(pldp("query", query, "--home", root, "--json").out)[0]["items"]
    spec = root.parent / "spec.yaml"
    planned = pldp("plan", spec)
    assert "A user spends at most ε = 12" in planned.out
    assert "bounded" in planned.out
    plan = json.loads(pldp("plan", spec, "--json").out)
    stored = json.loads((root / "releases" / release_id / "privacy.json").read_text())["plan_sha256"]
    assert plan["plan_sha256"] == stored
    target = pldp("plan", spec, "--target-error", "0.1")
    assert target.code == 2
    assert "is for histograms and means: compare the predicted errors of two budgets instead." in target.err
    for sections, told in (
        ({"itemsets": {"minimum_support": 0}}, "itemsets.minimum_support: input should be greater than 0 (got 0)"),
        ({"itemsets": {"minimum_support": 2}}, "itemsets.minimum_support: input should be less than or equal to 1"),
        (
            {"budget": {"total": "1e-12"}, "protocol": "bounded", "users": None, "levels": None},
            "too small for 6 items",
        ),
    ):
        bad = pldp("release", write_spec(tmp_path, **sections), "--home", tmp_path / "home")
        assert bad.code == 2
        assert told in bad.err
        assert "Nothing was run." in bad.err


def test_an_evaluation(home: tuple[Path, str], pldp: Pldp) -> None:
    root, _ = home
    spec = root.parent / "spec.yaml"
    done = evaluate(spec, root, seed=1, repeat=5)
    table = make_table(N_USERS)
    itemsets = done.tables["itemsets"]
    truth = [true_support(table, items) for items in itemsets["items"].to_list()]
    np.testing.assert_allclose(itemsets["truth"].to_numpy(), truth)
    assert all(verdict.passed for verdict in done.verdicts)
    assert "supports_true" in {verdict.gate for verdict in done.verdicts}
    identity = done.tables["identity"]
    assert set(identity["method"]) == {"this plan (bounded)", "MASK", "GR-PPFM"}
    assert (identity["made_up"] >= 0).all()
    said = pldp("evaluate", spec, "--home", root, "--seed", "1", "--repeat", "2", "--json")
    assert json.loads(said.out)["itemsets"] == json.loads(json.dumps(itemsets.to_dicts())), "the seed repeats it"
    out = Console(record=True, width=200)
    show_evaluation(out, done, show_study)
    told = out.export_text()
    for words in ("never published", "itemsets", "truth", "identity", "made up", "missed", "privacy"):
        assert words in told


def test_sampled_items_and_single_values(tmp_path: Path) -> None:
    """Both other forms of a report, against the truth, by the gate that knows it."""
    sampled = evaluate(world(tmp_path / "a", 2000, protocol="sampling"), tmp_path / "home", seed=3, repeat=0)
    assert {verdict.gate for verdict in sampled.verdicts if not verdict.passed} == set()
    assert (sampled.tables["itemsets"]["length"] > 1).any()
    assert not sampled.tables["rules"].is_empty()
    rows = make_rows(2000).unique("user", keep="first", maintain_order=True)
    one = {"holds": "one", "missing": "tea", "itemsets": {"minimum_support": 0.1, "length": 1}}
    done = release(world(tmp_path / "b", 2000, rows, **one, budget={"total": 3}), tmp_path / "home")
    assert done.status == "published"
    with duckdb.connect(str(tmp_path / "home" / "results.duckdb"), read_only=True) as results:
        ((total, *rest),) = results.sql("SELECT sum(support), max(length), count(*) FROM itemsets").fetchall()
    assert abs(total - 1) < 1e-9, "shares of values sum to one, whatever the noise"
    assert rest == [1, 6]


def test_levels_from_scores_that_were_collected(tmp_path: Path, pldp: Pldp) -> None:
    """A release of scores, the levels it gives, and a release of items that declares them and adds up both costs."""
    root = tmp_path / "home"
    rng = np.random.default_rng(5)
    scores = {item: np.clip(rng.normal(2 * n, 0.5, 4000), 0, 10) for n, item in enumerate(ITEMS)}
    pl.DataFrame(scores).write_parquet(tmp_path / "scores.parquet")
    numbers = [{"name": item, "kind": "number", "bounds": [0, 10]} for item in ITEMS]
    spec = {
        "name": "scores",
        "source": {"path": "scores.parquet", "one_row_per_user": True},
        "attributes": numbers,
        "budget": {"total": 20},
        "levels": {"choices": {"all": 1}},
    }
    (tmp_path / "scores.yaml").write_text(yaml.safe_dump(spec))
    scored = release(tmp_path / "scores.yaml", root)
    assert scored.status == "published"
    said = json.loads(pldp("levels", "scores", "--cuts", "1,3,5,7", "--home", root, "--json").out)["sensitivity"]
    assert said["levels"] == {item: min(n, 4) for n, item in enumerate(ITEMS)}, "means lie 10 errors from any cut"
    assert said["collected"] == {"release": scored.release_id, "epsilon": 20.0}
    assert "For a spec of kind items" in pldp("levels", "scores", "--of", "5", "--home", root).out
    assert pldp("levels", "scores", "--of", "5", "--median", "--home", root).code == 2
    assert pldp("levels", "scores", "--home", root).code == 2
    done = release(world(tmp_path / "items", 500, sensitivity=said, protocol="bounded"), root)
    assert done.status == "published"
    statement = json.loads((root / "releases" / done.release_id / "privacy.json").read_text())
    assert statement["scores"]["with_this_release"] == pytest.approx(32, abs=1e-6)
    assert scored.release_id in (root / "pages" / f"{done.release_id}.html").read_text()


@pytest.mark.skipif(not (DATA / "basket.txt.gz").exists(), reason="Basket is not beside the repository")
def test_basket(tmp_path: Path, pldp: Pldp) -> None:
    """The example as the documents have it; aprr as published is refused in a release and taken by an evaluation."""
    text = (ROOT / "docs" / "items.md").read_text()
    sql = text.split("```sql\n", 1)[1].split("```", 1)[0]
    sql = sql.replace("basket.txt.gz", str(DATA / "basket.txt.gz")).replace("basket.csv", str(tmp_path / "basket.csv"))
    duckdb.connect().execute(sql)
    done = release(ROOT / "data" / "basket.yaml", tmp_path / "home", source=tmp_path / "basket.csv")
    assert done.status == "published"
    content = yaml.safe_load((ROOT / "data" / "basket.yaml").read_text())
    content |= {"protocol": "aprr", "budget": {"total": 9}, "source": {"path": "basket.csv"}}
    (tmp_path / "aprr.yaml").write_text(yaml.safe_dump(content))
    refused = pldp("release", tmp_path / "aprr.yaml", "--home", tmp_path / "home")
    assert refused.code == 2
    assert "the exact ε of a row at level all is infinite" in refused.err
    study = evaluate(tmp_path / "aprr.yaml", tmp_path / "home", seed=4, repeat=3)
    privacy = {(row["method"], row["probabilities"]): row for row in study.tables["privacy"].iter_rows(named=True)}
    published, corrected = (privacy["this plan (aprr), level all", kind] for kind in ("as published", "both"))
    assert [round(published[name], 3) for name in ("most", "average")] == [0.716, 0.402], "71.8 with aprr's two digits"
    assert [round(corrected[name], 3) for name in ("most", "average")] == [0.700, 0.338]
    assert published["exact_epsilon"] is None
    assert [round(privacy["GR-PPFM", "one a group"][name], 3) for name in ("most", "average")] == [0.706, 0.326]
    assert set(study.tables["identity"]["method"]) == {"this plan (aprr)", "MASK", "GR-PPFM"}
    assert all(verdict.passed for verdict in study.verdicts)
