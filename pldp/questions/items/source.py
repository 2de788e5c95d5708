"""The table of people's items behind frequent items, and what the vault keeps of a row: each item once."""

from __future__ import annotations

from functools import partial

import numpy as np

from pldp.questions.cells import Choice, Declared
from pldp.questions.items.question import Items
from pldp.questions.items.spec import ItemsSpec
from pldp.questions.question import Columns, offsets
from pldp.questions.source import Held, HeldError, HoldingsTable

_UNDECLARED = (
    "the item is not declared. Add it there, or let such items count for nothing with `unknown: ignore` under source"
)
_TWO = "a user has two different values, and only one can be kept. Give every user one"
_NO_VALUE = "the value is not declared. Declare it, or declare `other`"


def items_table(spec: ItemsSpec, plan: Items) -> HoldingsTable:
    """What the spec reads."""
    one = spec.holds == "one"
    other, missing = (None if name is None else plan.items.index(name) for name in (spec.other, spec.missing))
    refuse = spec.source.unknown == "refuse" and other is None
    users = spec.users
    return HoldingsTable(
        source=spec.source,
        items=Declared(plan.items, other=other),
        undeclared=(_NO_VALUE if one else _UNDECLARED) if refuse else None,
        hold=partial(hold, size=len(plan.items), field=plan.field, one=one, missing=missing),
        choices=Choice(plan.level_names, plan.level_names.index(plan.default)),
        choice_field=plan.choice_field,
        choice="level",
        one=_TWO if one else None,
        stated=spec.source.level,
        users=users,
        users_id=None if users is None else users.user,
        users_choice=None if users is None else users.level,
    )


def hold(held: Held, *, size: int, field: str, one: bool, missing: int | None) -> Columns:
    """A list of positions per person, rising, each once. Of `one` value, who has none has `missing`."""
    # One number per user and item sorts them by both, and equal ones stand together.
    both = np.sort(held.users * size + held.items)
    both = both[np.append(True, both[1:] != both[:-1])] if both.size else both
    users, items = np.divmod(both, size)
    sizes = np.bincount(users, minlength=held.n_users)
    if one:
        if sizes.max(initial=0) > 1:
            raise HeldError(_TWO, item=True)
        if missing is None and sizes.min(initial=1) < 1:
            raise HeldError("a user has no value. Give every user one, or declare `missing`", item=True)
        every = np.full(held.n_users, -1 if missing is None else missing, dtype=np.int64)
        every[users] = items
        items, sizes = every, np.ones(held.n_users, dtype=np.int64)
    bounds = np.concatenate([[0], np.cumsum(sizes)])
    return {field: items.astype(np.uint32), offsets(field): bounds}
