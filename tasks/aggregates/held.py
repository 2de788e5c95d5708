"""The files of a release of aggregates, described."""

from __future__ import annotations

from pldp.questions.aggregates.question import Aggregates
from pldp.questions.aggregates.spec import AggregatesSpec
from pldp.tasks.itemrows import Holdings, ItemRows
from pldp.tasks.people import NOTHING
from pldp.tasks.specfile import SpecFile
from pldp.tasks.textfile import TextFile


def holdings_of(file: SpecFile) -> Holdings:
    """What the spec reads: who has which item, and who chose what."""
    spec, (plan,) = file.spec, file.plan.questions
    if not isinstance(spec, AggregatesSpec) or not isinstance(plan, Aggregates):
        raise ValueError("the spec asks for no aggregates")
    source, users = spec.source, spec.users
    rows = TextFile(file.source, source.format, source.csv, "source", NOTHING)
    takers = None
    if users is not None and file.users is not None:
        takers = ItemRows(
            TextFile(file.users, users.format, users.csv, "users", NOTHING), users.user, choice=users.profile
        )
    return Holdings(
        rows=ItemRows(rows, source.user, source.item, source.count, source.profile),
        refuse_unknown=source.unknown == "refuse",
        items=file.tables["catalogue"].items,
        choices=plan.profile_names,
        default=plan.profile_names.index(plan.default),
        choice="profile",
        declared="in the catalogue",
        most_left_out=source.max_left_out,
        users=takers,
    )
