"""All published tables, in the order in which they are shown. A kind of question contributes its tuple here."""

from __future__ import annotations

from pldp.tables import aggregates, histograms, items, numbers
from pldp.tables.common import BUDGETS, DOUBTS, RELEASES, SPENDS, VALIDATIONS
from pldp.tables.declaration import Table

PUBLISHED: tuple[Table, ...] = (
    RELEASES,
    *histograms.TABLES,
    *numbers.TABLES,
    *aggregates.TABLES,
    *items.TABLES,
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
