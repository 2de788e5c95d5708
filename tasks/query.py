"""The one way to SQL: statements from sql/, connections to DuckDB, and errors without data in them."""

from __future__ import annotations

import errno
import glob
import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path

import duckdb

from pldp.errors import HomeError, Outcome
from pldp.tasks.cores import cores

MEMORY, MEMORY_A_COLUMN = 64, 2
"""Megabytes a connection may hold before it spills beside its database: by columns, never by users."""

MEMORY_READ, AHEAD = 160, 8
"""Megabytes of one that reads a source, and how many of them are rows that are ready before they are asked for."""

FULL = os.strerror(errno.ENOSPC)

_ALONE = {"autoinstall_known_extensions": "false", "autoload_known_extensions": "false"}
"""A file decides by its first bytes what DuckDB would fetch from the network and run to read it."""


def statement(name: str, **lists: str) -> str:
    """The text of sql/<name>.sql; `lists` fill in what SQL cannot take as a parameter: columns, in quotes."""
    # In one pass: a column may be named like a place to fill in.
    return re.sub(r"\{(\w+)\}", lambda place: lists.get(place[1], place[0]), _stored(name))


@cache
def _stored(name: str) -> str:
    """Read once: publishing asks for the same two files more than a hundred times."""
    return files("pldp.sql").joinpath(f"{name}.sql").read_text(encoding="utf-8")


def over(relation: duckdb.DuckDBPyRelation, name: str, query: str) -> duckdb.DuckDBPyRelation:
    """What a query finds in a relation, which it calls by this name."""
    result = relation.query(name, query)
    if result is None:
        raise ValueError("not a query")
    return result


def identifier(name: str) -> str:
    """A name as SQL takes it."""
    return '"' + name.replace('"', '""') + '"'


def literal(path: Path) -> str:
    """A path that the database takes as it stands: `items[1].csv` is one file, not a pattern for items1.csv."""
    return re.sub(r"([*?\[])", r"[\1]", str(path))


def pattern(folder: Path, files: str) -> str:
    """The files of a folder whose names look like this."""
    return f"{literal(folder)}/{files}"


def text(value: str) -> str:
    """A string as a literal of SQL, for the few statements that take no parameters."""
    return "'" + value.replace("'", "''") + "'"


@contextmanager
def connect(path: Path, *, read_only: bool = False, columns: int = 0) -> Iterator[duckdb.DuckDBPyConnection]:
    """A connection that is always closed and spills only beside its own database."""
    connection = duckdb.connect(
        str(path),
        read_only=read_only,
        config={
            "memory_limit": f"{MEMORY + MEMORY_A_COLUMN * columns}MB",
            "temp_directory": str(path.parent / "spill"),
            "threads": str(cores()),
            **_ALONE,
        },
    )
    try:
        connection.execute("SET enable_progress_bar = false")
        yield connection
    finally:
        connection.close()


@contextmanager
def connect_scratch(folder: Path, columns: int, *, ordered: bool = True) -> Iterator[duckdb.DuckDBPyConnection]:
    """A database of no file that reads a source and spills only inside the folder.

    One that is not `ordered` reads and writes rows in any order, which is faster and takes less memory.
    """
    connection = duckdb.connect(
        ":memory:",
        config={
            "memory_limit": f"{MEMORY_READ + MEMORY_A_COLUMN * columns}MB",
            "temp_directory": str(folder / "spill"),
            "threads": str(cores()),
            "preserve_insertion_order": str(ordered).lower(),
            **_ALONE,
        },
    )
    try:
        connection.execute("SET enable_progress_bar = false")
        connection.execute(f"SET streaming_buffer_size = '{AHEAD}MB'")
        yield connection
    finally:
        connection.close()


@contextmanager
def connect_memory() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database that leaves nothing on any disk, for files that fit."""
    threads = {"threads": "1"} if cores() == 1 else {}
    connection = duckdb.connect(":memory:", config={"temp_directory": "", **threads, **_ALONE})
    try:
        yield connection
    finally:
        connection.close()


@contextmanager
def connect_published(results: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The file behind the link, to read. Whoever has it open to write locks readers out; they get a copy."""
    path = results.resolve()
    refuse_log(path)
    with ExitStack() as stack:
        try:
            connection = stack.enter_context(connect(path, read_only=True))
        except duckdb.IOException as error:
            if "Could not set lock" not in str(error):
                raise
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="pldp-")))
            copy = Path(shutil.copyfile(path, folder / path.name))
            connection = stack.enter_context(connect(copy, read_only=True))
        yield connection


def refuse_log(path: Path) -> None:
    """Published results are complete in one file; a log beside it is not ours, and DuckDB would read it as theirs."""
    logs = sorted(path.parent.glob(f"{glob.escape(path.name)}.wal*"))
    if logs:
        raise HomeError(
            "a write-ahead log stands beside the published results",
            Outcome.NOTHING_READ,
            file=logs[0],
            remedy=(
                "No release leaves one: somebody wrote to the results or tried to, and every reader would take it "
                "for part of them. Close whatever has them open for writing, move the log away, and ask `pldp "
                "validate RELEASE` whether the results are those that were published."
            ),
        )


def says_full(error: Exception) -> bool:
    """Whether the disk is full, or what is left of it too small to sort in."""
    return FULL in str(error) or "max_temp_directory_size" in str(error)
