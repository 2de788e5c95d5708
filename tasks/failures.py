"""What is told when a scheduled run does not publish: a line in the home, and the operator's own command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass

from pldp.errors import PldpError
from pldp.tasks.home import Home
from pldp.tasks.lines import append, entries
from pldp.tasks.terminal import visible

COMMAND = "PLDP_ON_FAILURE"
"""The operator's command travels in the environment: as a flow's parameter, whoever reaches the server could set it."""

FOLDER = "PLDP_FOLDER"
"""Where serve was started: its command runs there, while runs have a folder of their own."""

COMMAND_SECONDS = 60


@dataclass(frozen=True)
class Failure:
    """One run that ended badly. Names, paths and our own words; never data."""

    run: str
    spec: str
    slot: str
    at: str
    error: str
    message: str
    resume: str


def say(message: str) -> None:
    """A line for the log of whoever serves."""
    print(visible(message), file=sys.stderr, flush=True)


def describe(cause: object) -> tuple[str, str]:
    """The class of what went wrong, and our message. A foreign exception may quote data, so only its class is told."""
    if isinstance(cause, PldpError):
        return type(cause).__name__, str(cause)
    if isinstance(cause, BaseException):
        return type(cause).__name__, f"The run failed ({type(cause).__name__}). Nothing of this release was published."
    return "Stopped", "The run ended before it finished. Nothing was lost; nothing is drawn or spent twice."


def tell(home: Home, failure: Failure) -> None:
    """Log it, write it down, run the operator's command. Whatever of this fails is said and never stops the rest."""
    say(f"Failed: {failure.spec}, slot {failure.slot}: {failure.message} Resume: {failure.resume}")
    try:
        append(home.failures, asdict(failure))
    except OSError as error:
        say(f"{home.failures}: the failure could not be written down ({error.strerror}).")
    command = os.environ.get(COMMAND)
    if command:
        _run(command, failure)


def read_failures(home: Home) -> list[Failure]:
    """Every failure of a home, oldest first; a line that a crash cut short is left out."""
    return [Failure(**entry) for entry in entries(home.failures)]


def _run(command: str, failure: Failure) -> None:
    environment = os.environ | {"PLDP_MESSAGE": visible(f"{failure.spec}, slot {failure.slot}: {failure.message}")}
    try:
        # A session of its own, so that what the command started ends with it.
        process = subprocess.Popen(  # noqa: S603 — the operator's own command line
            ["/bin/sh", "-c", command],
            env=environment,
            cwd=os.environ.get(FOLDER),
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError as error:
        say(f"The failure command could not be started ({error.strerror}).")
        return
    try:
        code = process.wait(timeout=COMMAND_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        say(f"The failure command was stopped after {COMMAND_SECONDS} seconds.")
        return
    if code != 0:
        say(f"The failure command ended with exit code {code}.")
