"""The files of a release of items, described."""

from __future__ import annotations

import polars as pl

from pldp.questions.items.question import Items
from pldp.questions.items.spec import ItemsSpec
from pldp.tasks.itemrows import Holdings, ItemRows
from pldp.tasks.people import NOTHING
from pldp.tasks.specfile import SpecFile
from pldp.tasks.textfile import TextFile


def holdings_of(file: SpecFile) -> Holdings:
    """What the spec reads: who has which item, and who chose what."""
    spec, (plan,) = file.spec, file.plan.questions
    if not isinstance(spec, ItemsSpec) or not isinstance(plan, Items):
        raise ValueError("the spec asks for no items")
    source, users = spec.source, spec.users
    rows = TextFile(file.source, source.format, source.csv, "source", NOTHING)
    takers = None
    if users is not None and file.users is not None:
        takers = ItemRows(
            TextFile(file.users, users.format, users.csv, "users", NOTHING), users.user, choice=users.level
        )
    other = None if spec.other is None else plan.items.index(spec.other)
    return Holdings(
        rows=ItemRows(rows, source.user, source.item, choice=source.level),
        refuse_unknown=source.unknown == "refuse" and other is None,
        items=pl.Series(plan.items, dtype=pl.String),
        choices=plan.level_names,
        default=plan.level_names.index(plan.default),
        choice="level",
        most_left_out=source.max_left_out,
        users=takers,
        other=other,
        one=spec.holds == "one",
        missing=None if spec.missing is None else plan.items.index(spec.missing),
    )
