"""When the stages of a flow began and ended, by what the flow reports: the same on threads and on a cluster."""

from __future__ import annotations

import time

WAITING = "start"
"""What a flow reports while it waits for Prefect's server: no work."""


class Stages:
    """Listens to what a flow reports: stages begin at 0 and end when all pieces are done."""

    def __init__(self) -> None:
        self.first: float | None = None
        """When anything was reported first, in seconds of the system's clock."""
        self.begun: dict[str, tuple[float, float]] = {}
        self.seconds: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        """CPU seconds of this process, all threads."""

    def listen(self, stage: str, done: int, total: int) -> None:
        if self.first is None:
            self.first = time.time()
        now, spent = time.perf_counter(), time.process_time()
        began, had = self.begun.setdefault(stage, (now, spent))
        self.seconds[stage], self.cpu[stage] = now - began, spent - had

    @property
    def work(self) -> float:
        return sum(seconds for stage, seconds in self.seconds.items() if stage != WAITING)
