"""What sources that are files share: where they lie, and what is said of one that is not there or not whole."""

from __future__ import annotations

import os
import stat
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import duckdb

from pldp.errors import Problem, SourceError
from pldp.tasks.inbox import printable
from pldp.tasks.query import literal
from pldp.tasks.sources.source import Source


@dataclass(frozen=True)
class File(Source):
    """One file; others of its kind can be read together with it."""

    path: Path
    format: ClassVar[str]

    @property
    def name(self) -> str:
        return printable(self.path)

    def problem(self) -> Problem | None:
        try:
            state = self.path.stat()
        except OSError as error:
            return Problem(f"cannot be read ({error.strerror})", file=self.name, remedy=self.elsewhere)
        if not stat.S_ISREG(state.st_mode):
            remedy = "Name a file that can be read from its start again."
            return Problem("is no regular file", file=self.name, remedy=remedy)
        return None

    def rows(self, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
        return self.read(connection, [self])

    @abstractmethod
    def read(self, connection: duckdb.DuckDBPyConnection, files: Sequence[Self]) -> duckdb.DuckDBPyRelation:
        """The rows of several files that have this one's columns, one file after the other. A folder that is named
        level=low says nothing of the people in it."""

    @abstractmethod
    def shape(self) -> object:
        """What files that are read together have alike."""

    def require_regular(self) -> None:
        """A pipe would be waited for, a device has no end."""
        if os.path.exists(self.path) and not os.path.isfile(self.path):  # neither raises for a path that cannot be
            raise self.unreadable()

    def usable(self, names: Sequence[str]) -> tuple[str, ...]:
        """Column names as they stand in the header; refuses none, and two that the database cannot tell apart. They
        are told by their places: what is taken for a header may be somebody's row."""
        folded = [name.lower() for name in names]  # DuckDB takes no notice of case
        twice = next((at for at, name in enumerate(folded) if name in folded[:at]), None)
        if names and twice is None:
            return tuple(names)
        rule = f"cannot be read as {self.format} with a header"
        remedy = f"Check that the file is whole, {self.field}.format and {self.field}.csv."
        if twice is not None:
            rule = f"columns {folded.index(folded[twice]) + 1} and {twice + 1} have one name, letter case aside"
            remedy = f"Rename one of them, or correct {self.misread}."
        raise SourceError(rule, self.outcome, file=self.name, remedy=remedy)

    def unreadable(self) -> SourceError:
        ends = ", that all its lines end alike" if self.rejects else ""
        return SourceError(
            f"cannot be read to its end as {self.format}",
            self.outcome,
            file=self.name,
            remedy=f"Check that the file is whole{ends}, {self.field}.format and {self.field}.csv.",
        )


def literals(files: Sequence[File]) -> list[str]:
    """The paths of files as literals of SQL."""
    return [literal(file.path) for file in files]
