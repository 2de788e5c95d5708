"""The table of people's items behind aggregates, and what the vault keeps: how much of an attribute they add up to."""

from __future__ import annotations

from functools import partial

import numpy as np

from pldp.questions.aggregates.catalogue import Units
from pldp.questions.aggregates.question import Aggregates
from pldp.questions.aggregates.release import LARGEST
from pldp.questions.aggregates.spec import AggregatesSpec
from pldp.questions.cells import Choice, Declared
from pldp.questions.question import Columns
from pldp.questions.source import Held, HeldError, HoldingsTable, Places

_UNDECLARED = (
    "the item is not in the catalogue. Add it there, or let such items count for nothing with `unknown: ignore` under "
    "source"
)


def aggregates_table(spec: AggregatesSpec, plan: Aggregates, items: tuple[str, ...], units: Units) -> HoldingsTable:
    """What the spec reads. `units` is what one occurrence of each item adds, item × attribute, in grid units."""
    users = spec.users
    return HoldingsTable(
        source=spec.source,
        items=Declared(items),
        undeclared=_UNDECLARED if spec.source.unknown == "refuse" else None,
        hold=partial(hold, units=units, cap=plan.cap, fields=plan.vault_fields),
        choices=Choice(plan.profile_names, plan.profile_names.index(plan.default)),
        choice_field=plan.choice_field,
        choice="profile",
        stated=spec.source.profile,
        count=spec.source.count,
        users=users,
        users_id=None if users is None else users.user,
        users_choice=None if users is None else users.profile,
    )


def hold(held: Held, *, units: Units, cap: int | None, fields: tuple[str, ...]) -> Columns:
    """One sum per person and attribute, in grid units. With a cap, so many occurrences of an item count at most."""
    users, items = held.users, held.items
    counts = np.ones(len(users), dtype=np.int64) if held.counts is None else held.counts
    if cap is not None:
        users, items, counts = _capped(held, counts, len(units), cap)
    starts = np.flatnonzero(np.append(True, users[1:] != users[:-1])) if users.size else users
    sums = {}
    for column, field in enumerate(fields):
        total = np.zeros(held.n_users, dtype=np.int64)
        if users.size:
            # A count is at most 10^9 and a unit at most 2^20; cut just above what is refused, no sum leaves 64 bits.
            added = np.minimum(counts * units[:, column].astype(np.int64)[items], LARGEST + 1)
            total[users[starts]] = np.add.reduceat(added, starts)
        if total.max(initial=0) > LARGEST:
            raise HeldError(
                f"the items of a user add up to more than {LARGEST:,} grid units of an attribute, to which no noise is "
                "added. Check the counts, bound them with `count: {cap: …}`, or give weights a coarser catalogue.grid"
            )
        sums[field] = total
    return sums


def _capped(held: Held, counts: Places, size: int, cap: int) -> tuple[Places, Places, Places]:
    """One entry per user and item, with what counts of it."""
    both = held.users * size + held.items
    order = np.argsort(both)
    both, counts = both[order], counts[order]
    starts = np.flatnonzero(np.append(True, both[1:] != both[:-1])) if both.size else order
    summed = np.add.reduceat(counts, starts) if both.size else counts
    users, items = np.divmod(both[starts], size)
    return users, items, np.minimum(summed, cap)
