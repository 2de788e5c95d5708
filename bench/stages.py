"""When the stages of a flow began and ended, by what the flow reports: the same on threads and on a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable

WAITING = ("load", "start")
"""What is reported while libraries load and Prefect's server starts: no work."""


class Stages:
    """Listens to what a flow reports: stages begin at 0 and end when all pieces are done."""

    def __init__(self, workers: Callable[[], float] = lambda: 0.0) -> None:
        self.measured = workers
        self.first: float | None = None
        """When anything was reported first, in seconds of the system's clock."""
        self.begun: dict[str, tuple[float, float, float]] = {}
        self.seconds: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        """CPU seconds of this process, all threads."""
        self.workers: dict[str, float] = {}
        """CPU seconds of the worker processes."""

    def listen(self, stage: str, done: int, total: int) -> None:
        if self.first is None:
            self.first = time.time()
        now, spent, theirs = time.perf_counter(), time.process_time(), self.measured()
        began, had, they_had = self.begun.setdefault(stage, (now, spent, theirs))
        self.seconds[stage], self.cpu[stage], self.workers[stage] = now - began, spent - had, theirs - they_had

    @property
    def work(self) -> float:
        return sum(seconds for stage, seconds in self.seconds.items() if stage not in WAITING)
