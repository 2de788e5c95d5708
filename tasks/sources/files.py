"""A folder or pattern of files as one source; each file is a part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import duckdb

from pldp.errors import SourceError
from pldp.tasks.inbox import printable
from pldp.tasks.query import connect_memory
from pldp.tasks.sources.file import File
from pldp.tasks.sources.listing import list_files
from pldp.tasks.sources.source import Source, cut


@dataclass(frozen=True)
class Files(Source):
    """Files of one format with the same columns, in the order of their names."""

    path: Path
    file_at: Callable[[Path], File] = field(compare=False)

    @property
    def name(self) -> str:
        return printable(self.path)

    @cached_property
    def _files(self) -> tuple[File, ...]:
        files = tuple(self.file_at(listed.path) for listed in list_files(self.path, self.outcome))
        other = next((file for file in files if file.format != files[0].format), None)
        if other is not None:
            raise SourceError(
                f"{files[0].name} ends like {files[0].format} and {other.name} like {other.format}",
                self.outcome,
                file=self.name,
                remedy=f"State {self.field}.format, or name files of one format with a pattern.",
            )
        return files

    @cached_property
    def _columns(self) -> tuple[str, ...]:
        first, *others = self._files
        columns, shape = first.columns(), first.shape()
        for other in others:
            if other.shape() != shape:
                raise SourceError(
                    f"its columns are not those of {first.name} (in CSV the order counts, in Parquet the types)",
                    self.outcome,
                    file=other.name,
                    remedy="Files of one source have the same columns.",
                )
        return columns

    def columns(self) -> tuple[str, ...]:
        return self._columns

    def rows(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        return self._files[0].read(connection, self._files)

    def count(self, named: Iterable[str | None]) -> int:
        wanted = tuple(named)
        return sum(file.count(wanted) for file in self._files)

    def unreadable(self) -> SourceError:
        """Of the first file that cannot be read to its end, if it is found."""
        for file in self._files:
            if _readable(file) is None:
                return file.unreadable()
        return SourceError(
            "its files cannot be read to their ends", self.outcome, file=self.name, remedy="Check that they are whole."
        )

    @property
    def rejects(self) -> bool:
        return self._files[0].rejects

    @property
    def trim(self) -> bool:
        return self._files[0].trim

    @property
    def misread(self) -> str:
        return self._files[0].misread

    def place(self, row: int) -> tuple[str, int]:
        """The rows of a file are counted again, which only a refusal needs."""
        for file in self._files:
            n = _readable(file)
            if n is None or row <= n:
                return file.place(row)
            row -= n
        return self.name, row

    def parts(self, most: int) -> tuple[Source, ...]:
        return tuple(
            SomeFiles(self.field, self.outcome, self.path, self.file_at, tuple(files))
            for files in cut(self._files, most)
        )

    def header(self, known: tuple[str, ...], named: set[str]) -> list[str]:
        return self._files[0].header(known, named)


@dataclass(frozen=True)
class SomeFiles(Files):
    """Some of the files of a source, whose columns were compared with the others' when they were listed."""

    chosen: tuple[File, ...] = ()

    @cached_property
    def _files(self) -> tuple[File, ...]:
        return self.chosen


def _readable(file: File) -> int | None:
    """How many rows of a file are read; None where it cannot be read to its end."""
    try:
        with connect_memory() as database:
            return int(file.rows(database).aggregate("count(*)").fetchall()[0][0])
    except (duckdb.Error, SourceError):
        return None
