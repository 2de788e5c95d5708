"""The command line. Exit codes: 0 done; 1 a gate failed; 2 bad spec, source or argument; 3 anything else.

Prefect and Great Expectations are slow to import and read their settings then, so every command sets up the home
first and imports what it runs after that.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from pldp import __version__
from pldp.errors import PldpError
from pldp.flows import cli_analyst, cli_check, cli_collect, cli_levels, cli_recycle, cli_release, cli_reports, cli_show
from pldp.flows.options import (
    DEFAULT_HOME,
    HomeOption,
    err,
    out,
    say,
)
from pldp.papers.laboratory import command as cli_reproduce

app = typer.Typer(
    name="pldp",
    help="Release statistics with personalised, multi-level differential privacy by local noise.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,  # they print local variables, which may be somebody's data
    epilog="Exit codes: 0 done; 1 a gate failed; 2 bad spec, source or argument; 3 anything else.",
)
_GARBAGE = 50_000
"""Objects made until garbage is looked for: what libraries make while they load is none, and looking takes a tenth."""


def main() -> None:
    """Run a command; errors become one message and an exit code, never a traceback."""
    gc.set_threshold(_GARBAGE)
    # Stages fill the cores; products of small matrices gain nothing from more, and threads that wait keep them busy.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        app()
    except PldpError as error:
        say("Error:", "bold red", str(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        err.print("Interrupted. Nothing was published; run the same command again to resume.")
        sys.exit(130)
    except Exception as error:
        # The message of a foreign exception may quote data; its type may not.
        lists = "`pldp releases` lists what was published. Set PLDP_DEBUG=1 for details."
        say("Error:", "bold red", f"{type(error).__name__}. {lists}")
        if os.environ.get("PLDP_DEBUG"):
            err.print(traceback.format_exc(), highlight=False, soft_wrap=True)
        sys.exit(3)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    """What `pldp` alone does: with --version it prints the version and ends, without it a command follows."""
    if version:
        out.print(f"pldp {__version__}", highlight=False)
        raise typer.Exit


@app.command()
def serve(
    specs: Annotated[list[Path], typer.Argument(metavar="SPEC…", help="Specs with a schedule, all into one home.")],
    home: HomeOption = DEFAULT_HOME,
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="Port of a server of our own.")] = None,
    on_failure: Annotated[
        str | None, typer.Option(help="Command to run when a release fails; it finds PLDP_MESSAGE.")
    ] = None,
    grace: Annotated[
        float | None, typer.Option(min=1, help="Minutes after its slot in which a run may still start. [10]")
    ] = None,
) -> None:
    """Release every spec on its schedule, until stopped."""
    from pldp.flows.serve import serve as run

    run(specs, home, port=port, on_failure=on_failure, grace_minutes=grace)


@app.command()
def sample(
    folder: Annotated[Path, typer.Argument(help="Where to write sample.yaml and sample.parquet.")] = Path("data"),
    users: Annotated[int, typer.Option(min=1, help="How many made-up people.")] = 100_000,
) -> None:
    """Make the sample spec and data, to try a release."""
    from pldp.flows.sample import write_sample

    spec, data = write_sample(folder, users)
    out.print(f"Spec {spec}, data {data}. Next: pldp release {spec}", highlight=False, soft_wrap=True)


for part in (
    cli_release,
    cli_check,
    cli_collect,
    cli_show,
    cli_analyst,
    cli_levels,
    cli_recycle,
    cli_reports,
    cli_reproduce,
):
    app.add_typer(part.app)


def command() -> None:
    """What the console script runs: a command, then out, without taking the interpreter apart piece by piece.

    That would take a second, and DuckDB's types, which Prefect's threads still hold then, would be told as leaks.
    """
    code = 0
    try:
        main()
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    atexit._run_exitfuncs()  # a server of our own ends here
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # whoever read it has gone
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    command()
