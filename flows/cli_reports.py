"""`pldp reports`: the report files of one provider."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pldp.flows.options import DEFAULT_HOME, HomeOption, ReleaseArgument, out

app = typer.Typer()


@app.command()
def reports(
    release: ReleaseArgument,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to copy the files.")],
    provider: Annotated[str, typer.Option(metavar="NAME", help="Whose reports, by the spec's name.")],
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Hand out what one provider gets of a release of aggregates: its perturbed rows, and nothing else."""
    from pldp.tasks.aggregates.handout import hand_out

    written = hand_out(home, release, provider, folder, force=force)
    out.print(f"{folder}: {', '.join(written)}", markup=False, highlight=False, soft_wrap=True)
