"""What a kind of question declares once: its folder has one `KIND`, and registries read what they need of it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

from pldp.tables.declaration import Table


@dataclass(frozen=True)
class Kind:
    question: str
    """Its class, as "module:name": it loads with the first plan."""
    page: str
    """Its part of a release's page, in the same way: tables are read without it."""
    tables: tuple[Table, ...]
    """What it publishes."""


def loaded(place: str) -> Any:
    """What stands at "module:name"."""
    module, name = place.split(":")
    return getattr(import_module(module), name)
