"""What the commands print about budgets: who spends what, whatever the kinds of a release's questions."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from pldp.flows.tables import Table, titled

SHOWN_CHOICES = 6
_SPREAD = ("least", "median", "most")


def budget_tables(rows: pl.DataFrame) -> Iterator[Table]:
    """One table of what stands with nobody in particular, and one for each provider."""
    for (provider,), part in rows.group_by("provider", maintain_order=True):
        yield _of_people(part) if provider is None else _of_provider(str(provider), part)


def _of_people(rows: pl.DataFrame) -> Table:
    """Attribute × level; an attribute whose people choose from other levels leaves the rest of its row empty."""
    levels = rows["level"].unique(maintain_order=True).to_list()
    hidden = rows["level_leak"].null_count() < rows.height
    spends = ("ε" if level is None else f"ε {level}" for level in levels)
    leak_column = ("tells about the level",) if hidden else ()
    table = titled("Budgets", ("attribute",), (*spends, "share of total", *leak_column))
    for (attribute,), part in rows.group_by("attribute", maintain_order=True):
        spent = {row["level"]: f"{row['nominal_epsilon']:.4f} {row['mechanism']}" for row in part.iter_rows(named=True)}
        leak = [f"{part['level_leak'][0]:.3f}" if part["level_leak"][0] is not None else ""] if hidden else []
        table.add_row(str(attribute), *(spent.get(level, "") for level in levels), f"{part['share'][0]:.1%}", *leak)
    return table


def _of_provider(provider: str, rows: pl.DataFrame) -> Table:
    """What each profile spends on each attribute, of what it allows; of many profiles, the spread."""
    profiles = rows["level"].unique(maintain_order=True).to_list()
    many = len(profiles) > SHOWN_CHOICES
    over = f", over {len(profiles):,} profiles" if many else ""
    title = f"{provider}: ε of one {rows['unit'][0]}, spent of allowed{over}"
    table = titled(title, ("attribute",), _SPREAD if many else profiles)
    for (attribute,), part in rows.group_by("attribute", maintain_order=True):
        pairs = part.select("exact_epsilon", "nominal_epsilon")
        if many:
            pairs = pl.concat([pairs.min(), pairs.median(), pairs.max()])
        table.add_row(str(attribute), *(f"{spent:.4f} of {allowed:.4f}" for spent, allowed in pairs.iter_rows()))
    return table
