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
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from pldp import __version__
from pldp.errors import GateFailed, Outcome, PldpError
from pldp.flows import cli_analyst, cli_check, cli_collect, cli_levels, cli_recycle, cli_reports, cli_show
from pldp.flows.options import (
    DEFAULT_HOME,
    HomeOption,
    JsonOption,
    MemoryOption,
    RunnerOption,
    WorkersOption,
    err,
    given_runner,
    out,
    print_json,
)
from pldp.papers.laboratory import command as cli_reproduce

if TYPE_CHECKING:
    from pldp.tasks.specfile import Given

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
SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="The release's spec, a YAML file.")]
SourceOption = Annotated[
    Path | None,
    typer.Option("--source", help="Read this instead of the spec's source.path, or this folder of its source.reports."),
]


def main() -> None:
    """Run a command; errors become one message and an exit code, never a traceback."""
    gc.set_threshold(_GARBAGE)
    try:
        app()
    except PldpError as error:
        _say("Error:", "bold red", str(error))
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        err.print("Interrupted. Nothing was published; run the same command again to resume.")
        sys.exit(130)
    except Exception as error:
        # The message of a foreign exception may quote data; its type may not.
        lists = "`pldp releases` lists what was published. Set PLDP_DEBUG=1 for details."
        _say("Error:", "bold red", f"{type(error).__name__}. {lists}")
        if os.environ.get("PLDP_DEBUG"):
            err.print(traceback.format_exc(), highlight=False, soft_wrap=True)
        sys.exit(3)


@app.callback(invoke_without_command=True)
def root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        out.print(f"pldp {__version__}", highlight=False)
        raise typer.Exit


@app.command()
def release(
    spec: SpecArgument,
    home: HomeOption = DEFAULT_HOME,
    source: SourceOption = None,
    slot: Annotated[
        str, typer.Option(help="Schedule slot: another slot is another release and spends again.")
    ] = "manual",
    wait: Annotated[bool, typer.Option(help="Wait for a release that is running in this home.")] = False,
    runner: RunnerOption = None,
    workers: WorkersOption = None,
    memory: MemoryOption = None,
    as_json: JsonOption = False,
) -> None:
    """Perturb, estimate, validate and publish one release. The same spec, source and slot resume."""
    from pldp.flows.server import prepared, start_early

    given = given_runner(runner, workers, memory)
    with err.status("Reading spec and source …"):
        start_early(home)
        home = _prepare(home, spec, source, given)
    spec, source = spec.absolute(), source and source.absolute()
    with prepared(home):
        with err.status("Loading …"):
            from pldp.flows import release as flow
            from pldp.flows.progress import shown
            from pldp.flows.render import show_release
            from pldp.tasks.results import read_release

        with shown(err):
            done = flow.release(spec, home, slot=slot, source=source, wait=wait, runner=given)
    found = read_release(home, done.release_id)
    if as_json:
        print_json(found.as_json())
    else:
        show_release(out, found, home, resumed=done.resumed)
    if done.page_problem is not None:
        state = "Results are published" if done.status == "published" else "The refusal is recorded"
        message = f"{state}, but the page is not there. {done.page_problem}"
        _say("Warning:", "bold yellow", message)
    if done.status == "refused":
        raise GateFailed(f"Release {done.release_id} was refused: {found.failed_gates()}", Outcome.SPENT)


@app.command()
def evaluate(
    spec: SpecArgument,
    repeat: Annotated[
        int | None, typer.Option(min=0, help="Repetitions; 1000 of histograms, 20 of items unless given.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Make the evaluation repeatable.")] = None,
    keep_levels: Annotated[
        bool, typer.Option(help="Repeat with users' own levels instead of dealing them afresh.")
    ] = False,
    home: HomeOption = DEFAULT_HOME,
    source: SourceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare estimates with the truth. Stays on the vault's side; never publishes."""
    from pldp.flows.server import prepared, start_early

    with err.status("Reading spec and source …"):
        start_early(home)
        home = _prepare(home, spec, source, evaluation=True)
    spec, source = spec.absolute(), source and source.absolute()
    with prepared(home):
        with err.status("Loading …"):
            from pldp.flows import evaluate as flow
            from pldp.flows.progress import shown
            from pldp.flows.render import show_evaluation
            from pldp.flows.shown import show_study

        with shown(err):
            done = flow.evaluate(spec, home, repeat=repeat, seed=seed, keep_levels=keep_levels, source=source)
    if as_json:
        print_json(done.as_json())
    else:
        show_evaluation(out, done, show_study)
    if not all(verdict.passed for verdict in done.verdicts):
        raise GateFailed(f"A gate failed in evaluation {done.evaluation_id}", Outcome.NOTHING_PUBLISHED)


@app.command()
def plan(
    spec: SpecArgument,
    target_error: Annotated[
        float | None, typer.Option(help="Find the total budget, and the users, that reach this standard error.")
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Predict errors and budgets from the spec alone."""
    from pldp.flows.planned import predict
    from pldp.tasks.specfile import load_spec

    planned = predict(load_spec(spec, evaluation=True), target_error)
    if as_json:
        print_json(planned.as_json())
    else:
        from pldp.flows.shown import show_plan

        show_plan(out, planned)


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


def _prepare(home: Path, spec: Path, source: Path | None, runner: Given = None, *, evaluation: bool = False) -> Path:
    """Refuse a bad spec or source before anything starts, and make the home."""
    from pldp.tasks.check import check
    from pldp.tasks.home import Home
    from pldp.tasks.specfile import load_spec

    file = load_spec(spec, source, runner, evaluation=evaluation)
    if evaluation:
        file.refuse_evaluation()
    check(file).raise_problems()
    home = home.resolve()
    Home(home).prepare()
    return home


def _say(label: str, style: str, message: str) -> None:
    err.print(Text.assemble((label, style), f" {message}"), soft_wrap=True)


for part in (cli_check, cli_collect, cli_show, cli_analyst, cli_levels, cli_recycle, cli_reports, cli_reproduce):
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
