"""Recycling: what an analyst cleared up to a smaller budget gets, exactly and once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from pldp.flows.release import release
from pldp.flows.sample import write_sample
from tests.baskets import world as baskets
from tests.flows.conftest import Pldp
from tests.items import world as films
from tests.people import digests, make_people, world

pytestmark = pytest.mark.usefixtures("server")


@pytest.fixture(scope="module", params=["krr", "brr", "oue", "subset"])
def home(request: pytest.FixtureRequest, server: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recycled")
    spec = world(folder, make_people(5000), mechanism=request.param, postprocess="none")
    assert release(spec, folder / "home").status == "published"
    return folder / "home"


def test_the_cleared_estimate(home: Path, pldp: Pldp, tmp_path: Path) -> None:
    said = pldp("recycle", "people", "0.6", tmp_path / "first", "--home", home)
    assert said.code == 0
    assert "keeps ε = 0.6 or less" in said.out
    statement = json.loads((tmp_path / "first" / "privacy.json").read_text())
    assert all(level["exact_epsilon"] <= statement["cleared_up_to"] for level in statement["levels"])
    assert {level["recycled"] for level in statement["levels"]} == {True, False}, "the strict ones stay as they are"
    rows = pl.read_parquet(tmp_path / "first" / "histograms.parquet")
    people = make_people(5000)
    for row in rows.iter_rows(named=True):
        share = (people[row["attribute"]] == row["value"]).mean()
        assert abs(row["unbiased_frequency"] - share) < 5 * row["standard_error"], "8 cells at 5 errors: 5e-6"


def test_it_is_drawn_once(home: Path, pldp: Pldp, tmp_path: Path) -> None:
    """A second draw would let the analyst average the noise away."""
    pldp("recycle", "people", "1/2", tmp_path / "one", "--home", home)
    before = digests(home / "reports")
    pldp("recycle", "people", "0.50", tmp_path / "two", "--home", home)
    assert digests(home / "reports") == before
    one, two = (pl.read_parquet(tmp_path / name / "histograms.parquet") for name in ("one", "two"))
    assert one.equals(two)
    assert pldp("recycle", "people", "0.25", tmp_path / "less", "--home", home).code == 0
    less = pl.read_parquet(tmp_path / "less" / "histograms.parquet")
    assert (less["standard_error"] > one["standard_error"]).all(), "a lower clearance sees less"
    refused = pldp("recycle", "people", "0.4", tmp_path / "between", "--home", home)
    assert refused.code != 0
    assert "from the largest budget down" in refused.err
    assert pldp("recycle", "people", "0.5", tmp_path / "three", "--home", home).code == 0, "it is there already"


@pytest.mark.parametrize("budget", ["0", "-1", "much", "inf"])
def test_a_budget_must_be_one(home: Path, pldp: Pldp, tmp_path: Path, budget: str) -> None:
    said = pldp("recycle", "people", "--home", home, "--", budget, tmp_path / "out")
    assert said.code == 2
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("sections", "why"),
    [
        ({"mechanism": "olh"}, "olh reports cannot be recycled"),
        (
            {"levels": {"dependence": 1, "column": "level", "visibility": "hidden", "epsilon_p": 1, "max_leak": 8}},
            "its levels are hidden",
        ),
    ],
)
def test_what_cannot_be_recycled(sections: dict[str, Any], why: str, pldp: Pldp, tmp_path: Path) -> None:
    release(world(tmp_path, **sections), tmp_path / "home")
    said = pldp("recycle", "people", "0.1", tmp_path / "out", "--home", tmp_path / "home")
    assert said.code != 0
    assert why in said.err
    assert "Nothing was drawn" in said.err
    assert not (tmp_path / "out").exists()


def test_the_shipped_sample_can_be_recycled(pldp: Pldp, tmp_path: Path) -> None:
    """`mechanism: auto` takes subset selection there, which was refused."""
    spec, _ = write_sample(tmp_path / "data", users=20_000)
    assert release(spec, tmp_path / "home").status == "published"
    said = pldp("recycle", "sample", "0.3", tmp_path / "out", "--home", tmp_path / "home")
    assert said.code == 0, said.err
    statement = json.loads((tmp_path / "out" / "privacy.json").read_text())
    assert all(level["exact_epsilon"] <= statement["cleared_up_to"] for level in statement["levels"])
    assert "subset-recycled" in {level["mechanism"] for level in statement["levels"]}
    rows = pl.read_parquet(tmp_path / "out" / "histograms.parquet")
    assert set(rows["attribute"]) == {level["attribute"] for level in statement["levels"]}
    sums = rows.group_by("attribute").agg(pl.col("frequency").sum())["frequency"]
    assert sums.to_list() == pytest.approx([1] * len(sums))


@pytest.mark.parametrize(("make", "kind"), [(baskets, "items"), (films, "aggregates")])
def test_other_kinds_are_refused_by_name(make: Any, kind: str, pldp: Pldp, tmp_path: Path) -> None:
    """They ended in a ValidationError of the plan."""
    done = release(make(tmp_path), tmp_path / "home")
    said = pldp("recycle", done.release_id, "0.1", tmp_path / "out", "--home", tmp_path / "home")
    assert said.code == 2
    told = " ".join(said.err.split())
    assert f"it is a release of {kind}, and only reports of histograms can be perturbed once more" in told
    assert "Nothing was drawn" in told
    assert not (tmp_path / "out").exists()
