"""People's own quantiles of binned numbers: an evaluation's vault knows the numbers, a release's only the bins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from pldp.flows.pipeline import everybody
from pldp.questions.histograms.evaluate import true_histograms
from pldp.tasks.ingest import ingest
from pldp.tasks.query import connect
from tests.people import histograms_of, opened, world

AGE = {"name": "age", "kind": "binned", "edges": [18, 33.25, 50.5, 98], "quantiles": [0.1, 0.5, 0.9], "missing": 50}


def test_only_an_evaluation_knows_the_numbers_behind_bins(tmp_path: Path) -> None:
    ages = np.concatenate([np.full(300, 33.25), np.linspace(34, 60, 650), np.full(50, 120.0)])
    frame = pl.DataFrame({"id": [str(i) for i in range(ages.size)], "age": ages})
    other = {**AGE, "name": "coarse", "column": "age", "quantiles": []}
    spec = world(tmp_path, frame, attributes=[other, AGE], levels={"choices": {"all": 1}})
    run, file = opened(spec, tmp_path / "home", evaluation=True, seed=1)
    ingested = ingest.fn(run, file)
    truth = true_histograms(histograms_of(run), everybody(run, ingested))
    own = np.sort(np.clip(ages, 18, 98))[[99, 499, 899]]
    assert list(truth.quantiles.values()) == pytest.approx(own.tolist(), abs=1e-6)
    assert truth.quantiles["age", 0.1] >= 33.25, "an edge belongs to the bin above, however codes are rounded"
    released, file = opened(spec, tmp_path / "home")
    ingest.fn(released, file)
    columns = []
    for one in (run, released):
        with connect(one.vault, read_only=True) as vault:
            columns.append([row[0] for row in vault.execute("DESCRIBE people").fetchall()])
    assert "exact_1" in columns[0]
    assert "exact_0" not in columns[0], "nobody asked for quantiles of it"
    assert not [name for name in columns[1] if name.startswith("exact")]
