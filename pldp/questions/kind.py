"""What a kind of question declares once: its folder has one `KIND`, and registries read what they need of it."""

from __future__ import annotations

from dataclasses import dataclass

from pldp.page.published import KindPage
from pldp.tables.declaration import Table


@dataclass(frozen=True)
class Kind:
    question: str
    """Its class, as "module:name": it loads with the first plan."""
    page: KindPage
    """Its part of a release's page."""
    tables: tuple[Table, ...]
    """What it publishes."""
