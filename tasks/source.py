"""What a spec reads, as ingest and check see it: the tables that its questions describe, with the files they lie in."""

from __future__ import annotations

from dataclasses import replace

from pldp.errors import Outcome
from pldp.questions.source import HoldingsTable, SourceTable
from pldp.questions.specs import SPECS
from pldp.spec.source import Located
from pldp.tasks.holdings import Holdings
from pldp.tasks.people import People
from pldp.tasks.sources.registry import source_at
from pldp.tasks.sources.source import Source
from pldp.tasks.specfile import SpecFile


def described(file: SpecFile, *, truth: bool = False) -> tuple[People | Holdings, ...]:
    """The tables that a spec reads; with `truth` what only an evaluation keeps of them is there too."""
    tables = SPECS[file.spec.kind].reads(file.spec, file.plan, file.tables)
    return tuple(_with_files(file, table if truth else _published(table), i) for i, table in enumerate(tables))


def _published(table: SourceTable) -> SourceTable:
    """As a release reads it."""
    if isinstance(table, HoldingsTable):
        return table
    return replace(table, fields=tuple(field for field in table.fields if not field.truth))


def _with_files(file: SpecFile, table: SourceTable, number: int) -> People | Holdings:
    rows = _at(file, table.source, "source")
    if not isinstance(table, HoldingsTable):
        return People(**vars(table), file=rows, name=f"people-{number}")
    users = None if table.users is None else _at(file, table.users, "users")
    return Holdings(**vars(table), file=rows, users_file=users, name=f"held-{number}")


def _at(file: SpecFile, section: Located, field: str) -> Source:
    path = file.source if section.remote else file.resolve(section.path or "")
    return source_at(path, section, field, Outcome.NOTHING_PERTURBED)
