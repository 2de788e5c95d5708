"""The bad input of numbers, end to end: what a spec may not say, and what cells may hold without harm."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pytest

from pldp.errors import SpecError
from pldp.flows.release import release
from tests.bad_input.wild import check_message
from tests.flows.conftest import Pldp
from tests.people import make_people, opened, world, write_spec

AGE: dict[str, Any] = {"name": "age", "kind": "number", "bounds": [0, 100], "missing": 40}
PAY: dict[str, Any] = {"name": "pay", "kind": "number", "bounds": [0, 10]}
BAND: dict[str, Any] = {"name": "band", "kind": "binned", "column": "age", "edges": [0, 20, 50, 100], "missing": 40}


def bounds(*ends: object) -> dict[str, Any]:
    return {"attributes": [{**AGE, "bounds": list(ends)}, PAY]}


def edges(*cuts: object) -> dict[str, Any]:
    return {"attributes": [{**BAND, "edges": list(cuts)}]}


def numbers(**keys: Any) -> dict[str, Any]:
    return {"attributes": [AGE, PAY], "numbers": keys}


BAD_SPECS: list[tuple[str, dict[str, Any], str]] = [
    ("bounds reversed", bounds(100, 0), "attributes[0].bounds must rise, from the lowest to the highest value"),
    ("bounds equal", bounds(5, 5), "attributes[0].bounds must rise, from the lowest to the highest value"),
    ("nan", bounds(math.nan, 5), "attributes[0].bounds[0] must be finite (got .nan)"),
    ("inf", bounds(0, math.inf), "attributes[0].bounds[1] must be finite (got .inf)"),
    ("inf", {"attributes": [{**AGE, "missing": -math.inf}]}, "attributes[0].missing must be finite (got -.inf)"),
    ("outside bounds", {"attributes": [{**AGE, "missing": 101}]}, "attributes[0].missing must lie within bounds"),
    ("τ < 1", numbers(tau=0.99), "numbers.tau: input should be greater than or equal to 1 (got 0.99)"),
    ("τ nan", numbers(tau=math.nan), "numbers.tau must be a finite number"),
    ("importance missing", numbers(tau=2), "numbers: tau above 1 needs importance"),
    ("importance missing", numbers(tau=2, importance=[]), "numbers.importance must name an important attribute"),
    ("importance missing", numbers(tau=2, importance={"age": "a"}), "a column for every numeric attribute"),
    ("too many sampled", numbers(sampling=3), "numbers.sampling must be at most 2"),
    ("none sampled", numbers(sampling=0), "numbers.sampling"),
    ("edges not rising", edges(0, 20, 20, 100), "attributes[0].edges must rise, each above the one before"),
    ("edges not rising", edges(0, 50, 20), "attributes[0].edges must rise, each above the one before"),
    ("one bin", edges(0, 100), "attributes[0].edges: tuple should have at least 3 items"),
    ("edges nan", edges(0, math.nan, 100), "attributes[0].edges[1] must be finite (got .nan)"),
    ("edges inf", edges(0, 50, math.inf), "attributes[0].edges[2] must be finite (got .inf)"),
    ("outside edges", edges(50, 60, 100), "attributes[0].missing must lie within the edges (got 40)"),
]


@pytest.mark.parametrize(("item", "sections", "says"), BAD_SPECS)
def test_a_bad_spec(item: str, sections: dict[str, Any], says: str, tmp_path: Path, pldp: Pldp) -> None:
    """Field, rule and the spec's own value; and nothing is made, not even the home."""
    path = write_spec(tmp_path, **sections)
    with pytest.raises(SpecError) as caught:
        opened(path, tmp_path / "home")
    assert says in str(caught.value), item
    check_message(str(caught.value), path, "Nothing was run.")
    told = pldp("release", path, "--home", tmp_path / "home")
    assert (told.code, told.err) == (2, f"Error: {caught.value}\n")
    assert not (tmp_path / "home").exists()


CELLS = ("nan", "inf", "-inf", "1e400", "", "forty", "-7", "1e9", "100", "0")
"""No number (all become 40), beyond the bounds, and at them."""
CLIPPED = (40, 40, 40, 40, 40, 40, 0, 100, 100, 0)


@pytest.mark.usefixtures("server")
def test_bad_cells_constant_columns_and_nothing_that_matters(tmp_path: Path) -> None:
    """One release of all of it: published, and what it says is the truth of the cells as declared."""
    n = 3000
    frame = make_people(n).with_columns(
        age=pl.Series([CELLS[i % len(CELLS)] for i in range(n)]),
        pay=pl.lit(2.5),
        age_matters=pl.lit("0"),
        pay_matters=pl.lit(None, pl.String),
    )
    spec = world(
        tmp_path,
        frame,
        attributes=[AGE, {**PAY, "quantiles": [0.5]}, {**BAND, "quantiles": [0.5]}],
        budget={"total": 30},
        numbers={"tau": 1.5, "importance": {"age": "age_matters", "pay": "pay_matters"}},
    )
    assert release(spec, tmp_path / "home").status == "published"
    with duckdb.connect(str(tmp_path / "home" / "results.duckdb"), read_only=True) as results:
        means = {row["attribute"]: row for row in results.sql("FROM means").pl().iter_rows(named=True)}
        shares = results.sql("SELECT unbiased_frequency, standard_error FROM histograms").fetchnumpy()
        quantiles = results.sql("FROM quantiles").pl()
    for name, truth in (("age", np.mean(CLIPPED)), ("pay", 2.5)):
        # Three statements of normal errors, three of shares: 6 standard errors.
        assert abs(means[name]["mean"] - truth) < 6 * means[name]["standard_error"], name
    exact = np.array([0.2, 0.6, 0.2])
    noise = np.maximum(shares["standard_error"], 1e-3)  # at this budget hardly a report is flipped
    assert (np.abs(shares["unbiased_frequency"] - exact) < 6 * noise).all()
    assert quantiles.select("quantile", "standard_error").null_count().sum_horizontal().item() == 0
    assert quantiles.filter(attribute="band")["quantile"].item() == pytest.approx(20 + 30 * 0.5, abs=1)
