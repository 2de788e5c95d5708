"""The files of a release of aggregates, described."""

from __future__ import annotations

from pldp.questions.aggregates.plan import AggregatesPlan
from pldp.tasks.aggregates.file import AggregatesFile
from pldp.tasks.itemrows import Holdings, ItemRows
from pldp.tasks.people import NOTHING
from pldp.tasks.textfile import TextFile


def holdings_of(plan: AggregatesPlan, file: AggregatesFile) -> Holdings:
    """What the spec reads: who has which item, and who chose what."""
    source, users = file.spec.source, file.spec.users
    rows = TextFile(file.source, source.format, source.csv, "source", NOTHING)
    takers = None
    if users is not None and file.users is not None:
        takers = ItemRows(
            TextFile(file.users, users.format, users.csv, "users", NOTHING), users.user, choice=users.profile
        )
    return Holdings(
        rows=ItemRows(rows, source.user, source.item, source.count, source.profile),
        refuse_unknown=source.unknown == "refuse",
        items=file.listed.items,
        choices=plan.profile_names,
        default=plan.profile_names.index(plan.default),
        choice="profile",
        declared="in the catalogue",
        most_left_out=source.max_left_out,
        users=takers,
    )
