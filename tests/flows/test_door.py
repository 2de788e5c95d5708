"""The front door: `import pldp` in a program, in a notebook, and in somebody's own flow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from prefect import flow

import pldp
from pldp.errors import GateFailed, RequestError, SourceError, SpecError
from pldp.tasks.home import Home
from pldp.tasks.vaults import vaults
from tests.flows.searcher import files_under, find
from tests.flows.test_privacy import MARK
from tests.people import SPEC, digests, make_people

HEAVY = ("prefect", "great_expectations", "duckdb", "polars", "pandas", "dask", "scipy", "numpy")
SECRET = "canary-7f3a"  # noqa: S105


def spec_of(**sections: Any) -> dict[str, Any]:
    return {**SPEC, "attributes": [SPEC["attributes"][0]], **sections}


@pytest.fixture
def people() -> pl.DataFrame:
    """With a cell that must not leave: its value is declared, so that it is a value like any other."""
    frame = make_people(1500)
    return frame.with_columns(job=pl.when(pl.col("job") == "smith").then(pl.lit(SECRET)).otherwise(pl.col("job")))


def with_secret() -> dict[str, Any]:
    values = [SECRET if value == "smith" else value for value in SPEC["attributes"][0]["values"]]
    return spec_of(attributes=[{**SPEC["attributes"][0], "values": values}])


def test_importing_the_package_loads_nothing_of_the_pipeline() -> None:
    code = f"import sys, pldp; print([name for name in {HEAVY!r} if name in sys.modules]); print(pldp.__version__)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")
    assert said[0] == "[]"
    assert said[1] == pldp.__version__


def test_what_it_offers_is_typed_and_nothing_else_is_there() -> None:
    assert set(pldp.__all__) == set(dir(pldp))
    assert (Path(pldp.__file__).parent / "py.typed").exists()
    with pytest.raises(AttributeError, match="has no attribute 'relase'"):
        pldp.relase  # noqa: B018


def test_a_plan_of_a_mapping_reads_no_data() -> None:
    planned = pldp.plan(spec_of(), target_error=0.01)
    assert planned.plan.name == "people"
    assert planned.target is not None
    assert planned.target.users is not None
    with pytest.raises(SpecError, match=r"budget\.total"):
        pldp.plan(spec_of(budget={"total": -1}))


@pytest.mark.usefixtures("server")
class TestReleases:
    def test_a_frame_is_released_resumed_and_read(self, tmp_path: Path, people: pl.DataFrame) -> None:
        home = tmp_path / "home"
        done = pldp.release(with_secret(), home, source=people)
        shares = done["histograms"]
        assert shares["frequency"].sum() == pytest.approx(1)
        assert done.statement is not None
        assert done.statement["n_users"] == 1500
        reports = digests(home / "reports")
        for same in (people.to_arrow(), people.lazy(), people.to_dict(as_series=False)):
            assert pldp.release(with_secret(), home, source=same).release_id == done.release_id
        assert digests(home / "reports") == reports, "nothing is drawn twice"
        opened = pldp.open(home)
        assert opened.releases.height == 1
        assert opened.latest("people")["histograms"].equals(shares)
        share = opened.latest("people").group("job", "farmer", "nurse")
        assert share["n_values"] == 2
        assert opened.query("SELECT count(*) AS n FROM latest_histograms")["n"].to_list() == [6]
        with pytest.raises(RequestError, match="no published table"):
            done["histogram"]

    def test_the_frame_is_gone_afterwards_and_nowhere_else(self, tmp_path: Path, people: pl.DataFrame) -> None:
        home = tmp_path / "home"
        pldp.release(with_secret(), home, source=people)
        assert list((home / "frames").iterdir()) == []
        assert sorted(path.name for path in (home / "vault").iterdir()) == ["key"]
        held = [path for path in home.rglob("*") if path.is_file() and b"user-1499" in path.read_bytes()]
        assert held == [], "no user id anywhere"

    def test_a_frame_of_a_program_that_died_is_swept(self, tmp_path: Path, people: pl.DataFrame) -> None:
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        left = tmp_path / "home" / "frames" / f"{dead.pid}-0"
        (tmp_path / "home").mkdir(mode=0o700)
        left.mkdir(parents=True)
        (left / "people.parquet").write_text("raw")
        assert [vault.folder for vault in vaults(Home(tmp_path / "home"))] == [left]
        pldp.release(with_secret(), tmp_path / "home", source=people)
        assert not left.exists()

    def test_a_lazy_frame_that_breaks_quotes_nobody_and_leaves_nothing(self, tmp_path: Path) -> None:
        broken = make_people(50).lazy().with_columns(job=pl.lit(SECRET).cast(pl.Int64))
        with pytest.raises(SourceError, match="the frame cannot be written") as caught:
            pldp.release(with_secret(), tmp_path / "home", source=broken)
        assert SECRET not in str(caught.value)
        assert list((tmp_path / "home" / "frames").iterdir()) == []

    def test_a_refused_release_says_so(self, tmp_path: Path, people: pl.DataFrame) -> None:
        with pytest.raises(GateFailed, match="enough_users"):
            pldp.release({**with_secret(), "gates": {"minimum_users": 10_000}}, tmp_path / "home", source=people)

    def test_in_a_flow_of_ones_own(self, tmp_path: Path, people: pl.DataFrame) -> None:
        people.write_parquet(tmp_path / "people.parquet")

        @flow(name="nightly", persist_result=True)
        def nightly(path: str, home: str) -> str:
            return pldp.release(with_secret(), home, source=path).release_id

        done = nightly(str(tmp_path / "people.parquet"), str(tmp_path / "home"))
        assert pldp.open(tmp_path / "home").latest("people").release_id == done

    def test_an_evaluation_is_never_published(self, tmp_path: Path, people: pl.DataFrame) -> None:
        done = pldp.evaluate(with_secret(), tmp_path / "home", source=people, repeat=5, seed=3)
        assert done.tables["cells"].height == 6
        assert not (tmp_path / "home" / "results.duckdb").exists()


HOST = """
import json, sys
import polars as pl
from prefect import flow
import pldp
from tests.people import make_people

home, mark, spec = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
row = pl.int_range(pl.len())
people = make_people(1501).with_columns(
    id=pl.format(f"{mark}Id{{}}", row),
    note=pl.format(f"{mark}Note{{}}", row),
    job=pl.when(pl.col("job") == "other").then(pl.lit(f"{mark}Job")).otherwise("job"),
    level=pl.when(row < 50).then(pl.lit(f"{mark}Level")).otherwise("level"),
)

@flow(name="host", persist_result=True)
def host():
    whole = pldp.release(spec, home, source=people, slot="whole")
    return whole.release_id, pldp.release(spec, home, source=people.lazy(), slot="lazy").release_id

@flow(name="careless", persist_result=True)
def careless():
    return people["id"][0].replace(mark, "zqCARELESSqz")

print(host(), careless())
"""


def test_a_frame_in_a_host_s_flow_is_nowhere_afterwards(tmp_path: Path) -> None:
    """Home, the host's Prefect storage and its database are searched; what the host itself persists is found there."""
    here = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
    own = {"HOME": str(tmp_path / "host"), "PREFECT_HOME": str(tmp_path / "prefect"), "TMPDIR": str(tmp_path / "tmp")}
    for folder in own.values():
        Path(folder).mkdir()
    own["PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS"] = "200"
    arguments = [str(tmp_path / "home"), MARK.decode(), json.dumps(spec_of())]
    command = [sys.executable, "-c", HOST, *arguments]
    said = subprocess.run(command, env=here | own, capture_output=True, timeout=300, check=False)
    assert said.returncode == 0, said.stderr.decode()[-2000:]
    files = files_under(tmp_path)
    assert find([MARK], files) == []
    assert MARK not in said.stdout + said.stderr
    kept = {path.relative_to(tmp_path).parts[0] for path, _ in find([b"zqCARELESSqz"], files)}
    assert kept, "a search that finds nothing proves nothing"
    assert any(path.suffix == ".db" for path in files), "the database is among what is searched"
