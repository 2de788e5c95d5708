"""`pldp check`: spec and source before a release, without Prefect."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pldp.flows.options import out

app = typer.Typer()


@app.command()
def check(
    spec: Annotated[Path, typer.Argument(metavar="SPEC", help="The release's spec, a YAML file.")],
    source: Annotated[
        Path | None, typer.Option("--source", help="Read this file instead of the spec's source.path.")
    ] = None,
) -> None:
    """Read spec and source, and tell everything that a release would refuse. Runs and writes nothing."""
    from pldp.tasks.check import check as look
    from pldp.tasks.specfile import load_spec

    findings = look(load_spec(spec, source))
    for remark in findings.remarks:
        out.print(remark, highlight=False, soft_wrap=True)
    findings.raise_problems(gates=True)
    out.print(f"{spec}: a release would read this. Nothing was run.", highlight=False, soft_wrap=True)
