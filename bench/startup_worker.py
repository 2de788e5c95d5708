"""A command in a process of its own that writes down for how long a stage was under way.

`python -m bench.startup_worker FILE COMMAND…` writes FILE: {"work": seconds, "stages": {name: seconds}}.
"""

from __future__ import annotations

import atexit
import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from pldp.flows import progress
from pldp.flows.cli import main

WAITING = "start"
"""What a flow reports while it waits for Prefect's server: no work."""


class Stages:
    """Listens to what a flow reports: stages begin at 0 and end when all pieces are done."""

    def __init__(self) -> None:
        self.begun: dict[str, float] = {}
        self.seconds: dict[str, float] = {}

    def listen(self, stage: str, done: int, total: int) -> None:
        now = time.perf_counter()
        self.begun.setdefault(stage, now)
        self.seconds[stage] = now - self.begun[stage]

    def save(self, path: Path) -> None:
        work = sum(seconds for stage, seconds in self.seconds.items() if stage != WAITING)
        path.write_text(json.dumps({"work": work, "stages": self.seconds}))


def run(path: Path, words: list[str]) -> None:
    """The command, as the console script runs it."""
    stages = Stages()

    @contextmanager
    def shown(console: Console) -> Iterator[None]:
        with progress.listening(stages.listen):
            yield

    progress.shown = shown
    atexit.register(stages.save, path)
    sys.argv = ["pldp", *words]
    main()


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2:])
