"""One release in a process that has already done a tiny one, watched from inside. Run by bench.scale.

Where a sample's spec is given too, it is released last: before, it would leave memory behind that hides the release's.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil

from bench.stages import Stages

INTERVAL = 0.05
LISTING = 5
"""Samples between two looks for new workers, which read the whole table of processes."""
Ran = defaultdict[str, list[tuple[float, float]]]
"""When a stage's function began and ended, by its name."""


class Watch:
    """Memory and CPU of this process and of the workers it starts, sampled; and when any stage's function ran."""

    def __init__(self) -> None:
        self.me = psutil.Process()
        self.idle = self.peak = self.me.memory_info().rss
        self.held: list[int] = []
        self.worker_peak = 0
        self.began = self._seconds(self.me)
        self.workers: dict[int, float] = {}
        self.known: list[psutil.Process] = []
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self._sample, daemon=True)
        self.thread.start()

    def _seconds(self, process: psutil.Process) -> float:
        times = process.cpu_times()
        return float(times.user + times.system)

    def _sample(self) -> None:
        for sample in itertools.count():
            if self.stop.wait(INTERVAL):
                return
            self.held.append(self.me.memory_info().rss)
            self.peak = max(self.peak, self.held[-1])
            if sample % LISTING == 0:
                self.known = [child for child in self.me.children(recursive=True) if _is_worker(child)]
                for number, worker in enumerate(self.known):
                    _keep_to_a_core(worker, number)
            self.worker_seconds()

    def worker_seconds(self) -> float:
        """CPU seconds of all workers until now, those that have ended included."""
        for worker in self.known:
            with suppress(psutil.Error):  # it has just ended
                self.worker_peak = max(self.worker_peak, worker.memory_info().rss)
                self.workers[worker.pid] = self._seconds(worker)
        return sum(self.workers.values())

    def end(self) -> float:
        """CPU seconds of all together."""
        self.stop.set()
        self.thread.join()
        return self._seconds(self.me) - self.began + sum(self.workers.values())


def _is_worker(process: psutil.Process) -> bool:
    try:
        return any("spawn_main" in word for word in process.cmdline())
    except psutil.Error:
        return False


def _keep_to_a_core(worker: psutil.Process, number: int) -> None:
    """A worker has one core, as where every core has one: else one alone would write its files on another core."""
    core = sorted(os.sched_getaffinity(0))[number % len(os.sched_getaffinity(0))]
    with suppress(OSError):  # it, or a thread of it, has just ended
        for thread in Path(f"/proc/{worker.pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), {core})


def main() -> None:
    home, tiny, spec = (Path(argument).resolve() for argument in sys.argv[1:4])
    runner = json.loads(sys.argv[4]) if len(sys.argv) > 4 else None
    sample = Path(sys.argv[5]).resolve() if len(sys.argv) > 5 else None
    from pldp.tasks.home import Home
    from pldp.tasks.settings import settle

    Home(home).prepare()
    settle(home)
    from pldp.tasks import stage

    ran: Ran = defaultdict(list)
    stage.guarded = functools.partial(_timed, stage.guarded, ran)
    import pldp.flows.release as flow
    from pldp.flows.progress import listening
    from pldp.tasks.vaults import forget_vault

    vault = 0

    def measured(run: Any, file: Any, status: str) -> None:
        nonlocal vault
        vault = _size(run.vault.parent)
        forget_vault(run, file, status)

    patch.object(flow, "forget_vault", measured).start()  # where it is used
    started = time.perf_counter()
    flow.release(tiny, home)  # imports every library and starts Prefect's server
    start_up = time.perf_counter() - started
    ran.clear()
    watch = Watch()
    stages = Stages(watch.worker_seconds)
    started = time.perf_counter()
    with listening(stages.listen):
        done = flow.release(spec, home, runner=runner)
    seconds = time.perf_counter() - started
    cpu = watch.end()
    if done.status != "published" or done.resumed:
        raise RuntimeError(f"the release was {done.status}")
    cost = {
        "seconds": seconds,
        "cpu": cpu,
        "start_up": start_up,
        "idle": watch.idle,
        "peak": watch.peak,
        "held": sorted(watch.held)[len(watch.held) * 3 // 4] - watch.idle,
        "worker_peak": watch.worker_peak,
        "reports": _size(home / "reports" / done.release_id),
        "vault": vault,
        "staged": _covered(ran.values()),
        "stages": stages.seconds,
        "stage_cpu": stages.cpu,
        "stage_workers": stages.workers,
    }
    if sample is not None:
        started = time.perf_counter()
        flow.release(sample, home)
        cost["sample"] = time.perf_counter() - started
    print(json.dumps(cost))


def _timed(guarded: Callable[..., Any], ran: Ran, function: Callable[..., Any]) -> Any:
    shell = guarded(function)

    @functools.wraps(function)
    def timed(*args: Any, **kwargs: Any) -> Any:
        start = time.perf_counter()
        try:
            return shell(*args, **kwargs)
        finally:
            ran[function.__name__].append((start, time.perf_counter()))

    return timed


def _covered(intervals: Iterable[list[tuple[float, float]]]) -> float:
    """Seconds in which at least one was under way."""
    total, until = 0.0, 0.0
    for start, stop in sorted(itertools.chain(*intervals)):
        total += max(0.0, stop - max(start, until))
        until = max(until, stop)
    return total


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


if __name__ == "__main__":
    main()
