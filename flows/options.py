"""What the commands share: options, consoles, and JSON for programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from pldp.tasks.terminal import SafeConsole

out = SafeConsole()
err = SafeConsole(stderr=True)

ReleaseArgument = Annotated[str, typer.Argument(metavar="RELEASE", help="A release id, or a name: its newest release.")]
HomeOption = Annotated[Path, typer.Option("--home", envvar="PLDP_HOME", help="Where vault, reports and results live.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
RunnerOption = Annotated[
    str | None,
    typer.Option("--runner", help="threads; dask, a local cluster; or a scheduler's address, tcp://host:port."),
]
WorkersOption = Annotated[int | None, typer.Option("--workers", help="Processes of a local cluster.")]
MemoryOption = Annotated[str | None, typer.Option("--memory", help="What a process may hold, such as 2 GB.")]
DEFAULT_HOME = Path("data/home")


def given_runner(runner: str | None, workers: int | None, memory: str | None) -> dict[str, str | int | None]:
    """What the command line says of the runner, under the keys of the spec, which it overrules."""
    place = {} if runner is None else {"dask": {"threads": None, "dask": "local"}.get(runner, runner)}
    return place | {key: value for key, value in (("workers", workers), ("memory", memory)) if value is not None}


def print_json(content: Any) -> None:
    """Print what --json answers, on one line; NaN is an error, as no other program would read it."""
    sys.stdout.write(json.dumps(content, default=str, allow_nan=False) + "\n")


def say(label: str, style: str, message: str) -> None:
    """One message to whoever runs the command, beside the answer."""
    err.print(Text.assemble((label, style), f" {message}"), soft_wrap=True)
