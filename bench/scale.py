"""The whole release through the command line: time, memory and disk at 1 M and 10 M users."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from bench.common import ROOT, Measure, publish
from bench.source import CELLS, SIZES, write_source, write_spec

IDLE_USERS = 1_000
USERS = (1_000_000, 10_000_000)
INTERVAL = 0.02
TIME_RATIO = 11.0
MEMORY_RATIO = 1.2


@dataclass(frozen=True)
class Cost:
    """What one release took. Prefect's temporary server is a child process and counted apart."""

    seconds: float
    peak: int
    children_peak: int
    disk: int


def main() -> bool:
    with tempfile.TemporaryDirectory(prefix="pldp-bench-") as folder:
        idle, small, large = (release(Path(folder), users) for users in (IDLE_USERS, *USERS))
    measures = []
    for users, cost in zip(USERS, (small, large), strict=True):
        case = f"{users // 1_000_000} M users: "
        measures += [
            Measure(case + "time", cost.seconds, " s"),
            Measure(case + "time beyond a release of 1,000", cost.seconds - idle.seconds, " s"),
            Measure(case + "peak memory", cost.peak, "B"),
            Measure(case + "peak memory above idle", cost.peak - idle.peak, "B"),
            Measure(case + "peak memory of the server (child)", cost.children_peak, "B"),
            Measure(case + "left on disk", cost.disk, "B"),
        ]
    measures += [
        Measure("1,000 users: time", idle.seconds, " s"),
        Measure("1,000 users: peak memory (idle)", idle.peak, "B"),
        Measure("time, 10 M / 1 M", large.seconds / small.seconds, "×", TIME_RATIO, "≤"),
        Measure(
            "time beyond start-up, 10 M / 1 M", _ratio(large.seconds - idle.seconds, small.seconds - idle.seconds), "×"
        ),
        Measure(
            "peak memory above idle, 10 M / 1 M",
            _ratio(large.peak - idle.peak, small.peak - idle.peak),
            "×",
            MEMORY_RATIO,
            "≤",
        ),
    ]
    note = (
        f"{len(SIZES)} attributes, {CELLS} values, wall time of the whole command. Memory is the resident set of the "
        f"release's own process, sampled every {1000 * INTERVAL:.0f} ms; idle is its peak in a release of 1,000 users."
    )
    return publish("scale", "Scale", measures, note)


def release(folder: Path, users: int) -> Cost:
    """Make a source of this many users, release it in a home of its own, and watch."""
    source, spec, home, log = (folder / f"{users}{end}" for end in (".parquet", ".yaml", "-home", ".log"))
    if not source.exists():
        write_source(source, users)
    write_spec(spec, source, users)
    start = time.perf_counter()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*_command(), "release", str(spec), "--home", str(home)],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        peak, children_peak = _watch(process)
    seconds = time.perf_counter() - start
    if process.returncode != 0:
        raise RuntimeError(f"the release of {users} users failed:\n{log.read_text(errors='replace')[-4000:]}")
    disk = sum(path.stat().st_size for path in home.rglob("*") if path.is_file() and not path.is_symlink())
    return Cost(seconds, peak, children_peak, disk)


def _command() -> list[str]:
    """The installed command, or the module where the project is not installed."""
    installed = Path(sys.executable).with_name("pldp")
    return [str(installed)] if installed.exists() else [sys.executable, "-m", "flows.cli"]


def _watch(process: subprocess.Popen[bytes]) -> tuple[int, int]:
    """Peak resident bytes of the process, and of its children together, until it ends."""
    peak = children_peak = 0
    watched = psutil.Process(process.pid)
    while process.poll() is None:
        peak = max(peak, _resident(watched))
        try:
            children = watched.children(recursive=True)
        except psutil.Error:
            children = []
        children_peak = max(children_peak, sum(_resident(child) for child in children))
        time.sleep(INTERVAL)
    return peak, children_peak


def _resident(process: psutil.Process) -> int:
    try:
        return int(process.memory_info().rss)
    except psutil.Error:  # ended between two looks
        return 0


def _ratio(large: float, small: float) -> float:
    """A small release may vanish in the noise of the idle one; then no ratio can be claimed."""
    return large / small if small > 0 else float("inf")
