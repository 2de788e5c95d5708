"""A small public file, read whole: every row of it counts, so one that does not parse refuses it."""

from __future__ import annotations

from collections.abc import Mapping

import duckdb
import polars as pl

from pldp.errors import SourceError
from pldp.tasks.query import connect_memory, statement
from pldp.tasks.sources.source import Source


def read_whole(source: Source, wanted: Mapping[str, str | None]) -> pl.DataFrame:
    """Cells as text under names of ours, empty ones null, with the number of their row (`position`)."""
    problem = source.problem()
    if problem is not None:
        raise SourceError.of([problem], source.outcome)
    with connect_memory() as database:
        texts = source.texts(database, wanted)
        try:
            query = statement("10_ingest_catalogue", source=texts.sql_query())
            rows = database.sql(query).pl()
            rejected = source.rejects and database.execute(statement("10_ingest_rejected")).fetchall()[0][0]
        except duckdb.Error:  # whose message quotes rows
            rejected = True
    if rejected:
        raise source.unreadable()
    if rows.is_empty():
        raise SourceError("must hold at least one row", source.outcome, file=source.name)
    return rows
