"""All published tables, in the order in which they are shown. Those of a kind follow from the registry."""

from __future__ import annotations

from pldp.questions.registry import KINDS
from pldp.tables.common import BUDGETS, DOUBTS, RELEASES, SPENDS, VALIDATIONS
from pldp.tables.declaration import Table

PUBLISHED: tuple[Table, ...] = (
    RELEASES,
    *(table for kind in KINDS for table in kind.tables),
    BUDGETS,
    SPENDS,
    DOUBTS,
    VALIDATIONS,
)

_BY_NAME = {table.name: table for table in PUBLISHED}


def published_table(name: str) -> Table:
    """The declaration of a published table; ValueError where there is none of that name."""
    try:
        return _BY_NAME[name]
    except KeyError:
        raise ValueError(f"{name!r} is no published table: pldp/tables declares them") from None
