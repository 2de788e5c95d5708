"""Binned numbers through the stages: the bins in the vault are those of the pure package, and the gate can fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from pldp.errors import SourceError
from pldp.expectations.runner import run_gates
from pldp.questions.histograms.gates import quantiles_usable
from pldp.questions.histograms.question import Histograms
from pldp.questions.histograms.spec import Binned
from pldp.questions.numbers.distribution import Distribution
from pldp.questions.numbers.quantiles import Quantile
from pldp.questions.numbers.tables import bin_rows, quantile_rows
from pldp.questions.tables import published_table
from pldp.tasks.combine import combine
from pldp.tasks.count import add_up, count
from pldp.tasks.ingest import ingest
from pldp.tasks.query import connect
from pldp.tasks.specfile import load_spec
from pldp.tasks.tables import frame, schema
from tests.people import JOBS, histograms_of, make_people, opened, world, write_spec
from tests.pldp.world import to_bins
from tests.tasks.conftest import Staged, drawn
from tests.tasks.test_numbers import CELLS

AGE: dict[str, Any] = {"name": "age", "kind": "binned", "edges": [18, 33.25, 50.5, 97.99999, 98], "missing": 50}


def stored(spec: Path, home: Path) -> list[int]:
    run, file = opened(spec, home)
    ingest.fn(run, file)
    with connect(run.vault, read_only=True) as vault:
        return sorted(row[0] for row in vault.execute("SELECT value_0 FROM people").fetchall())


@pytest.mark.parametrize("missing", [18, 50, 98])
def test_bins_are_those_of_the_pure_package(missing: float, tmp_path: Path) -> None:
    rows = "\n".join(f"{i},{cell},low" for i, cell in enumerate(CELLS))
    (tmp_path / "people.csv").write_text(f"id,age,level\n{rows}\n")
    spec = write_spec(
        tmp_path, source={"path": "people.csv", "user_id": "id"}, attributes=[{**AGE, "missing": missing}]
    )

    def number(cell: str) -> float:
        try:
            value = float(cell)
        except ValueError:
            return np.nan
        return value if np.isfinite(value) else np.nan

    expected = to_bins([number(cell) for cell in CELLS], AGE["edges"], missing)
    assert stored(spec, tmp_path / "home") == sorted(expected.tolist())


@pytest.mark.parametrize("bins", [2, 3, 256])
def test_every_edge_belongs_to_the_bin_above(bins: int, tmp_path: Path) -> None:
    """And its neighbouring doubles to where they lie: no arithmetic is done on a cell before it is compared."""
    attribute = {"name": "x", "kind": "binned", "bounds": [-0.7, 0.30000000000000004], "bins": bins}
    edges = np.array(Binned.model_validate(attribute).cuts)
    values = np.concatenate([edges, np.nextafter(edges, -9), np.nextafter(edges, 9), [-5.0, 5.0]])
    frame = pl.DataFrame({"id": [str(i) for i in range(values.size)], "x": values})
    spec = world(tmp_path, frame, attributes=[attribute], levels={"choices": {"all": 1}})
    assert stored(spec, tmp_path / "home") == sorted(to_bins(values, edges.tolist()).tolist())


@pytest.mark.parametrize("cell", ["", "zqSECRETqz", "nan", "inf"])
def test_without_a_missing_value_no_number_refuses_the_source(cell: str, tmp_path: Path) -> None:
    (tmp_path / "people.csv").write_text(f"id,age,level\n1,5,low\n2,{cell},low\n")
    attribute = {key: value for key, value in AGE.items() if key != "missing"}
    spec = write_spec(tmp_path, source={"path": "people.csv", "user_id": "id"}, attributes=[attribute])
    with pytest.raises(SourceError) as caught:
        stored(spec, tmp_path / "home")
    said = str(caught.value)
    assert "people.csv, readable row 2, column age: the cell holds no number" in said
    assert "add `missing: <a number within bounds>` to attribute age. Nothing was perturbed." in said
    assert "SECRET" not in said


def test_the_gate_can_fail(tmp_path: Path) -> None:
    (plan,) = load_spec(write_spec(tmp_path, attributes=[{**AGE, "quantiles": [0.25, 0.5]}])).plan.questions
    assert isinstance(plan, Histograms)
    good = tuple(Quantile(p, 40.0, 1.0, 38.0, 42.0) for p in (0.25, 0.5))
    four = np.full(4, 0.25)
    found = Distribution("age", "binned oc+", good, np.array(AGE["edges"]), four, four / 10, 100)

    def passes(*quantiles: Quantile) -> bool:
        (verdict,) = run_gates(
            (quantiles_usable(plan.attributes, quantile_rows((replace(found, quantiles=quantiles),))),)
        )
        return verdict.passed

    assert passes(*good)
    assert not passes(good[0])
    assert not passes(*good, good[0])
    assert not passes(good[0], replace(good[1], standard_error=0.0))
    assert not passes(good[0], replace(good[1], standard_error=np.inf))
    assert not passes(good[0], replace(good[1], quantile=np.nan))
    assert list(quantile_rows((found,))["method"]) == ["binned oc+"] * 2
    assert list(bin_rows((found,))["bin_high"]) == AGE["edges"][1:]


def test_tables_of_what_was_asked_for(staged: Staged, tmp_path: Path) -> None:
    """No means where nobody asked for one, no quantiles where there are none, and no bins of categories."""
    assert not {"means", "quantiles", "bins"} & set(staged.tables)
    # Jobs as numbers: 0 … 5.
    people = make_people(4000).with_columns(age=pl.col("job").replace_strict(dict(zip(JOBS, range(6), strict=True))))
    bare: dict[str, Any] = {"name": "age", "kind": "binned", "edges": [0, 1, 2, 3, 4, 5, 6]}
    for quantiles in ([], [0.5]):
        attributes = [{**bare, "quantiles": quantiles}]
        run, file = opened(world(tmp_path, people, attributes=attributes), tmp_path / "home", evaluation=True, seed=1)
        partitions = ingest.fn(run, file).partitions
        drawn(run, partitions)
        plan, tallies = histograms_of(run), add_up(count.fn(run, None, range(partitions)))
        estimates = {method: combine.fn(run, 0, method, tallies, partitions, None) for method in plan.methods}
        tables = plan.tables(plan.conclude(tallies, estimates))
        assert set(tables) == {"histograms", "estimates", "level_estimates", "quantiles", "bins"}
        for name, rows in tables.items():
            assert dict(frame(published_table(name), rows).schema) == schema(published_table(name).content)
        assert frame(published_table("quantiles"), tables["quantiles"]).height == len(quantiles)
        assert frame(published_table("bins"), tables["bins"]).height == 6
