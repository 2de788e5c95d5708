"""What privacy costs: the whole release of 10 M users against a plain GROUP BY of the same columns."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

import duckdb

from bench.common import Measure, publish
from bench.scale import release
from bench.source import CELLS, write_source

USERS = 10_000_000
ROUNDS = 7
MOST = 40.0
"""Times a plain GROUP BY that the whole release may take."""
QUERY = Path(__file__).with_suffix(".sql")


def main() -> bool:
    with tempfile.TemporaryDirectory(prefix="pldp-bench-") as name:
        folder = Path(name)
        source = folder / f"{USERS}.parquet"
        write_source(source, USERS)
        before = _group_by(source)
        cost = release(folder, USERS)
        plain = median([*before, *_group_by(source)])
    measures = [
        Measure("plain GROUP BY of five columns", 1000 * plain, " ms"),
        Measure("whole release, after start-up", cost.seconds, " s"),
        Measure("whole release / GROUP BY", cost.seconds / plain, "×", MOST, "≤"),
    ]
    note = f"{USERS:,} users, wall time, all cores; the GROUP BY runs before and after the release."
    return publish("groupby", "Release against a plain GROUP BY", measures, note)


def _group_by(source: Path) -> list[float]:
    query = QUERY.read_text()
    taken = []
    with duckdb.connect() as connection:
        for _ in range(ROUNDS):
            start = time.perf_counter()
            rows = connection.execute(query, {"source": str(source)}).fetchall()
            taken.append(time.perf_counter() - start)
            assert len(rows) == CELLS
    return taken
