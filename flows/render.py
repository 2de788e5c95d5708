"""What the commands print."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
from rich.console import Console

from pldp.flows.render_aggregates import totals_tables
from pldp.flows.render_budgets import budget_tables
from pldp.flows.render_histograms import histogram_tables, shares_table
from pldp.flows.render_items import itemset_tables
from pldp.flows.render_numbers import means_table, quantiles_table
from pldp.flows.shown import frame_table
from pldp.flows.tables import Table
from pldp.page import words
from pldp.privacy.trust import in_a_line
from pldp.tasks.failures import Failure
from pldp.tasks.home import Home
from pldp.tasks.results import PublishedRelease
from pldp.tasks.terminal import styled

if TYPE_CHECKING:
    from pldp.flows.evaluate import Evaluated
    from pldp.tasks.contents import Comparison


def show_release(out: Console, published: PublishedRelease, home: Path, *, resumed: bool = False) -> None:
    """Print a release: tables, gates, model, and where its page, statement and reports lie."""
    row = published.releases.to_dicts()[0]
    state = "is there already; nothing was drawn" if resumed else row["status"]
    when = f"{row['created_at']:%Y-%m-%d %H:%M} UTC"
    out.print(styled(published.release_id, "bold"), f"{state} — {row['n_users']:,} users, {when}")
    for table in _tables(published):
        out.print(table)
    show_validations(out, published)
    places = Home(home)
    if published.statement and "model" in published.statement:
        out.print(f"Model     {in_a_line(published.statement['model'])}", highlight=False, soft_wrap=True)
    out.print(f"Results   {places.results}   (DuckDB; start with the views latest_*)", highlight=False, soft_wrap=True)
    page = places.pages / f"{published.release_id}.html"
    if page.exists():
        out.print(f"Page      {page}", highlight=False, soft_wrap=True)
    out.print(f"Statement {places.releases / published.release_id / 'privacy.json'}", highlight=False, soft_wrap=True)
    out.print(f"Reports   {places.reports / published.release_id}", highlight=False, soft_wrap=True)


SHOWN = {
    *("releases", "validations", "budgets", "doubts", "spends"),
    *("histograms", "estimates", "level_estimates", "level_shares"),
    *("means", "quantiles", "bins", "aggregates", "itemsets", "rules"),
}
"""Tables that have a look of their own here, or too many rows for a terminal."""


def _tables(published: PublishedRelease) -> Iterator[Table]:
    """What a release has, whatever its kind."""
    tables = {name: rows for name, rows in published.tables.items() if not rows.is_empty()}
    yield from histogram_tables(published.tables["histograms"])
    if "means" in tables:
        yield means_table(tables["means"])
    if "quantiles" in tables:
        yield quantiles_table(tables["quantiles"])
    if "level_shares" in tables:
        yield shares_table(tables["level_shares"])
    if "itemsets" in tables:
        yield from itemset_tables(tables["itemsets"], published.tables["rules"])
    if "aggregates" in tables:
        yield from totals_tables(tables["aggregates"])
    for name in sorted(tables.keys() - SHOWN):  # of a kind that has no look of its own
        yield frame_table(name, tables[name].drop("release_id", strict=False))
    if "doubts" in tables:
        yield frame_table("doubts about reports that clients sent", tables["doubts"].drop("release_id", strict=False))
    if "budgets" in tables:
        yield from budget_tables(tables["budgets"])


def show_evaluation(out: Console, done: Evaluated, show_study: Callable[[Console, Evaluated], None]) -> None:
    """Print an evaluation: its study by `show_study`, its gates and where it is kept."""
    out.print(styled(done.evaluation_id, "bold"), f"— {done.n_users:,} users; never published")
    show_study(out, done)
    out.print(gates_table([vars(verdict) for verdict in done.verdicts]))
    out.print(f"Kept in {done.folder / 'evaluation.duckdb'} (0700)", highlight=False, soft_wrap=True)


def show_validations(out: Console, published: PublishedRelease) -> None:
    """Print a release's gates as they were published, and whether its stored plan is still the published one."""
    out.print(gates_table(published.validations.to_dicts()))
    if not published.plan_matches:
        out.print(styled("The stored plan does not have the published hash.", "bold red"))


def show_contents(out: Console, compared: Comparison) -> None:
    """Whether the tables are those that were published."""
    said = f"Tables    sha256 {compared.sha256}, "
    if compared.problems:
        out.print(styled(said, "") + styled("not what was published", "bold red"), soft_wrap=True)
        return
    state = "as published" if compared.recorded else "not compared: published before hashes were recorded"
    out.print(f"{said}{state}", highlight=False, soft_wrap=True)


def gates_table(rows: list[dict[str, Any]], title: str = "Gates") -> Table:
    """A table of gates from rows of `validations`; which question each is about only where there are several."""
    table = Table(title=title, title_justify="left")
    table.add_column("")
    table.add_column("gate")
    several = len({row.get("question") for row in rows} - {None}) > 1
    if several:
        table.add_column("question")
    table.add_column("sentence", ratio=1)
    table.add_column("false alarm", justify="right")
    for row in rows:
        mark = styled("✓", "green") if row["passed"] else styled("✗", "bold red")
        alarm = f"≤ {row['false_alarm']:.0e}" if row["false_alarm"] else "never"
        table.add_row(mark, row["gate"], *((row.get("question") or "",) if several else ()), row["sentence"], alarm)
    return table


def show_releases(out: Console, listing: pl.DataFrame, home: Path) -> None:
    """Print the releases listed, and below them what a user spent on names with several, each unit by itself."""
    if listing.is_empty():
        out.print(f"No releases in {home} yet.", highlight=False, soft_wrap=True)
        return
    table = Table()
    table.add_column("release", no_wrap=True)
    for column in ("status", "created", "users", "spent"):
        table.add_column(column)
    for row in listing.iter_rows(named=True):
        unit = "" if row["unit"] in {None, "user"} else f" of one {row['unit']}"
        spent = "?" if row["spent"] is None else f"ε = {row['spent']:g}{unit}"
        created = f"{row['created_at']:%Y-%m-%d %H:%M}"
        table.add_row(row["release_id"], row["status"], created, _people(row["n_users"]), spent)
    out.print(table)
    known = listing.with_columns(pl.col("unit").fill_null("user"))
    for (name, unit), rows in known.group_by("name", "unit", maintain_order=True):  # units are never added
        total = rows["spent"].sum()
        if rows.height > 1:
            line = f"{words.whose(str(unit))} in all {rows.height} releases of {name} has spent up to ε = {total:g}."
            out.print(line, highlight=False)


def show_failures(out: Console, failures: list[Failure]) -> None:
    """Print how many scheduled runs failed, and the last one with the command that resumes it; nothing without any."""
    if failures:
        last = failures[-1]
        line = f"{len(failures)} scheduled runs failed, the last at {last.at}: {last.message} Resume: {last.resume}"
        out.print(line, markup=False, highlight=False, soft_wrap=True)


def show_vaults(out: Console, vaults: Iterable[object]) -> None:
    """Raw values that are still there, why, and how they go."""
    for vault in vaults:
        out.print(str(vault), markup=False, highlight=False, soft_wrap=True)


def _people(n_users: int | None) -> str:
    return "?" if n_users is None else f"{n_users:,}"
