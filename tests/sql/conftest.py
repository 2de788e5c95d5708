"""The published tables and views, made once: two hundred statements take longer than most tests."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest

from pldp.questions.tables import PUBLISHED
from pldp.tasks.schema import prepare_tables


@pytest.fixture(scope="session")
def prepared() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        prepare_tables(connection)
        yield connection


@pytest.fixture
def results(prepared: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables, empty: what a test puts into them is gone after it, and so is what it has made beside them."""
    with prepared.cursor() as connection:
        yield connection
    for table in PUBLISHED:
        prepared.execute(f"DELETE FROM {table.name}")  # noqa: S608 — declared
