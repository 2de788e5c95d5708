"""The whole release at 1 M and 10 M users: time, memory and disk, beyond what an idle process needs."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.common import ROOT, Measure, publish
from bench.source import CELLS, SIZES, write_source, write_spec

WARM_UP_USERS = 1_000
USERS = (1_000_000, 10_000_000)
TIME_RATIO = 11.0
MEMORY_RATIO = 1.2


@dataclass(frozen=True)
class Cost:
    seconds: float
    start_up: float
    idle: int
    peak: int
    reports: int

    @property
    def above_idle(self) -> int:
        return self.peak - self.idle


def main() -> bool:
    with tempfile.TemporaryDirectory(prefix="pldp-bench-") as folder:
        small, large = (release(Path(folder), users) for users in USERS)
    measures = [Measure("start-up and a release of 1,000 users", small.start_up, " s")]
    for users, cost in zip(USERS, (small, large), strict=True):
        case = f"{users // 1_000_000} M users: "
        measures += [
            Measure(case + "time", cost.seconds, " s"),
            Measure(case + "memory of the idle process", cost.idle, "B"),
            Measure(case + "peak memory above idle", cost.above_idle, "B"),
            Measure(case + "reports on disk, per user and attribute", cost.reports / users / len(SIZES), " B"),
        ]
    measures += [
        Measure("time, 10 M / 1 M", large.seconds / small.seconds, "×", TIME_RATIO, "≤"),
        Measure("peak memory above idle, 10 M / 1 M", large.above_idle / small.above_idle, "×", MEMORY_RATIO, "≤"),
    ]
    note = (
        f"{len(SIZES)} attributes, {CELLS} values. A fresh process each, which first releases {WARM_UP_USERS:,} users: "
        "idle is what it holds then, with every library loaded, and the time is that of the second release alone."
    )
    return publish("scale", "Scale", measures, note)


def release(folder: Path, users: int) -> Cost:
    """Release a source of this many users in a fresh process with a home of its own."""
    specs = []
    for size in (WARM_UP_USERS, users):
        source, spec = folder / f"{size}.parquet", folder / f"{size}.yaml"
        if not source.exists():
            write_source(source, size)
        write_spec(spec, source, size)
        specs.append(str(spec))
    command = [sys.executable, "-m", "bench.scale_worker", str(folder / f"{users}-home"), *specs]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"the release of {users} users failed:\n{done.stderr[-4000:]}")
    return Cost(**json.loads(done.stdout.splitlines()[-1]))
