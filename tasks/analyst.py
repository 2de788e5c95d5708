"""What analysts ask of the results: queries and groups of values. Nothing here can write, or read another file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import duckdb

from pldp.errors import HomeError, NotFound, RequestError
from tasks.home import Home
from tasks.query import statement

_LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",  # no other file, no network, no extension
    "python_enable_replacements": "false",  # nor this program's own variables
    "temp_directory": "",  # an analyst may have no place to write, and results fit in memory
    "lock_configuration": "true",
}


@dataclass(frozen=True)
class Answer:
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    whole: bool
    """Whether these are all rows."""

    def as_dicts(self) -> list[dict[str, Any]]:
        if len(set(self.columns)) < len(self.columns):
            raise RequestError("The query names two columns alike; tell them apart with AS. Nothing was changed.")
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@contextmanager
def reading(home: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The newest results, locked up: errors of DuckDB become ours, with its words, as results hold no raw data.

    The link is resolved once: whatever is published from now on goes to another file, and this one stays whole.
    """
    link = Home(home).results
    if not link.exists():
        raise NotFound(f"{home}: no results yet. `pldp release SPEC --home {home}` makes the first. Nothing was read.")
    path = link.resolve()
    try:
        connection = duckdb.connect(str(path), read_only=True, config=_LOCKED)
    except duckdb.Error as error:
        raise HomeError(
            f"{path}: the results cannot be opened ({_words(error)}). If another program has them open for writing, "
            "close it: analysts open them with read_only. Nothing was changed."
        ) from None
    try:
        yield connection
    except duckdb.Error as error:
        raise RequestError(f"{_words(error)}\nNothing was changed.") from None
    finally:
        connection.close()


def ask(home: Path, sql: str, limit: int | None = None) -> Answer:
    """What a query returns, up to a number of rows."""
    with reading(home) as connection:
        return fetch(connection, sql, {}, limit)


def ask_group(
    home: Path,
    release: str,
    attribute: str,
    values: Sequence[str],
    *,
    confidence: float = 0.95,
    population: bool = False,
) -> dict[str, Any]:
    """The share of a group of values with its error, by the results' own `group_estimate`."""
    parameters = {
        "release": release,
        "attribute": attribute,
        "values": list(values),
        "z": NormalDist().inv_cdf(0.5 + confidence / 2),
        "population": population,
    }
    with reading(home) as connection:
        if not connection.execute(statement("88_analyst_knows_groups")).fetchall():
            raise NotFound(f"{home}: these results were published before groups were; the next release adds them.")
        (row,) = fetch(connection, statement("84_analyst_group"), parameters).as_dicts()
    return row


def fetch(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any], limit: int | None = None
) -> Answer:
    result = connection.execute(sql, parameters) if parameters else connection.execute(sql)
    # Nothing comes back of an empty text.
    columns = tuple(column[0] for column in (result and result.description) or ())
    if not columns:
        raise RequestError("The query is empty. Nothing was changed.")
    if limit is None:
        return Answer(columns, result.fetchall(), whole=True)
    rows = result.fetchmany(limit + 1)
    return Answer(columns, rows[:limit], whole=len(rows) <= limit)


def _words(error: duckdb.Error) -> str:
    return str(error).removeprefix("Invalid Input Error: ").rstrip()
