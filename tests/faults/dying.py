"""A `pldp` command in a process of its own that dies where it is told to.

Processes are forked from one that has imported everything, so that a start takes no seconds.
"""

from __future__ import annotations

import importlib
import itertools
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NoReturn

SMALL_PARTITIONS = 1 << 12
"""Cells a partition: people of 2000 make four of histograms, and so 24 report files."""


@dataclass(frozen=True)
class Point:
    """Before or after the nth call of `module:name` whose arguments mention `given`."""

    where: str
    when: str
    nth: int = 1
    given: str = ""


def start(
    said: Path,
    *arguments: object,
    point: Point | None = None,
    folder: Path | None = None,
    errors: Path | None = None,
    cells: int = SMALL_PARTITIONS,
) -> BaseProcess:
    """Run the command line, in a folder, with so many cells in a partition; what it says goes to a file, its errors too
    if no other is named for them."""
    known = "PREFECT_API_URL" in os.environ or arguments[0] == "collect"  # which asks no server
    assert known, "processes have the environment of the first: use the fixture server"
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.faults.preloaded"])
    words = [str(word) for word in arguments]
    files = (said, errors or said)
    process = context.Process(target=_command, args=(files, words, point, folder, cells))
    process.start()
    return process


def _command(
    files: tuple[Path, Path], arguments: Sequence[str], point: Point | None, folder: Path | None, cells: int
) -> None:
    if folder is not None:
        os.chdir(folder)
    for descriptor, file in zip((1, 2), files, strict=True):
        os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND), descriptor)
    import prefect.events.utilities

    from pldp.flows.cli import main
    from pldp.tasks import ingest

    events = prefect.events.utilities
    events.should_emit_events = lambda: False  # type: ignore[attr-defined]  # of every task, for a page that nobody looks at
    ingest.PARTITION_CELLS = cells
    if point is not None:
        _arm(point)
    sys.argv = ["pldp", *arguments]
    main()


def _die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives this")


def _arm(point: Point) -> None:
    module, _, names = point.where.partition(":")
    *owners, name = names.split(".")
    owner: Any = importlib.import_module(module)
    for part in owners:
        owner = getattr(owner, part)
    target = getattr(owner, name)
    calls = itertools.count(1)

    def deadly(call: Callable[..., Any]) -> Callable[..., Any]:
        def shell(*args: Any, **kwargs: Any) -> Any:
            mine = point.given in str(args) and next(calls) == point.nth
            if mine and point.when == "before":
                _die()
            found = call(*args, **kwargs)
            if mine:
                _die()
            return found

        return shell

    setattr(owner, name, deadly(target))
