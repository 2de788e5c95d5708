"""`pldp reproduce`: the papers' experiments, ours beside what they print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pldp.flows.options import err, out

app = typer.Typer()

ALL = "all"


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(metavar="PAPER", help="mpldp, febsf, pmpm, aprr, multiupp, summary, or all.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer repetitions: a look, with larger errors.")] = False,
    data: Annotated[Path, typer.Option("--data", help="Folder of the papers' data sets.")] = Path("../shared/data"),
    to: Annotated[Path, typer.Option("--to", help="Where results and pages go.")] = Path("data/reproduce"),
    pages_only: Annotated[
        bool, typer.Option("--pages-only", help="Judge and draw what was computed before; run nothing.")
    ] = False,
) -> None:
    """Run a paper's experiments and compare every number; exit code 1 when a difference is unexplained."""
    from pldp.papers.registry import NAMES, available

    there = available()
    if paper != ALL and paper not in there:
        raise typer.BadParameter(f"PAPER must be one of {', '.join((*there, ALL))} (got {paper!r})")
    names = [name for name in NAMES if name in there and paper in (name, ALL)]
    to = to.resolve()
    to.mkdir(parents=True, exist_ok=True)
    data = data.resolve()
    from pldp.flows.progress import LOAD, reported, shown
    from pldp.flows.server import prepared

    with shown(err), prepared(to, runs=not pages_only):
        with reported(LOAD):
            from pldp.papers.laboratory.flow import reproduce as run

        done = run(names, data, to, quick=quick, pages_only=pages_only)
    for page in done.pages:
        out.print(str(page), markup=False, highlight=False, soft_wrap=True)
    if len(names) > 1:
        for name, verdicts in done.tallies.items():
            out.print(f"{name:<9} {verdicts}", highlight=False, soft_wrap=True)
    out.print(str(done.total), highlight=False, soft_wrap=True)
    if done.total.unexplained:
        raise typer.Exit(1)
