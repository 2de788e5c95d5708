"""`pldp release`, `evaluate` and `plan`: what is done with one spec.

Prefect and Great Expectations are imported after the home is set up: see cli.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pldp.errors import GateFailed, Outcome, SourceError
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
    say,
)

if TYPE_CHECKING:
    from pldp.spec.runner import RunnerOptions

app = typer.Typer()
SpecArgument = Annotated[Path, typer.Argument(metavar="SPEC", help="The release's spec, a YAML file.")]
SourceOption = Annotated[
    Path | None,
    typer.Option("--source", help="Read this instead of the spec's source.path, or this folder of its source.reports."),
]


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
    from pldp.flows.progress import LOAD, READ, reported, shown

    runner_options = given_runner(runner, workers, memory)
    with shown(err):
        with reported(READ):
            from pldp.flows.server import prepared, start_early

            start_early(home)
            home = _prepare(home, spec, source, runner_options)
        spec, source = spec.absolute(), source and source.absolute()
        with prepared(home):
            with reported(LOAD):
                from pldp.flows import release as flow
                from pldp.flows.render import show_release
                from pldp.tasks.results import read_release

            try:
                done = flow.release(spec, home, slot=slot, source=source, wait=wait, runner=runner_options)
            except SourceError:
                _list_problems(spec, source)
                raise
    published = read_release(home, done.release_id)
    if as_json:
        print_json(published.as_json())
    else:
        show_release(out, published, home, resumed=done.resumed)
    if done.page_problem is not None:
        state = "Results are published" if done.status == "published" else "The refusal is recorded"
        message = f"{state}, but the page is not there. {done.page_problem}"
        say("Warning:", "bold yellow", message)
    if done.status == "refused":
        raise GateFailed(f"Release {done.release_id} was refused: {published.failed_gates()}", Outcome.SPENT)


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
    dependence: Annotated[
        float | None,
        typer.Option(
            min=1, metavar="Γ", help="Also deal levels by what users hold, as far as a levels.dependence of Γ allows."
        ),
    ] = None,
    home: HomeOption = DEFAULT_HOME,
    source: SourceOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare estimates with the truth. Stays on the vault's side; never publishes."""
    from pldp.flows.progress import LOAD, READ, reported, shown

    with shown(err):
        with reported(READ):
            from pldp.flows.server import prepared, start_early

            start_early(home)
            home = _prepare(home, spec, source, evaluation=True)
        spec, source = spec.absolute(), source and source.absolute()
        with prepared(home):
            with reported(LOAD):
                from pldp.flows import evaluate as flow
                from pldp.flows.render import show_evaluation
                from pldp.flows.shown import show_study

            done = flow.evaluate(
                spec, home, repeat=repeat, seed=seed, keep_levels=keep_levels, dependence=dependence, source=source
            )
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


def _prepare(
    home: Path, spec: Path, source: Path | None, runner: RunnerOptions = None, *, evaluation: bool = False
) -> Path:
    """Refuse a bad spec or source before anything starts, and make the home."""
    from pldp.tasks.check import check, check_columns, is_large
    from pldp.tasks.home import Home
    from pldp.tasks.specfile import load_spec

    file = load_spec(spec, source, runner, evaluation=evaluation)
    if evaluation:
        file.refuse_evaluation()
    look = check_columns if not evaluation and is_large(file) else check
    look(file).raise_problems()
    home = home.resolve()
    Home(home).prepare()
    return home


def _list_problems(spec: Path, source: Path | None) -> None:
    """Ingest has refused a source at the first fault. All faults of a small one were listed before it started; of a
    large one they are now."""
    from pldp.tasks.check import check, is_large
    from pldp.tasks.specfile import load_spec

    file = load_spec(spec, source)
    if is_large(file):
        check(file).raise_problems(Outcome.NOTHING_PERTURBED)
