"""The analyst's commands: they read results, and nothing else of a home but a release's privacy statement."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from pldp.flows.options import DEFAULT_HOME, HomeOption, JsonOption, out, print_json

app = typer.Typer()

SHOWN_ROWS = 100


# A query may begin with a comment, `-- …`, which is no option; a misspelt option is an argument too many.
@app.command(context_settings={"ignore_unknown_options": True})
def query(
    sql: Annotated[str, typer.Argument(metavar="SQL", help="A query in DuckDB's SQL; docs/analyst.md has examples.")],
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    limit: Annotated[int, typer.Option(min=1, help="Rows that a table shows.")] = SHOWN_ROWS,
) -> None:
    """Ask the results in SQL. Reads only; works while a release runs."""
    from pldp.flows.answers import as_plain, show_answer, write_csv
    from pldp.tasks.analyst import ask

    if as_json and as_csv:
        raise typer.BadParameter("give --json or --csv, not both")
    answer = ask(home, sql, None if as_json or as_csv else limit)
    try:
        if as_json:
            print_json(as_plain(answer.as_dicts()))
        elif as_csv:
            write_csv(sys.stdout, answer)
        else:
            show_answer(out, answer)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever reads (`head`) has seen enough; Python would complain once more on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@app.command()
def group(
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="A release id, or a name: its newest published release.")
    ],
    attribute: Annotated[str, typer.Argument(metavar="ATTRIBUTE")],
    values: Annotated[list[str], typer.Argument(metavar="VALUE…", help="The values to sum.")],
    minus: Annotated[
        list[str] | None, typer.Option(metavar="VALUE", help="Take off the share of this value; may be repeated.")
    ] = None,
    confidence: Annotated[float, typer.Option(min=0.5, max=0.999999, help="Of the interval.")] = 0.95,
    population: Annotated[
        bool, typer.Option("--population", help="Estimate the population that the users are a sample of.")
    ] = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """The summed share of a group of values, or its difference from that of another, with its right error."""
    from pldp.flows.answers import show_difference, show_group
    from pldp.tasks.analyst import ask_difference, ask_group

    if minus:
        away = ask_difference(home, release, attribute, values, minus, confidence=confidence, population=population)
        if as_json:
            groups = {"values": sorted(set(values)), "minus": sorted(set(minus))}
            print_json({"attribute": attribute, **groups, "confidence": confidence, **away})
        else:
            show_difference(out, attribute, values, minus, away, confidence)
        return
    estimate = ask_group(home, release, attribute, values, confidence=confidence, population=population)
    if as_json:
        print_json({"attribute": attribute, "values": sorted(set(values)), "confidence": confidence, **estimate})
    else:
        show_group(out, attribute, values, estimate, confidence)


@app.command()
def export(
    release: Annotated[
        str, typer.Argument(metavar="RELEASE", help="A release id, or a name: its newest published release.")
    ],
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write one file a table.")],
    kind: Annotated[Literal["parquet", "csv"], typer.Option("--format", help="Of the tables.")] = "parquet",
    force: Annotated[bool, typer.Option("--force", help="Replace files of an earlier export.")] = False,
    home: HomeOption = DEFAULT_HOME,
) -> None:
    """Write a release's tables and its privacy statement to files."""
    from pldp.tasks.export import export_release

    written = export_release(home, release, folder, kind, force=force)
    out.print(f"{folder}: {', '.join(written)}", markup=False, highlight=False, soft_wrap=True)
