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

_PRELOAD = [
    "pldp.flows.cli",
    "pldp.flows.render",
    "pldp.flows.release",
    "pldp.flows.pipeline",
    "pldp.expectations.runner",
    "pldp.tasks.page",
    "tests.faults.dying",
]


@dataclass(frozen=True)
class Point:
    """Before or after the nth call of `module:name` whose arguments mention `given`."""

    where: str
    when: str
    nth: int = 1
    given: str = ""


def start(said: Path, *arguments: object, point: Point | None = None) -> BaseProcess:
    """Run the command line; what it says goes to a file."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOAD)
    process = context.Process(target=_command, args=(str(said), [str(word) for word in arguments], point))
    process.start()
    return process


def _command(said: str, arguments: Sequence[str], point: Point | None) -> None:
    descriptor = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    from pldp.flows.cli import main
    from pldp.tasks import ingest

    ingest.PARTITION_CELLS = SMALL_PARTITIONS
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
