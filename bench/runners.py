"""The same release of 10 M users on threads and on a local Dask cluster of one and of two worker processes."""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.common import Measure, publish
from bench.scale import release

USERS = 10_000_000
ORCHESTRATION = 10.0
FASTER = 1.6
"""Times as fast as one worker two are, in what they share."""
CASES = {
    "threads": None,
    "Dask, one worker": {"dask": "local", "workers": 1},
    "Dask, two workers": {"dask": "local", "workers": 2},
}


def main(arguments: Sequence[str] = ()) -> bool:
    parser = argparse.ArgumentParser(prog="python -m bench runners")
    parser.add_argument("--users", type=int, default=USERS)
    users = parser.parse_args(arguments).users
    with tempfile.TemporaryDirectory(prefix="pldp-bench-") as folder:
        costs = {name: release(Path(folder), users, runner=runner) for name, runner in CASES.items()}
    measures = []
    for name, cost in costs.items():
        measures += [
            Measure(f"{name}: time", cost.seconds, " s"),
            Measure(f"{name}: ingest, perturb and count", cost.shared, " s"),
            Measure(f"{name}: CPU time, all processes", cost.cpu, " s"),
            Measure(f"{name}: peak memory of the command", cost.peak, "B"),
        ]
        if cost.worker_peak:
            measures.append(Measure(f"{name}: peak memory of a worker", cost.worker_peak, "B"))
    here, one, two = costs.values()
    measures += [
        Measure("two workers against one, whole release", one.seconds / two.seconds, "×"),
        Measure("two workers against one, ingest, perturb and count", one.shared / two.shared, "×", FASTER),
        Measure("threads against two workers, whole release", two.seconds / here.seconds, "×"),
        Measure("CPU time, two workers / threads", two.cpu / here.cpu, "×"),
        Measure("threads: time in which no stage ran", 100 * here.orchestration, " %", ORCHESTRATION, "≤"),
        Measure("two workers: time in which no stage ran", 100 * two.orchestration, " %", ORCHESTRATION, "≤"),
    ]
    note = f"{users:,} users, five attributes, 75 values. Workers have one thread each. Workers share ingest."
    return publish("runners", "Threads and Dask", measures, note)
