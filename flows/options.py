"""What the commands share: options, consoles, and JSON for programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

out = Console()
err = Console(stderr=True)

ReleaseArgument = Annotated[str, typer.Argument(metavar="RELEASE", help="A release id, or a name: its newest release.")]
HomeOption = Annotated[Path, typer.Option("--home", envvar="PLDP_HOME", help="Where vault, reports and results live.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for a program to read.")]
DEFAULT_HOME = Path("data/home")


def print_json(content: Any) -> None:
    sys.stdout.write(json.dumps(content, default=str, allow_nan=False) + "\n")
