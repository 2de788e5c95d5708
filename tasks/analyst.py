"""What analysts ask of the results: queries and groups of values. Nothing here can write, or read another file.

Questions go to a copy of the results in memory, in a connection that may touch no file at all. DuckDB itself would
leave it the file it has open and the write-ahead log beside it, and even a SELECT can write there:
`WITH x AS (COPY … TO 'results-1.duckdb.wal') FROM x` changes what every later reader sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import NormalDist
from typing import Any

import duckdb
import numpy as np

from pldp.errors import HomeError, NotFound, Outcome, RequestError
from pldp.estimate.answer import gamma_of
from pldp.estimate.groups import GroupLevels, group_ends
from pldp.estimate.invert import Cover
from pldp.tasks.home import Home
from pldp.tasks.query import refuse_log, statement, text

_ALONE: dict[str, str | bool | int | float | list[str]] = {
    "python_enable_replacements": "false",  # this program's variables are no tables
    "temp_directory": "",  # an analyst may have no place to write, and results fit in memory
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}
# MULTI is a PIVOT that has to look for its columns first.
_READING = (duckdb.StatementType.SELECT, duckdb.StatementType.MULTI)
_EXPLAIN = re.compile(r"\s*EXPLAIN\s+(?:ANALY[SZ]E\b\s*)?(?:\([^()]*\)\s*)?", re.IGNORECASE)


@dataclass(frozen=True)
class Answer:
    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]
    whole: bool
    """Whether these are all rows."""

    def as_dicts(self) -> list[dict[str, Any]]:
        if len(set(self.columns)) < len(self.columns):
            raise RequestError("The query names two columns alike; tell them apart with AS", Outcome.NOTHING_CHANGED)
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


@contextmanager
def reading(home: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The newest results, locked up: errors of DuckDB become ours, with its words, as results hold no raw data.

    The link is resolved once: whatever is published from now on goes to another file, and this one stays whole.
    """
    link = Home(home).results
    if not link.exists():
        raise NotFound(
            "no results yet",
            Outcome.NOTHING_READ,
            file=home,
            remedy=f"`pldp release SPEC --home {home}` makes the first.",
        )
    path = link.resolve()
    refuse_log(path)
    connection = duckdb.connect(":memory:", config=_ALONE)
    try:
        connection.execute(statement("88_analyst_attach", path=text(str(path))))
        connection.execute(statement("88_analyst_copy"))
        connection.execute("DETACH results")
        if _knows(connection, "difference_estimate"):  # results as old as it lack what it is made of now
            connection.execute(statement("62_publish_chosen_release"))
            connection.execute(statement("63_publish_group_levels"))
        connection.execute("SET enable_external_access = false")  # no file, no network, no extension
        connection.execute("SET lock_configuration = true")
        connection.execute("BEGIN TRANSACTION READ ONLY")  # the copy would not mind, but whoever asks believes it
    except duckdb.Error as error:
        connection.close()
        raise HomeError(
            f"the results cannot be opened ({_words(error)})",
            Outcome.NOTHING_CHANGED,
            file=path,
            remedy="If another program has them open for writing, close it: analysts open them with read_only.",
        ) from None
    try:
        yield connection
    except duckdb.Error as error:
        raise RequestError(_words(error), Outcome.NOTHING_CHANGED) from None
    finally:
        connection.close()


def ask(home: Path, sql: str, limit: int | None = None) -> Answer:
    """What a query returns, up to a number of rows."""
    with reading(home) as connection:
        _refuse_writing(connection, sql)
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
    """The share of a group of values with its error, by the results' own `group_estimate`.

    Where reports support at most one of the values, the interval is this program's: it tests every share with its own
    weights and law.
    """
    parameters = _group_parameters(release, attribute, values, confidence, population)
    with reading(home) as connection:
        _require(connection, home, "group_estimate")
        (row,) = fetch(connection, statement("84_analyst_group"), parameters).as_dicts()
        if not _knows(connection, "difference_estimate"):  # an earlier version's, without what the tests need
            return row
        named = {name: parameters[name] for name in ("release", "attribute", "values")}
        levels = fetch(connection, statement("84_analyst_group_levels"), named).as_dicts()
    cover = Cover(gamma_of(_gamma(levels)), confidence, population)
    parts = _group_levels(levels)
    ends = None if parts is None else group_ends(row["method"], parts, cover, row["frequency"])
    if ends is not None:
        row |= {"ci_low": float(ends.low[0]), "ci_high": float(ends.high[0])}
    return row


def ask_difference(
    home: Path,
    release: str,
    attribute: str,
    values: Sequence[str],
    others: Sequence[str],
    *,
    confidence: float = 0.95,
    population: bool = False,
) -> dict[str, Any]:
    """The share of one group of values minus that of another, by the results' own `difference_estimate`."""
    parameters = _group_parameters(release, attribute, values, confidence, population) | {"others": list(others)}
    with reading(home) as connection:
        _require(connection, home, "difference_estimate")
        (row,) = fetch(connection, statement("84_analyst_difference"), parameters).as_dicts()
    return row


def _group_parameters(
    release: str, attribute: str, values: Sequence[str], confidence: float, population: bool
) -> dict[str, Any]:
    z = NormalDist().inv_cdf(0.5 + confidence / 2)
    return {"release": release, "attribute": attribute, "values": list(values), "z": z, "population": population}


def _knows(connection: duckdb.DuckDBPyConnection, macro: str) -> bool:
    return bool(connection.execute(statement("88_analyst_knows_groups"), {"macro": macro}).fetchall())


def _require(connection: duckdb.DuckDBPyConnection, home: Path, macro: str) -> None:
    if not _knows(connection, macro):
        raise NotFound(
            "these results were published before groups were; the next release adds them",
            Outcome.NOTHING_CHANGED,
            file=home,
        )


def _gamma(levels: Sequence[Mapping[str, Any]]) -> float | None:
    declared = levels[0]["dependence"]
    return None if declared == "unknown" else float(declared)


def _group_levels(levels: Sequence[Mapping[str, Any]]) -> GroupLevels | None:
    """None where the macro's interval is all there is: results of earlier versions, and groups of all values."""
    first = levels[0]
    if not all(level["known"] for level in levels) or first["n_values"] == first["n_declared"]:
        return None
    frequency, member, other, slope, base = (
        np.array([level[part] for level in levels]) for part in ("frequency", "own", "other", "slope", "base")
    )
    return GroupLevels(
        n=np.array([level["n"] for level in levels]),
        frequency=frequency,
        held=member,
        other=other,
        slope=slope,
        base=base,
        n_values=first["n_values"],
    )


def _refuse_writing(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """One statement, and one that reads. Whatever slips through meets a read-only transaction without files."""
    types = _types(connection, sql)
    if types == [duckdb.StatementType.EXPLAIN]:
        # What is explained is executed too if it says ANALYZE, so it must read as well.
        start = _EXPLAIN.match(explained := connection.extract_statements(sql)[0].query)
        types = _types(connection, explained[start.end() :]) if start else [None]
    if not types:
        raise RequestError("The query is empty", Outcome.NOTHING_CHANGED)
    if len(types) > 1:
        raise RequestError("One statement at a time", Outcome.NOTHING_CHANGED, value=str(len(types)))
    if types[0] not in _READING:
        what = "another" if types[0] is None else types[0].name
        raise RequestError(
            "`pldp query` only reads: give one SELECT, FROM, WITH, VALUES, PIVOT, DESCRIBE, SUMMARIZE or SHOW, or "
            "EXPLAIN before one",
            Outcome.NOTHING_CHANGED,
            value=str(what),
        )


def _types(connection: duckdb.DuckDBPyConnection, sql: str) -> list[duckdb.StatementType | None]:
    """None is a statement that Python's DuckDB has no name for."""

    def known(parsed: duckdb.Statement) -> duckdb.StatementType | None:
        try:
            return parsed.type
        except ValueError:
            return None

    return [known(parsed) for parsed in connection.extract_statements(sql)]


def fetch(
    connection: duckdb.DuckDBPyConnection, sql: str, parameters: Mapping[str, Any], limit: int | None = None
) -> Answer:
    """Run one query: at most `limit` rows, and whether these are all of them. RequestError where the text is empty."""
    result = connection.execute(sql, parameters) if parameters else connection.execute(sql)
    # Nothing comes back of an empty text.
    columns = tuple(column[0] for column in (result and result.description) or ())
    if not columns:
        raise RequestError("The query is empty", Outcome.NOTHING_CHANGED)
    if limit is None:
        return Answer(columns, result.fetchall(), whole=True)
    rows = result.fetchmany(limit + 1)
    return Answer(columns, rows[:limit], whole=len(rows) <= limit)


def _words(error: duckdb.Error) -> str:
    return str(error).removeprefix("Invalid Input Error: ").rstrip()
