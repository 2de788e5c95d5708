"""Reports are columns of whole numbers: support can be recounted in plain SQL, by anybody who has the files."""

from __future__ import annotations

from pathlib import Path

import duckdb
import numpy as np
import polars as pl
import pytest

import pldp.tasks.ingest
from pldp.tasks.count import add_up, count
from pldp.tasks.ingest import ingest
from tests.people import LEVELS, histograms_of, opened, world
from tests.tasks.conftest import drawn

USERS = 400
TYPES = {
    ("krr", 2): {"report": "UTINYINT"},
    ("krr", 300): {"report": "USMALLINT"},
    ("krr", 1500): {"report": "USMALLINT"},
    ("bits", 2): {"report": "UTINYINT"},
    ("bits", 16): {"report": "USMALLINT"},
    ("bits", 64): {"report": "UBIGINT"},
    ("bits", 65): {"report_0": "UBIGINT", "report_1": "UBIGINT"},
    ("bits", 300): {f"report_{i}": "UBIGINT" for i in range(5)},
    ("bits", 1500): {"report": "UBIGINT[]"},
}
"""What DuckDB makes of the columns, by what a report is and how many values there are."""


def recounted(files: str, mechanism: str, k: int) -> tuple[int, list[int], dict[str, str]]:
    """How many reports there are, how many support each value, and the columns: of Parquet files, by SQL alone."""
    source = f"read_parquet('{files}', hive_partitioning = false)"
    with duckdb.connect() as connection:
        described = connection.execute(f"SELECT column_name, column_type FROM (DESCRIBE FROM {source})")  # noqa: S608
        columns = dict(described.fetchall())
        (n_reports,) = connection.execute(f"SELECT count(*) FROM {source}").fetchall()[0]  # noqa: S608
        words = "report" if "[" in columns.get("report", "") else f"[{', '.join(columns)}]"
        supports = "words[1] = j" if mechanism == "krr" else "((words[j // 64 + 1]::UBIGINT >> (j % 64)) & 1) = 1"
        counted = connection.execute(
            f"SELECT count(*) FILTER ({supports}) FROM (SELECT {words} AS words FROM {source}), range({k}) AS of(j) "  # noqa: S608
            "GROUP BY j ORDER BY j"
        )
        return n_reports, [row[0] for row in counted.fetchall()], columns


@pytest.mark.parametrize("k", [2, 16, 64, 65, 300, 1500])
@pytest.mark.parametrize("mechanism", ["krr", "brr", "oue", "subset"])
def test_support_is_recounted_in_sql(mechanism: str, k: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pldp.tasks.ingest, "PARTITION_CELLS", USERS * k // 2)
    rng, values = np.random.default_rng(k), [f"v{i}" for i in range(k)]
    people = pl.DataFrame(
        {
            "id": [f"user-{i}" for i in range(USERS)],
            "x": np.array(values)[np.minimum(rng.geometric(0.05, USERS) - 1, k - 1)],
            "level": rng.choice(LEVELS, USERS),
        }
    )
    spec = world(tmp_path, people, attributes=[{"name": "x", "values": values}], mechanism=mechanism)
    run, file = opened(spec, tmp_path / "home")
    partitions = ingest.fn(run, file).partitions
    assert partitions > 1
    drawn(run, partitions)
    tallies = add_up(count.fn(run, None, range(partitions)))
    expected = TYPES.get(("krr" if mechanism == "krr" else "bits", k))
    assert len(tallies) == len(histograms_of(run).levels)
    for path, tally in tallies.items():
        n_reports, support, columns = recounted(f"{run.reports / path}/*.parquet", mechanism, k)
        assert n_reports == tally.n_reports > 0
        assert support == tally.support[0].tolist()
        assert expected is None or columns == expected
        if mechanism == "krr":
            assert sum(support) == n_reports, "every report is one value"
