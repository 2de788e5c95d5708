"""The stages of a release of aggregates: what the vault adds up, what is drawn once, what is refused."""

from __future__ import annotations

import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from pldp.errors import HomeError, SourceError, SpecError
from pldp.flows.pipeline import everybody
from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.evaluate import noise_sums
from pldp.questions.aggregates.question import Aggregates
from pldp.questions.aggregates.release import LARGEST
from pldp.questions.aggregates.reports import report_numbers, true_aggregates
from pldp.tasks import ingest as ingest_module
from pldp.tasks.combine import StoredReports
from pldp.tasks.home import Home
from pldp.tasks.ingest import Ingested, ingest
from pldp.tasks.page import written_spec
from pldp.tasks.partitions import read_partition
from pldp.tasks.reports import columns_of, read_reports
from pldp.tasks.run import Run
from pldp.tasks.specfile import load_spec
from tests.items import (
    make_catalogue,
    make_items,
    make_users,
    opened,
    true_totals,
    world,
    write_spec,
)
from tests.people import digests
from tests.pldp.questions.aggregates.world import ATTRIBUTES
from tests.tasks.stages import Concluded, conclude_all, draw_all


def aggregates_of(run: Run) -> Aggregates:
    (question,) = run.plan.questions
    assert isinstance(question, Aggregates)
    return question


def planned(spec: Path) -> Aggregates:
    (question,) = load_spec(spec).plan.questions
    assert isinstance(question, Aggregates)
    return question


def report_file(run: Run, provider: str) -> Path:
    (sheet,) = (sheet for sheet in aggregates_of(run).sheets() if sheet.path == f"provider={provider}")
    return run.report_file(sheet, 0)


def profiles_in(path: Path) -> np.ndarray:
    return read_reports(path)["profile"]


def draw(spec: Path, seed: int | None = 7) -> Concluded:
    run, file = opened(spec, spec.parent / "home", evaluation=True, seed=seed)
    found = ingest.fn(run, file)
    draw_all(run, range(found.partitions))
    return conclude_all(run, found)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Concluded:
    return draw(world(tmp_path_factory.mktemp("drawn")))


def vault_totals(run: Run, partitions: int) -> Units:
    question = aggregates_of(run)
    rows = [columns_of(read_partition(run, partition, question.vault_fields)) for partition in range(partitions)]
    return np.concatenate([true_aggregates(question, part) for part in rows])


@pytest.mark.parametrize("cap", [None, 1, 2])
def test_the_vault_adds_up_what_users_have(cap: int | None, tmp_path: Path) -> None:
    run, file = opened(world(tmp_path, count="occurrence" if cap is None else {"cap": cap}), tmp_path / "home")
    found = ingest.fn(run, file)
    assert found == Ingested(600, 1), "users without items too"
    rows = vault_totals(run, 1)
    assert rows.sum(axis=0).tolist() == true_totals(make_items(600), cap).tolist()
    assert (rows.sum(axis=1) == 0).sum() == 12


def test_partitions_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_module, "PARTITION_CELLS", 64 * 300)
    found = draw(world(tmp_path))
    assert found.ingested == Ingested(600, 6)
    assert {one.sheet: one.partitions for one in found.counted} == {
        f"provider={provider}": tuple(range(6)) for provider in ("shop", "ads")
    }
    assert vault_totals(found.run, 6).sum(axis=0).tolist() == true_totals(make_items(600)).tolist()
    assert all(int(sums.users.sum()) == 600 for sums in found.result.sums.values())


def test_counts_weights_and_grid(tmp_path: Path) -> None:
    world(tmp_path)
    pl.DataFrame(
        {"item": ["a", "a", "b"], "attribute": ["drama", "war", "comedy"], "weight": ["0.5", "1", "0.25"]}
    ).write_csv(tmp_path / "catalogue.csv")
    items = [("u", "a", 3), ("u", "a", 1), ("u", "b", 2), ("v", "b", 0), ("v", None, None)]
    pl.DataFrame(items, schema=["who", "what", "often"], orient="row").write_parquet(tmp_path / "items.parquet")
    spec = write_spec(
        tmp_path,
        source={"path": "items.parquet", "user": "who", "item": "what", "count": "often"},
        catalogue={"path": "catalogue.csv", "weight": "weight", "grid": "0.25"},
        users=None,
        profiles={"only": 1},
        default=None,
    )
    run, file = opened(spec, tmp_path / "home")
    assert ingest.fn(run, file).n_users == 2
    assert aggregates_of(run).grid == (Fraction(1, 2), Fraction(1, 4), Fraction(1)), "as coarse as the weights allow"
    rows = vault_totals(run, 1)
    assert sorted(map(tuple, (rows * aggregates_of(run).steps).tolist())) == [(0, 0, 0), (2, 0.5, 4)]


def test_profiles_from_users_and_from_a_column(tmp_path: Path) -> None:
    users = make_users(600)
    run, file = opened(world(tmp_path / "table"), tmp_path / "home")
    ingest.fn(run, file)
    wanted = [int((users["profile"] == name).sum()) for name in ("open", "shy")]
    assert _profiles(run) == wanted
    items = make_items(600).join(users, on="user")
    odd = items.with_columns(profile=pl.when(pl.col("user") == "user-1").then(None).otherwise("profile"))
    path = world(tmp_path / "column", items=odd, users=None, source={"path": "items.parquet", "profile": "profile"})
    run, file = opened(path, tmp_path / "home")
    ingest.fn(run, file)
    shy = users.filter(pl.col("user").is_in(items["user"].unique().implode()), pl.col("user") != "user-1")
    assert _profiles(run) == [int((shy["profile"] == "open").sum()), int((shy["profile"] == "shy").sum()) + 1]


def _profiles(run: Run) -> list[int]:
    return np.bincount(read_partition(run, 0, ["profile"])["profile"].to_numpy(), minlength=2).tolist()


def test_users_who_are_in_one_file_only_take_part(tmp_path: Path) -> None:
    spec = world(tmp_path)
    make_users(650).tail(100).write_csv(tmp_path / "users.csv")
    run, file = opened(spec, tmp_path / "home")
    assert ingest.fn(run, file).n_users == 588 + 51, "50 without items at all, and user-550"
    assert _profiles(run)[1] >= 500, "whoever states no profile has the default one"


def test_what_a_provider_gets(drawn: Concluded) -> None:
    """Whole numbers and a profile, no id, in an order that is not the file's."""
    for provider in ("shop", "ads"):
        path = report_file(drawn.run, provider)
        table = pq.read_table(path, partitioning=None)
        assert table.column_names == ["profile", *ATTRIBUTES]
        assert {str(kind) for kind in table.schema.types} == {"uint16", "int64"}
        assert table.num_rows == 600
        assert b"user-" not in path.read_bytes()
        assert b"film-" not in path.read_bytes()
        stated = [("open", "shy").index(name) for name in make_users(600)["profile"]]
        assert profiles_in(path).tolist() != stated
        assert np.bincount(profiles_in(path)).tolist() == np.bincount(stated).tolist()
    question = aggregates_of(drawn.run)
    shop, ads = (report_numbers(question, read_reports(report_file(drawn.run, name))) for name in ("shop", "ads"))
    assert (shop != ads).any(axis=1).mean() > 0.9, "providers have noise of their own"


def test_totals_lie_within_their_errors(drawn: Concluded) -> None:
    truth, question = drawn.truth, aggregates_of(drawn.run)
    stored = StoredReports(drawn.run, question, drawn.ingested.partitions)
    away = noise_sums(question, everybody(drawn.run, drawn.ingested), stored)
    assert truth.tolist() == true_totals(make_items(600)).tolist()
    rows = drawn.tables["aggregates"]
    z = (rows["total"].to_numpy() - np.tile(truth, 2)) / rows["standard_error"].to_numpy()
    assert np.abs(z).max() < 5.2, "six totals: 1e-6"
    shares = rows.filter(provider="shop")
    assert shares["share"].sum() == pytest.approx(1)
    assert set(rows["n_users"]) == {600}
    mechanism, users = question.mechanisms["ads"], drawn.result.sums["ads"].users
    predicted = users @ mechanism.mean_size / 600
    # E|Z| has a standard deviation of about its mean; 5.2 of them over 600 users, three attributes.
    assert np.abs(away["ads"][0] / 600 / predicted - 1).max() < 5.2 / np.sqrt(600)


def test_a_release_draws_once(tmp_path: Path) -> None:
    run, file = opened(world(tmp_path, 300), tmp_path / "home")
    found = ingest.fn(run, file)
    assert draw_all(run, [0]) == 600, "two providers"
    before = digests(run.reports)
    assert draw_all(run, [0]) == 0
    assert digests(run.reports) == before
    report_file(run, "ads").unlink()
    assert draw_all(run, [0]) == 300, "what was never committed may be drawn"
    kept = digests(run.reports)
    assert kept[str(Path("provider=shop") / "00000.parquet")] == before[str(Path("provider=shop") / "00000.parquet")]
    again, file = opened(tmp_path / "spec.yaml", tmp_path / "home")
    assert again == run
    assert ingest.fn(again, file) == found
    run.vault.unlink()
    with pytest.raises(HomeError, match="cannot be completed"):
        ingest.fn(again, file)


def test_rows_of_two_providers_do_not_line_up(tmp_path: Path) -> None:
    """In a release each provider's file has an order of its own: the profiles are the same, row by row they are not."""
    spec = world(tmp_path)
    run, file = opened(spec, tmp_path / "home")
    found = ingest.fn(run, file)
    draw_all(run, range(found.partitions))
    one, other = (profiles_in(report_file(run, provider)) for provider in ("shop", "ads"))
    assert sorted(one) == sorted(other)
    assert len(set(one.tolist())) > 1
    assert not np.array_equal(one, other)


def test_what_makes_another_release(tmp_path: Path) -> None:
    spec = world(tmp_path, 50)
    first = opened(spec, tmp_path / "home")[0].release_id
    ids = {first, opened(spec, tmp_path / "home", "other")[0].release_id}
    make_users(50, seed=2).write_csv(tmp_path / "users.csv")
    ids.add(opened(spec, tmp_path / "home")[0].release_id)
    extra = pl.DataFrame({"item": ["film-new"], "attribute": ["drama"]})
    pl.concat([make_catalogue(), extra]).write_csv(tmp_path / "catalogue.csv")
    ids.add(opened(spec, tmp_path / "home")[0].release_id)
    assert len(ids) == 4


def test_a_release_never_reads_the_truth(tmp_path: Path) -> None:
    run, _ = opened(world(tmp_path, 50), tmp_path / "home")
    with pytest.raises(ValueError, match="a release never reads the truth"):
        everybody(run, Ingested(50, 1))


CATALOGUE = "item,attribute,weight\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,drama,1\n", "'comedy' belongs to no item"),
        ("a,drama,1\na,comedy,1\na,war,1\nb,,1\n", "readable row 4, column attribute: the cell is empty"),
        ("a,drama,1\na,comedy,1\na,love,1\n", "readable row 3, column attribute: the cell holds an attribute"),
        ("a,drama,1\na,comedy,1\na,war,1\n,war,1\n", "readable row 4, column item: the cell is empty"),
        ("a,drama,1\na,comedy,1\na,war,1\na,war,1\n", "readable row 4, column attribute: the cell gives the item"),
        ("a,drama,1\na,comedy,-1\na,war,1\n", "readable row 2, column weight: the cell must be a finite number ≥ 0"),
        ("a,drama,1\na,comedy,many\na,war,1\n", "readable row 2, column weight"),
        ("a,drama,1\na,comedy,nan\na,war,1\n", "readable row 2, column weight"),
        ("a,drama,1\na,comedy,0.3\na,war,1\n", "multiple of the grid"),
        ("a,drama,1\na,comedy,1\na,war,1\nb,war,0\n", "has no attribute"),
        ("", "at least one row"),
        ("a,drama\n", "cannot be read to its end"),
    ],
)
def test_a_catalogue_that_breaks_a_rule(content: str, message: str, tmp_path: Path) -> None:
    spec = world(tmp_path, 10, catalogue={"path": "catalogue.csv", "weight": "weight"})
    (tmp_path / "catalogue.csv").write_text(CATALOGUE + content)
    with pytest.raises(SourceError, match=message) as refused:
        load_spec(spec)
    assert str(refused.value).endswith("Nothing was run.")
    assert "many" not in str(refused.value)


def _items(rows: list[tuple[Any, ...]], folder: Path) -> None:
    pl.DataFrame(rows, schema=["user", "item", "n"], orient="row").write_csv(folder / "items.csv")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("u", "film-1", "1"), ("u", "zq", "1")], "readable row 2, column item: the item is not in the catalogue"),
        ([("u", "film-1", "1"), ("u", "film-1", "zq")], "readable row 2, column n: the count must be a whole number"),
        ([("u", "film-1", "2.5")], "readable row 1, column n"),
        ([("u", "film-1", "-1")], "readable row 1, column n"),
        ([("u", "film-1", None)], "readable row 1, column n"),
        ([(None, "film-1", "1")], "no readable row with a user"),
        ([], "no readable row with a user"),
    ],
)
def test_items_that_break_a_rule(rows: list[tuple[Any, ...]], message: str, tmp_path: Path) -> None:
    spec = world(
        tmp_path, 10, source={"path": "items.csv", "count": "n"}, users=None, profiles={"only": 1}, default=None
    )
    _items(rows, tmp_path)
    run, file = opened(spec, tmp_path / "home")
    with pytest.raises(SourceError, match=message) as refused:
        ingest.fn(run, file)
    assert "zq" not in str(refused.value)
    assert not run.vault.exists()


def test_more_than_noise_can_be_added_to_is_refused_by_ingest(tmp_path: Path) -> None:
    """Sums are 128 bits wide in the vault: what is beyond the noise's reach is told before a draw or a spend."""
    source = {"path": "items.csv", "count": "n"}
    alone: dict[str, Any] = {"users": None, "profiles": {"only": 1}, "default": None}
    spec = world(tmp_path, 10, source=source, **alone)
    fits = [("u", f"film-{5 * i + 4}", str(10**9)) for i in range(4)] * 2
    fits.append(("u", "film-0", str(LARGEST - 8 * 10**9)))
    _items(fits, tmp_path)
    run, file = opened(spec, tmp_path / "home")
    assert ingest.fn(run, file).n_users == 1
    assert vault_totals(run, 1).tolist() == [[LARGEST, 8 * 10**9, 8 * 10**9]]
    for more in ([("u", "film-0", "1")], [("v", "film-0", str(10**9))] * 50):
        _items([*fits, *more], tmp_path)
        run, file = opened(spec, tmp_path / "home")
        with pytest.raises(SourceError, match=r"add up to more than 8,589,934,592 grid units .*{cap: …}") as refused:
            ingest.fn(run, file)
        assert str(refused.value).endswith("Nothing was perturbed.")
        assert not run.vault.exists()
        assert not run.reports.exists() or not list(run.reports.iterdir())
    bounded = write_spec(tmp_path, source=source, count={"cap": 3}, **alone)
    run, file = opened(bounded, tmp_path / "home")
    assert ingest.fn(run, file).n_users == 2, "a cap makes them fit"


def test_unknown_items_may_count_for_nothing(tmp_path: Path) -> None:
    source = {"path": "items.csv", "unknown": "ignore"}
    spec = world(tmp_path, 10, source=source, users=None, profiles={"only": 1}, default=None)
    _items([("u", "film-0", "1"), ("u", "zq", "1"), ("v", "zq", "1")], tmp_path)
    run, file = opened(spec, tmp_path / "home")
    assert ingest.fn(run, file).n_users == 2
    assert vault_totals(run, 1).sum(axis=0).tolist() == [1, 0, 0]


def test_a_user_with_two_profiles(tmp_path: Path) -> None:
    spec = world(tmp_path, 10)
    rows = pl.DataFrame({"user": ["user-1", "user-1"], "profile": ["shy", "open"]})
    pl.concat([make_users(10).filter(pl.col("user") != "user-1"), rows]).write_csv(tmp_path / "users.csv")
    run, file = opened(spec, tmp_path / "home")
    with pytest.raises(SourceError, match="two different profiles") as refused:
        ingest.fn(run, file)
    assert "user-1" not in str(refused.value)


@pytest.mark.parametrize("other", ["", "brave"])
def test_an_unstated_profile_beside_a_stated_one_is_the_default(other: str, tmp_path: Path) -> None:
    """Where profiles stand, every row states one: an empty or undeclared cell the default, shy."""
    source = {"path": "items.parquet", "profile": "profile"}
    for stated, torn in (("open", True), ("shy", False)):
        rows = [("u", "film-0", stated), ("u", "film-1", other), ("v", "film-1", "open")]
        items = pl.DataFrame(rows, schema=["user", "item", "profile"], orient="row")
        folder = tmp_path / stated
        run, file = opened(world(folder, items=items, users=None, source=source), folder / "home")
        if torn:
            with pytest.raises(SourceError, match=r"column profile: .* without a declared one states the default"):
                ingest.fn(run, file)
        else:
            ingest.fn(run, file)
            assert _profiles(run) == [1, 1]
    spec = world(tmp_path / "table", 10)
    twice = pl.DataFrame({"user": ["user-1", "user-1"], "profile": ["open", other]})
    pl.concat([make_users(10).filter(pl.col("user") != "user-1"), twice]).write_csv(tmp_path / "table" / "users.csv")
    run, file = opened(spec, tmp_path / "table" / "home")
    with pytest.raises(SourceError, match="two different profiles"):
        ingest.fn(run, file)


def test_a_catalogue_in_a_table(tmp_path: Path) -> None:
    """The same catalogue from a DuckDB table, or one with weights, is the same plan and the same totals."""
    spec = world(tmp_path)
    listed = load_spec(spec).tables["catalogue"]
    path = tmp_path / "public.duckdb"
    with duckdb.connect(str(path)) as database:
        database.register("rows", make_catalogue().to_arrow())
        database.execute('CREATE TABLE "the films" AS SELECT item, attribute AS genre FROM rows')
        database.execute('CREATE TABLE heavy AS SELECT item, genre, 2 AS weight FROM "the films"')
    table = {"path": path.name, "format": "duckdb", "table": "the films", "attribute": "genre"}
    run, file = opened(write_spec(tmp_path, catalogue=table), tmp_path / "home")
    assert file.tables["catalogue"].sha256 == listed.sha256
    assert aggregates_of(run).rows == planned(spec).rows
    ingest.fn(run, file)
    assert vault_totals(run, 1).sum(axis=0).tolist() == true_totals(make_items(600)).tolist()
    weighed = planned(write_spec(tmp_path, catalogue={**table, "table": "heavy", "weight": "weight"}))
    assert weighed.grid == (Fraction(2),) * 3
    for change, message in (
        ({"table": "books"}, "table books: there is no such table"),
        ({"attribute": "kind"}, "there is no column 'kind', which the spec names"),
        ({"path": "catalogue.csv"}, "cannot be opened as a DuckDB file"),
        ({"path": "nowhere.duckdb"}, "No such file"),
    ):
        with pytest.raises(SourceError, match=message) as refused:
            load_spec(write_spec(tmp_path, catalogue={**table, **change}))
        assert str(refused.value).endswith("Nothing was run.")


READING_VIEW = """CREATE VIEW films AS
SELECT content AS item, unnest(['drama', 'comedy', 'war']) AS attribute FROM read_text('{secret}')"""


def test_a_view_in_a_catalogue_reads_nobodys_files(tmp_path: Path) -> None:
    """A catalogue handed over by somebody else: what its view reads would stand in the public plan."""
    world(tmp_path, 10)
    secret = tmp_path / "secret"
    secret.write_text("zqSECRETqz")
    with duckdb.connect(str(tmp_path / "public.duckdb")) as database:
        database.execute(READING_VIEW.format(secret=secret))
        database.execute(
            "CREATE TABLE plain AS SELECT 'film-1' AS item, unnest(['drama', 'comedy', 'war']) AS attribute"
        )
    catalogue = {"path": "public.duckdb", "format": "duckdb", "table": "films"}
    command = [sys.executable, "-m", "pldp.flows.cli", "plan", str(write_spec(tmp_path, catalogue=catalogue))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert "table films: is a view that reads outside its file" in done.stderr
    assert "zqSECRETqz" not in done.stdout + done.stderr
    plain = load_spec(write_spec(tmp_path, catalogue={**catalogue, "table": "plain"}))
    assert plain.tables["catalogue"].items.to_list() == ["film-1"]


def test_specs_in_the_words_of_the_file(tmp_path: Path) -> None:
    spec = world(tmp_path, 10, providers={"shop": {"epsilon": 1, "reputatio": "x"}})
    with pytest.raises(
        SpecError, match=r"providers\.shop\.reputatio is not a key of the spec; did you mean 'reputation'"
    ):
        load_spec(spec)
    with pytest.raises(SpecError, match=r"profiles\.shy\.war: .* greater than 0 \(got 0\)\. Nothing was run"):
        load_spec(write_spec(tmp_path, profiles={"open": 1, "shy": {"drama": 1, "comedy": 1, "war": 0}}))
    with pytest.raises(SpecError, match=r"profiles\.shy\.war leaves less than 2\^-32"):
        load_spec(write_spec(tmp_path, profiles={"open": 1, "shy": {"drama": 1, "comedy": 1, "war": 1e-12}}))
    with pytest.raises(SourceError, match=r"catalogue cannot be read \(No such file"):
        load_spec(write_spec(tmp_path, catalogue={"path": "nowhere.csv"}))
    with pytest.raises(SourceError, match=r"nowhere\.csv: no such file of users\. Correct users\.path"):
        load_spec(write_spec(tmp_path, users={"path": "nowhere.csv"}))
    with pytest.raises(SpecError, match=r"spec\.yaml: providers\.ads\.epsilon leaves less than 2\^-32 for a grid unit"):
        load_spec(write_spec(tmp_path, providers={"ads": {"epsilon": 1e-10}}))
    with pytest.raises(SourceError, match="there is no column 'what', which the spec names"):
        load_spec(write_spec(tmp_path, catalogue={"path": "catalogue.csv", "item": "what"}))
    with pytest.raises(SpecError, match="kind must be histograms, aggregates or items; several at once stand under"):
        load_spec(write_spec(tmp_path, kind="aggregate"))
    assert load_spec(write_spec(tmp_path)).plan.name == "films"
    (tmp_path / "items.parquet").unlink()
    with pytest.raises(SourceError, match="cannot be read"):
        opened(write_spec(tmp_path), tmp_path / "home")
    assert not list(Home(tmp_path / "home").reports.iterdir())


def test_a_page_writes_out_the_first_profiles_only() -> None:
    spec = {"name": "films", "profiles": {f"p{i}": "1" for i in range(10_000)}}
    written = written_spec(spec)
    assert "p99:" in written
    assert "p100:" not in written
    assert written.endswith("# … and 9,900 more profiles, in the release's spec.json\n")
    assert "more profiles" not in written_spec({"profiles": {"only": "1"}})


def test_a_file_that_is_source_and_users_has_columns_of_one_role(tmp_path: Path) -> None:
    """Else everybody's item is also the profile, and how many have a profile is public."""
    world(tmp_path, 10)
    given = {"path": "items.parquet", "profile": "item"}
    with pytest.raises(SpecError, match=r"source\.item and users\.profile both read column"):
        load_spec(write_spec(tmp_path, users=given))
