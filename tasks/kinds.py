"""Specs of every kind: which one a file is of, and how it is read. A kind is imported by who has a spec of it."""

from __future__ import annotations

from pathlib import Path

from pldp.tasks.run import AnyFile
from pldp.tasks.specfile import AGGREGATES, ITEMS, Given, kind_of, load_spec


def load_any(path: Path, source: Path | None = None, runner: Given = None, *, evaluation: bool = False) -> AnyFile:
    """A valid spec of whatever kind; an evaluation may ask for what no release does."""
    kind = kind_of(path)
    if kind == AGGREGATES:
        from pldp.tasks.aggregates.file import load_aggregates

        return load_aggregates(path, source, runner)
    if kind == ITEMS:
        from pldp.tasks.items.file import load_items

        return load_items(path, source, runner, evaluation=evaluation)
    return load_spec(path, source, runner)
