"""Which source a spec names: by its format, or by how the file's name ends."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pldp.errors import Outcome
from pldp.spec.source import SUFFIXES, Located
from pldp.tasks.sources.csvfile import CsvFile
from pldp.tasks.sources.duckdbtable import DuckdbTable
from pldp.tasks.sources.file import File
from pldp.tasks.sources.files import Files
from pldp.tasks.sources.listing import names_many
from pldp.tasks.sources.parquetfile import ParquetFile
from pldp.tasks.sources.postgres import PostgresTable
from pldp.tasks.sources.source import Source

FILES: dict[str, Callable[[str, Outcome, Path, Located], File]] = {
    "csv": CsvFile.of,
    "parquet": ParquetFile.of,
}
"""By the format that a spec states, sources of which there may be many."""
TABLES: dict[str, Callable[[str, Outcome, Path, Located], Source]] = {
    "duckdb": DuckdbTable.of,
    "postgres": PostgresTable.of,
}
"""And those that are one table each."""


def source_at(path: Path, stated: Located, field: str, outcome: Outcome) -> Source:
    """The source that a section of the spec describes, at its path. `field` and `outcome` are as in Source."""

    if stated.format in TABLES:
        return TABLES[stated.format](field, outcome, path, stated)

    def file(each: Path) -> File:
        return FILES[stated.format or SUFFIXES.get(each.suffix, "csv")](field, outcome, each, stated)

    return Files(field, outcome, path, file) if names_many(path) else file(path)
