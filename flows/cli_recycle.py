"""`pldp recycle`: what an analyst cleared only up to a smaller budget may have of a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pldp.flows.options import DEFAULT_HOME, HomeOption, JsonOption, ReleaseArgument, out, print_json

app = typer.Typer()


@app.command()
def recycle(
    release: ReleaseArgument,
    budget: Annotated[str, typer.Argument(metavar="BUDGET", help="The most that any report may spend, such as 0.5.")],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write the histograms and their statement.")],
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Estimate from reports of at most BUDGET each; weaker-protected ones are perturbed again, once and for all."""
    from pldp.channels.exact import parse_ratio
    from pldp.flows.render_histograms import histogram_tables
    from pldp.tasks.home import Home
    from pldp.tasks.recycle import recycle as make
    from pldp.tasks.recycle import write_cleared

    try:
        wanted = parse_ratio(budget)
        if wanted <= 0:
            raise ValueError("must be greater than 0")
    except ValueError as error:
        raise typer.BadParameter(f"BUDGET {error} (got {budget!r})") from None
    with Home(home).locked(False):
        cleared = make(home, release, wanted)
    written = write_cleared(cleared, folder)
    if as_json:
        print_json({**cleared.statement, "histograms": cleared.histograms.to_dicts()})
        return
    for table in histogram_tables(cleared.histograms):
        out.print(table)
    out.print(f"Every report behind these keeps ε = {float(wanted):g} or less.", highlight=False)
    out.print(f"Written   {', '.join(str(path) for path in written)}", highlight=False, soft_wrap=True)
