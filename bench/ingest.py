"""Ingest alone at 1 M and 10 M users: time beside a bare scan of the same file, and memory above idle."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import duckdb

from bench.common import ROOT, Measure, publish
from bench.source import write_source, write_spec

USERS = (1_000_000, 10_000_000)
WARM_UP_USERS = 1_000
OLD_SECONDS = 10.3
"""Of 10 M users on two quiet cores, sorted into a database and dealt out from there (version 0.3 before this one)."""
SECONDS, MEMORY = 4.0, 250e6


def main(arguments: Sequence[str] = ()) -> bool:
    measures = []
    with tempfile.TemporaryDirectory(prefix="pldp-bench-") as name:
        folder = Path(name)
        for users in (WARM_UP_USERS, *USERS):
            write_source(folder / f"{users}.parquet", users)
            write_spec(folder / f"{users}.yaml", folder / f"{users}.parquet", users)
        for users in USERS:
            case = f"{users / 1_000_000:g} M users × 7 text columns: "
            command = [sys.executable, "-m", "bench.ingest", str(folder), str(users)]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
            cost = json.loads(done.stdout.splitlines()[-1])
            largest = users == USERS[-1]
            bound = (SECONDS, "≤") if largest else ()
            measures += [
                Measure(case + "ingest", cost["seconds"], " s", *bound),
                Measure(case + "CPU time", cost["cpu"], " s"),
                Measure(case + "beside a bare scan of the file", cost["seconds"] / cost["scan"], "×"),
                Measure(case + "peak memory above idle", cost["memory"], "B", MEMORY, "≤"),
            ]
    note = (
        f"Before, 10 M users took {OLD_SECONDS} s on two quiet cores. A fresh process each, which has ingested 1,000."
    )
    return publish("ingest", "Ingest", measures, note)


def measure(folder: Path, users: int) -> dict[str, float]:
    """Ingest once in this process, which has done a tiny one before."""
    from bench.scale_worker import Watch
    from pldp.tasks.home import Home
    from pldp.tasks.ingest import ingest
    from pldp.tasks.run import open_run
    from pldp.tasks.specfile import load_spec

    home = Home(folder / f"home-{users}").prepare()
    for size in (WARM_UP_USERS, users):
        file = load_spec(folder / f"{size}.yaml")
        run = open_run(home, file, "manual")
        watch, start = Watch(), time.perf_counter()
        ingest.fn(run, file)
        seconds = time.perf_counter() - start
        cpu = watch.end()
    start = time.perf_counter()
    with duckdb.connect(config={"threads": "2"}) as connection:
        rows = connection.read_parquet(str(folder / f"{users}.parquet"))
        rows.aggregate(
            [duckdb.FunctionExpression("max", duckdb.ColumnExpression(name)) for name in rows.columns]
        ).fetchall()
    scan = time.perf_counter() - start
    return {"seconds": seconds, "cpu": cpu, "memory": watch.peak - watch.idle, "scan": scan}


if __name__ == "__main__":
    print(json.dumps(measure(Path(sys.argv[1]), int(sys.argv[2]))))
