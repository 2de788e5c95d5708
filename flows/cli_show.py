"""The commands that look at what there is: releases, one of them, its gates, its page."""

from __future__ import annotations

from typing import Annotated

import typer

from pldp.errors import GateFailed, Outcome
from pldp.flows.options import DEFAULT_HOME, HomeOption, JsonOption, ReleaseArgument, out, print_json

app = typer.Typer()


@app.command()
def validate(
    release_id: ReleaseArgument,
    home: HomeOption = DEFAULT_HOME,
    as_json: JsonOption = False,
    deep: Annotated[
        bool, typer.Option("--deep", help="Prove the plan's channels and estimators again, with this code.")
    ] = False,
) -> None:
    """Check a release's gates, its plan's hash and its tables' hash; exit code 1 when anything fails."""
    from pldp.flows.render import gates_table, show_contents, show_validations
    from pldp.tasks.contents import compare_contents
    from pldp.tasks.home import Home
    from pldp.tasks.results import read_release
    from pldp.tasks.validate import prove_again

    published = read_release(home, release_id)
    contents = compare_contents(Home(home), published.release_id)
    again = [vars(verdict) for verdict in prove_again(Home(home), published.release_id)] if deep else []
    if as_json:
        print_json([*published.validations.to_dicts(), *({**row, "again": True} for row in again)])
    else:
        show_validations(out, published)
        show_contents(out, contents)
        if again:
            out.print(gates_table(again, "Proven again"))
    proven = [f"{row['gate']}, proven again" for row in again if not row["passed"]]
    failed = [*([] if published.valid else [published.failed_gates()]), *proven, *contents.problems]
    if failed:
        raise GateFailed(f"Release {published.release_id} fails: {'; '.join(failed)}", Outcome.NOTHING_CHANGED)


@app.command()
def show(release_id: ReleaseArgument, home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """Show a release: histograms with errors, budgets, gates."""
    from pldp.flows.render import show_release
    from pldp.tasks.results import read_release

    published = read_release(home, release_id)
    if as_json:
        print_json(published.as_json())
    else:
        show_release(out, published, home)


@app.command()
def page(release_id: ReleaseArgument, home: HomeOption = DEFAULT_HOME) -> None:
    """Build a release's page again, and the index of all releases; print the page's path."""
    from pldp.tasks.page import build_page

    out.print(str(build_page(home.resolve(), release_id)), markup=False, highlight=False, soft_wrap=True)


@app.command()
def releases(home: HomeOption = DEFAULT_HOME, as_json: JsonOption = False) -> None:
    """List the releases of a home, and what they spent."""
    from pldp.flows.render import show_failures, show_releases, show_vaults
    from pldp.tasks.failures import read_failures
    from pldp.tasks.home import Home
    from pldp.tasks.results import list_releases
    from pldp.tasks.vaults import vaults

    listing = list_releases(home)
    if as_json:
        print_json(listing.to_dicts())
    else:
        show_releases(out, listing, home)
        show_failures(out, read_failures(Home(home)))
        show_vaults(out, vaults(Home(home)))
