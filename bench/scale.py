"""The whole release at 1 M, 10 M and 100 M users: time, memory and disk, beyond what an idle process needs."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.common import ROOT, Measure, publish
from bench.source import CELLS, SIZES, write_source, write_spec
from pldp.flows.sample import write_sample

WARM_UP_USERS = 1_000
USERS = (1_000_000, 10_000_000)
MANY = 100_000_000
TIME_RATIO = 11.0
MEMORY_RATIO = 1.2
"""The most that ten times the users may take, from so many on as fill what is held at a time."""
SECONDS = {100_000_000: 140.0}
"""The most that a release may take after start-up."""
BEYOND = {10_000_000: 8.0}
"""The most that it may take beyond a release of the sample's 100,000 users in the same process."""
BUSY = 85.0
"""% of all cores that perturbing keeps busy."""
MEMORY = 250e6
SHARED = ("ingest", "perturb", "count")
"""Stages that workers share."""
STAGE, STAGE_CPU = "stage ", "CPU time of stage "


@dataclass(frozen=True)
class Cost:
    seconds: float
    start_up: float
    idle: int
    peak: int
    reports: int
    cpu: float = 0.0
    held: int = 0
    """Bytes above idle below which it stays three quarters of the time: beside it a peak, the most of so many samples,
    varies much."""
    worker_peak: int = 0
    """Of the largest worker process, where there are any."""
    vault: int = 0
    """Bytes of the vault and its partitions when all is counted."""
    staged: float = 0.0
    """Seconds in which any stage's function ran; the rest is orchestration."""
    stages: dict[str, float] = field(default_factory=dict)
    """Seconds from a stage's first report of progress to its last."""
    stage_cpu: dict[str, float] = field(default_factory=dict)
    """CPU seconds of the command in them."""
    stage_workers: dict[str, float] = field(default_factory=dict)
    """CPU seconds of worker processes in them."""
    sample: float = 0.0
    """Seconds of a release of the sample, where one was asked for."""

    @property
    def above_idle(self) -> int:
        return self.peak - self.idle

    @property
    def idle_seconds(self) -> float:
        """In which no stage ran."""
        return self.seconds - self.staged

    @property
    def shared(self) -> float:
        """Seconds of the stages that workers share."""
        return sum(self.stages[stage] for stage in SHARED)

    @property
    def commands(self) -> float:
        """CPU seconds of the command in them."""
        return sum(self.stage_cpu[stage] for stage in SHARED)

    @property
    def workers(self) -> float:
        """CPU seconds of all workers in them."""
        return sum(self.stage_workers[stage] for stage in SHARED)

    @property
    def busy(self) -> float:
        """% of all cores, while perturbing on threads."""
        return 100 * self.stage_cpu["perturb"] / self.stages["perturb"] / (os.cpu_count() or 1)


def main(arguments: Sequence[str] = ()) -> bool:
    parser = argparse.ArgumentParser(prog="python -m bench scale")
    parser.add_argument("--users", type=int, nargs="+", default=[*USERS, MANY], help="how many; all sizes if not given")
    sizes = sorted(parser.parse_args(arguments).users)
    costs = {}
    for users in sizes:
        with tempfile.TemporaryDirectory(prefix="pldp-bench-") as folder:
            costs[users] = release(Path(folder), users, sample=write_sample(Path(folder) / "sample")[0])
    measures = [Measure("start-up and a release of 1,000 users", costs[sizes[0]].start_up, " s")]
    for users, cost in costs.items():
        case = f"{users / 1_000_000:g} M users: "
        measures += [
            Measure(case + "time", cost.seconds, " s", SECONDS.get(users), "≤"),
            Measure(case + "time beyond the sample's", cost.seconds - cost.sample, " s", BEYOND.get(users), "≤"),
            Measure(case + "cores busy while perturbing", cost.busy, " %", BUSY if users > min(USERS) else None),
            Measure(case + "CPU time", cost.cpu, " s"),
            Measure(case + "memory of the idle process", cost.idle, "B"),
            Measure(case + "peak memory above idle", cost.above_idle, "B", MEMORY, "≤"),
            Measure(case + "vault and partitions on disk, per user", cost.vault / users, " B"),
            Measure(case + "reports on disk, per user and attribute", cost.reports / users / len(SIZES), " B"),
            Measure(case + "time in which no stage ran", cost.idle_seconds, " s"),
            *(Measure(f"{case}{STAGE}{stage}", seconds, " s") for stage, seconds in cost.stages.items()),
            *(Measure(f"{case}{STAGE_CPU}{stage}", seconds, " s") for stage, seconds in cost.stage_cpu.items()),
        ]
    for small, large in itertools.pairwise(sizes):
        case = f", {large / 1_000_000:g} M / {small / 1_000_000:g} M"
        a, b, scale = costs[small], costs[large], large / small / 10
        measures += [
            Measure("time" + case, b.seconds / a.seconds, "×", TIME_RATIO * scale, "≤"),
            Measure("CPU time" + case, b.cpu / a.cpu, "×"),
            Measure(
                "peak memory above idle" + case,
                b.above_idle / a.above_idle,
                "×",
                MEMORY_RATIO if small > min(USERS) else None,
                "≤",
            ),
        ]
    note = (
        f"{len(SIZES)} attributes, {CELLS} values. A fresh process each, which first releases {WARM_UP_USERS:,} users: "
        "idle is what it holds then, with every library loaded, and the time is that of the second release alone. The "
        "sample is released after it."
    )
    return publish("scale", "Scale", measures, note)


def release(
    folder: Path,
    users: int,
    people: Callable[[Path, int], None] = write_source,
    declare: Callable[[Path, Path, int], None] = write_spec,
    runner: dict[str, Any] | None = None,
    sample: Path | None = None,
) -> Cost:
    """Release a source of this many users in a fresh process with a home of its own."""
    specs = []
    for size in (WARM_UP_USERS, users):
        source, spec = folder / f"{size}.parquet", folder / f"{size}.yaml"
        if not source.exists():
            people(source, size)
        declare(spec, source, size)
        specs.append(str(spec))
    with tempfile.TemporaryDirectory(prefix="home-", dir=folder) as home:
        command = [sys.executable, "-m", "bench.scale_worker", home, *specs, json.dumps(runner)]
        command += [] if sample is None else [str(sample)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the release of {users} users failed:\n{done.stderr[-4000:]}")
    return Cost(**json.loads(done.stdout.splitlines()[-1]))
