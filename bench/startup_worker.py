"""A command in a process of its own that writes down when progress was shown first and how long stages took.

`python -m bench.startup_worker FILE COMMAND…` writes FILE: {"first": time, "work": seconds, "stages": {name: seconds}}.
"""

from __future__ import annotations

import atexit
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from bench.stages import Stages
from pldp.__main__ import command
from pldp.flows import progress


def run(path: Path, words: list[str]) -> None:
    """The command, as the console script runs it."""
    stages = Stages()

    @contextmanager
    def shown(console: Console) -> Iterator[None]:
        with progress.listening(stages.listen):
            yield

    progress.shown = shown
    atexit.register(_save, stages, path)
    sys.argv = ["pldp", *words]
    command()


def _save(stages: Stages, path: Path) -> None:
    path.write_text(json.dumps({"first": stages.first, "work": stages.work, "stages": stages.seconds}))


if __name__ == "__main__":
    run(Path(sys.argv[1]), sys.argv[2:])
