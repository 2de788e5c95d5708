"""What the pipeline offers, it offers to every kind of question: one list of features, gone through kind by kind."""

from __future__ import annotations

import json
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
import yaml

from pldp.flows.release import release
from pldp.flows.schedule import scheduled_release
from pldp.flows.serve import served
from pldp.tasks import ingest
from pldp.tasks.home import Home
from tests import baskets, items, people, several
from tests.faults.dying import SMALL_PARTITIONS, Point, start
from tests.flows.clusters import Running, cluster, committed
from tests.flows.conftest import PATIENCE, Pldp, ended, resumes
from tests.flows.test_numbers import MIXED, numeric_people

pytestmark = pytest.mark.usefixtures("server", "small")


@dataclass(frozen=True)
class Kind:
    """A small world of a kind, and what to expect of it; texts are the reasons of refusals, empty where it works."""

    make: Callable[..., Path]
    cells: int
    """Of a partition, so that people make some: more show nothing, and each costs files of its own."""
    tables: tuple[str, ...]
    """What it publishes beside budgets and gates."""
    page: str
    """A sentence of its page."""
    units: tuple[str, ...] = ("user",)
    no_target: str = ""
    clients: dict[str, Any] | None = None
    """Sections of the spec in which clients' reports take the place of the source."""
    no_clients: str = ""

    def world(self, folder: Path, **sections: Any) -> Path:
        """Its people and their spec in a folder, to be ingested to several partitions."""
        ingest.PARTITION_CELLS = self.cells  # until the fixture `small` ends
        return self.make(folder, **sections)


def of_people(folder: Path, **sections: Any) -> Path:
    return people.world(folder, people.make_people(2000), **sections)


def of_numbers(folder: Path, **sections: Any) -> Path:
    return people.world(folder, numeric_people(), **{**MIXED, **sections})


def of_baskets(folder: Path, **sections: Any) -> Path:
    return baskets.world(folder, 3000, **sections)


def of_sets(folder: Path, **sections: Any) -> Path:
    """Half of the people are asked about items, the other half about sets of those that turned out frequent."""
    return baskets.world(folder, 3000, protocol="sampling", **sections)


def of_films(folder: Path, **sections: Any) -> Path:
    return items.world(folder, 3000, **sections)


def of_several(folder: Path, **sections: Any) -> Path:
    """The same people in a table, with baskets and with films."""
    return several.world(folder, 2000, **sections)


SENT: dict[str, Any] = {"source": {"reports": "sent"}}
KINDS = {
    "histograms": Kind(
        of_people,
        SMALL_PARTITIONS,
        ("histograms", "level_estimates"),
        "farmer",
        clients={**SENT, "levels": {"dependence": 1}},
    ),
    "numbers": Kind(
        of_numbers,
        1 << 14,
        ("histograms", "level_estimates", "means", "quantiles", "bins"),
        "0.25 quantile",
        clients={**SENT, "levels": {"dependence": 1}},
    ),
    "items": Kind(
        of_baskets,
        1 << 16,
        ("itemsets", "rules"),
        "bread",
        no_target="is for histograms and means: compare the predicted errors of two budgets instead",
        clients={**SENT, "users": None},
    ),
    "sets": Kind(
        of_sets,
        1 << 16,
        ("itemsets",),
        "bread",
        no_target="is for histograms and means: compare the predicted errors of two budgets instead",
        clients={**SENT, "users": None},
        no_clients="so they cannot lie there together",
    ),
    "aggregates": Kind(
        of_films,
        1 << 17,
        ("aggregates",),
        "drama",
        units=("occurrence",),
        no_target="is for histograms and means: a total's error follows from the budgets in the plan",
        clients={**SENT, "users": None},
    ),
    "several": Kind(
        of_several,
        1 << 17,
        ("histograms", "level_estimates", "itemsets", "rules", "aggregates"),
        "drama",
        units=("user", "occurrence"),
        clients={**SENT, "questions": several.SENT},
    ),
}
EACH = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def small() -> Iterator[None]:
    """Several partitions of few people."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pldp.tasks.ingest.PARTITION_CELLS", SMALL_PARTITIONS)
        yield


@dataclass(frozen=True)
class Done:
    kind: Kind
    home: Path
    release_id: str

    def table(self, name: str) -> pl.DataFrame:
        return table(self.home, self.release_id, name)


def table(home: Path, release_id: str, name: str) -> pl.DataFrame:
    """A published table of one release, without what names the release."""
    with duckdb.connect(str(home / "results.duckdb"), read_only=True) as results:
        rows = results.sql(f"FROM {name}").pl().filter(release_id=release_id)
    return rows.drop("release_id")


@pytest.fixture(scope="module", params=KINDS)
def done(request: pytest.FixtureRequest, server: str, small: None, tmp_path_factory: pytest.TempPathFactory) -> Done:
    """One release of each kind, for tests that look."""
    kind = KINDS[request.param]
    return Done(kind, *ended(kind.world(tmp_path_factory.mktemp(request.param))))


def all_gates_passed(home: Path, release_id: str) -> None:
    verdicts = table(home, release_id, "validations")
    assert {"partitions_once", "exact_epsilon", "enough_users"} <= set(verdicts["gate"])
    assert verdicts["passed"].all()


def test_release_and_resume(done: Done) -> None:
    """Several files of reports, everything published once, and the same again is found done."""
    assert len(committed(done.home / "reports")) >= 4, "one partition would show nothing"
    for name in done.kind.tables:
        assert not done.table(name).is_empty(), name
    assert not done.table("budgets").is_empty()
    all_gates_passed(done.home, done.release_id)
    assert [spend["unit"] for spend in Home(done.home).spends()] == [*done.kind.units]
    resumes(done.home, done.release_id)


def test_validate_export_and_page(done: Done, pldp: Pldp, tmp_path: Path) -> None:
    assert pldp("validate", done.release_id, "--home", done.home).code == 0
    said = pldp("export", done.release_id, tmp_path / "out", "--home", done.home)
    assert said.code == 0, said.err
    for name in done.kind.tables:
        exported = pl.read_parquet(tmp_path / "out" / f"{name}.parquet")
        assert exported.height == done.table(name).height
    assert json.loads((tmp_path / "out" / "privacy.json").read_text())["release_id"] == done.release_id
    assert pldp("export", done.release_id, tmp_path / "csv", "--format", "csv", "--home", done.home).code == 0
    shown = json.loads(pldp("show", done.release_id, "--home", done.home, "--json").out)
    assert set(done.kind.tables) <= set(shown)
    page = done.home / "pages" / f"{done.release_id}.html"
    before = page.read_bytes()
    page.unlink()
    assert pldp("page", done.release_id, "--home", done.home).code == 0
    assert page.read_bytes() == before
    assert done.kind.page in page.read_text()


@EACH
def test_plan(kind: str, pldp: Pldp, tmp_path: Path) -> None:
    """Predictions without data; a target error is found, or refused with the reason."""
    spec = KINDS[kind].world(tmp_path)
    planned = json.loads(pldp("plan", spec, "--json").out)
    assert planned["worst_total"].keys() == {*KINDS[kind].units}
    for tables in planned["predictions"].values():
        assert tables
        assert all(tables.values()), "a table without rows says nothing"
    assert planned["budgets"]
    told = pldp("plan", spec)
    assert told.code == 0
    for name in planned["predictions"]:
        assert f"{name}: " in told.out
    said = pldp("plan", spec, "--target-error", "0.01", "--json")
    if KINDS[kind].no_target:
        assert said.code == 2
        assert f"--target-error {KINDS[kind].no_target}" in said.err
    else:
        target = json.loads(said.out)["target"]
        assert target["budget"] > 0
        assert target["users"] > 100


@EACH
def test_a_release_killed_amid_perturb_resumes(kind: str, tmp_path: Path) -> None:
    """SIGKILL after the third file that was begun, when another thread may still be at one of the first two: what was
    committed is what is counted, and the budget is spent once."""
    spec, home = KINDS[kind].world(tmp_path), tmp_path / "home"
    home.mkdir()
    point = Point("pldp.tasks.perturb:commit_reports", "after", 3)
    process = start(home / "said", "release", spec, "--home", home, point=point, cells=KINDS[kind].cells)
    process.join(PATIENCE)
    assert process.exitcode == -signal.SIGKILL, (home / "said").read_text()
    before = committed(home / "reports")
    assert len(before) >= 2
    finished = release(spec, home)
    assert (finished.status, finished.resumed) == ("published", False)
    after = committed(home / "reports")
    assert before.items() <= after.items(), "committed reports were drawn again"
    assert len(after) > len(before)
    assert [spend["release_id"] for spend in Home(home).spends()] == [finished.release_id] * len(KINDS[kind].units)
    all_gates_passed(home, finished.release_id)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with cluster(tmp_path_factory.mktemp("cluster"), 2) as found:
        yield found


@EACH
def test_a_cluster(kind: str, running: Running, tmp_path: Path) -> None:
    home = tmp_path / "home"
    finished = release(KINDS[kind].world(tmp_path), home, runner={"dask": running.address})
    assert finished.status == "published"
    all_gates_passed(home, finished.release_id)
    for name in KINDS[kind].tables:
        assert not table(home, finished.release_id, name).is_empty(), name


@EACH
def test_a_schedule(kind: str, tmp_path: Path) -> None:
    """What `serve` deploys, called as its slot: published once, and found done the second time."""
    spec, home = KINDS[kind].world(tmp_path, schedule="0 3 * * *"), Home(tmp_path / "home")
    ((found),) = served([spec], home.root)
    assert found.schedule.cron == "0 3 * * *"
    slot = "2026-01-02T03:00Z"
    first = scheduled_release(str(found.spec), str(found.home), slot, return_state=True)
    spent, *_ = home.spends()
    assert [spend["unit"] for spend in home.spends()] == [*KINDS[kind].units]
    assert (spent["slot"], first.message) == (slot, f"{spent['release_id']} published")
    again = scheduled_release(str(found.spec), str(found.home), slot, return_state=True)
    assert again.message == f"{spent['release_id']} is there already; nothing was drawn"


def simulated(name: str) -> tuple[str, ...]:
    """Columns whose errors come from a bootstrap, which follows from the release's name."""
    return ("standard_error", "ci_low", "ci_high", "reliable") if name in ("histograms", "quantiles", "bins") else ()


def test_reports_of_clients(done: Done, pldp: Pldp, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    """The very reports of a release, sent by clients: the same estimates, to the bit, under another promise."""
    kind = done.kind
    spec = kind.world(tmp_path, **(kind.clients or {}))
    content = yaml.safe_load(spec.read_text())
    sent = tmp_path / content["source"]["reports"]
    shutil.copytree(done.home / "reports" / done.release_id, sent)
    said = pldp("release", spec, "--home", tmp_path / "home", "--json")
    if kind.no_clients:
        assert said.code == 2
        assert kind.no_clients in said.err
        assert not (tmp_path / "home").exists()
        return
    assert said.code == 0, said.err
    found = json.loads(said.out)
    assert found["privacy"]["model"] == "local"
    for name in kind.tables:
        mine, theirs = table(tmp_path / "home", found["release_id"], name), done.table(name)
        same = [column for column in mine.columns if column not in simulated(name)]
        assert mine.select(same).equals(theirs.select(same)), name
    if kind is not KINDS["histograms"] and not pytestconfig.getoption("--slow"):
        return  # no code of a kind looks whether a file is whole
    stray = next(sent.rglob("*.parquet"))
    pl.read_parquet(stray, hive_partitioning=False).rename(lambda name: f"{name}_").write_parquet(stray)
    refused = pldp("release", spec, "--home", tmp_path / "other", "--json")
    assert refused.code in (1, 2), "a whole file of four is more than a hundredth, or all that somebody answered"
    assert "no whole Parquet file" in refused.err
