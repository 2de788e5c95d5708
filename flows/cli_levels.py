"""`pldp levels`: how sensitive items are, from the scores that a release has published."""

from __future__ import annotations

from typing import Annotated

import typer

from pldp.flows.options import DEFAULT_HOME, HomeOption, JsonOption, ReleaseArgument, out, print_json
from pldp.flows.tables import titled

app = typer.Typer()


@app.command()
def levels(
    release: ReleaseArgument,
    of: Annotated[int | None, typer.Option("--of", min=2, max=100, help="So many levels of equal width.")] = None,
    cuts: Annotated[str | None, typer.Option(help="Or the cuts between them, such as 2,4,8.")] = None,
    median: Annotated[bool, typer.Option("--median", help="By the median score instead of the mean.")] = False,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
) -> None:
    """Turn published scores into the section `sensitivity` of a spec of kind items."""
    import yaml

    from pldp.tasks.levels import levels_of

    if (of is None) == (cuts is None):
        raise typer.BadParameter("give either --of or --cuts")
    try:
        edges = None if cuts is None else [float(cut) for cut in cuts.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--cuts must be numbers with commas between (got {cuts!r})") from None
    scored = levels_of(home, release, of, edges, median=median)
    if as_json:
        print_json({"sensitivity": scored.as_spec(), "scores": scored.rows.to_dicts()})
        return
    title = f"Scores of {scored.release_id}, and the level of each"
    table = titled(title, ("item",), ("score", "± error", "level", "sure"))
    for row in scored.rows.iter_rows(named=True):
        numbers = f"{row['score']:.3g}", f"{row['standard_error']:.2g}", str(row["level"]), f"{row['probability']:.0%}"
        table.add_row(row["item"], *numbers)
    out.print(table)
    out.print("For a spec of kind items:", highlight=False)
    out.print(yaml.safe_dump({"sensitivity": scored.as_spec()}, sort_keys=False), markup=False, highlight=False)
