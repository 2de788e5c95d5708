"""The same release of 10 M users on threads and on a local Dask cluster of one and of two worker processes.

Runs take turns, and of each kind the fastest counts: whatever else a machine does makes runs slower, never faster.
CPU times tell on a busy machine too whether workers do more work for being more, and how idle the command is.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bench.common import Measure, publish
from bench.scale import SHARED, Cost, release

USERS, FEW_USERS = 10_000_000, 1_000_000
TURNS = 2
ORCHESTRATION = 1.0
"""Seconds in which no stage may run: what a flow, its task runs and a cluster's start take does not grow with the data,
so it is no share of a time that does."""
FASTER = 1.6
"""Times as fast as one worker two are, in what they share."""
MORE_WORK = 1.1
"""Times the CPU time of one worker that two may take together for the same shares."""
GROWS = 5.0
"""Times the CPU time of the command in shared stages at a tenth of the users: calls, of which there are at most 16 per
stage and level, and no data."""
CASES = {
    "threads": None,
    "Dask, one worker": {"dask": "local", "workers": 1},
    "Dask, two workers": {"dask": "local", "workers": 2},
}


def main(arguments: Sequence[str] = ()) -> bool:
    parser = argparse.ArgumentParser(prog="python -m bench runners")
    parser.add_argument("--users", type=int, default=USERS)
    parser.add_argument("--turns", type=int, default=TURNS, help="runs of each kind, which take turns")
    chosen = parser.parse_args(arguments)
    runs: dict[str, list[Cost]] = {name: [] for name in CASES}
    with tempfile.TemporaryDirectory(prefix="pldp-bench-") as folder:
        for _ in range(chosen.turns):
            for name, runner in CASES.items():
                runs[name].append(release(Path(folder), chosen.users, runner=runner))
        few = release(Path(folder), FEW_USERS, runner=CASES["Dask, two workers"])
    fastest = {name: min(costs, key=lambda cost: cost.shared) for name, costs in runs.items()}
    measures = [measure for name, cost in fastest.items() for measure in _stages(name, cost)]
    here, one, two = fastest.values()
    measures += [
        Measure("two workers against one, whole release", one.seconds / two.seconds, "×"),
        Measure("two workers against one, ingest, perturb and count", one.shared / two.shared, "×", FASTER),
        Measure("CPU time of workers in them, two / one", two.workers / one.workers, "×", MORE_WORK, "≤"),
        Measure("CPU time of the command in them, 10 M / 1 M users", two.commands / few.commands, "×", GROWS, "≤"),
        Measure("threads against two workers, whole release", two.seconds / here.seconds, "×"),
        Measure("CPU time, two workers / threads", two.cpu / here.cpu, "×"),
        Measure("threads: time in which no stage ran", here.idle_seconds, " s", ORCHESTRATION, "≤"),
        Measure("two workers: time in which no stage ran", two.idle_seconds, " s", ORCHESTRATION, "≤"),
    ]
    note = (
        f"{chosen.users:,} users, five attributes, 75 values. Workers have one thread and one core each, and share "
        f"ingest. The fastest of {chosen.turns} runs each, which took turns."
    )
    return publish("runners", "Threads and Dask", measures, note)


def _stages(name: str, cost: Cost) -> list[Measure]:
    """What a run took, and where."""
    measures = [
        Measure(f"{name}: time", cost.seconds, " s"),
        Measure(f"{name}: ingest, perturb and count", cost.shared, " s"),
        *(Measure(f"{name}: {stage}", cost.stages[stage], " s") for stage in SHARED),
        Measure(f"{name}: CPU time, all processes", cost.cpu, " s"),
        Measure(f"{name}: CPU time of the command in them", cost.commands, " s"),
        Measure(f"{name}: peak memory of the command", cost.peak, "B"),
    ]
    if cost.worker_peak:
        measures += [
            Measure(f"{name}: start of the workers", cost.stages["workers"], " s"),
            Measure(f"{name}: CPU time of workers in them", cost.workers, " s"),
            Measure(f"{name}: peak memory of a worker", cost.worker_peak, "B"),
        ]
    return measures
