"""The front door: `import pldp` in a program, in a notebook, and in somebody's own flow."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from prefect import flow

import pldp
from pldp.errors import GateFailed, RequestError, SpecError
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
        again = pldp.release(with_secret(), home, source=people.to_arrow())
        assert again.release_id == done.release_id
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
        pldp.release(with_secret(), tmp_path / "home", source=people)
        assert not left.exists()

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
