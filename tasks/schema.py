"""The declared tables in DuckDB: made, brought up to date in results of earlier versions, and read.

pldp/tables says what there is; here alone a declaration becomes SQL, through the statements of sql/.
"""

from __future__ import annotations

import duckdb
import polars as pl

from pldp.questions.tables import PUBLISHED
from pldp.tables.common import RELEASES
from pldp.tables.declaration import Column, Table
from pldp.tasks.query import identifier, statement, text
from pldp.tasks.tables import completed

_GROUPS = (
    "62_publish_chosen_release",
    "63_publish_group_levels",
    "65_publish_group_estimate",
    "66_publish_group_comment",
    "67_publish_difference_estimate",
    "68_publish_difference_comment",
)


def prepare_tables(connection: duckdb.DuckDBPyConnection) -> None:
    """Every published table, view and macro, whatever version wrote the results; what is there stays as it is."""
    for table in PUBLISHED:
        name = identifier(table.name)
        columns = ", ".join(_definition(column) for column in table.columns)
        connection.execute(statement("50_publish_table", table=name, columns=columns))
        for column in table.columns:
            if column.since:
                connection.execute(statement("51_publish_later_column", table=name, column=_definition(column)))
        _comment(connection, table)
    connection.execute(statement("60_publish_latest_releases"))
    for table in PUBLISHED:
        if table is not RELEASES:
            view = identifier(table.latest)
            connection.execute(statement("61_publish_latest", view=view, table=identifier(table.name)))
    for name in _GROUPS:
        connection.execute(statement(name))


def _definition(column: Column) -> str:
    """A column as CREATE TABLE and ALTER TABLE name it."""
    rule = " PRIMARY KEY" if column.primary else "" if column.nullable else " NOT NULL"
    return f"{identifier(column.name)} {column.type.value}{rule}"


def _comment(connection: duckdb.DuckDBPyConnection, table: Table) -> None:
    name = identifier(table.name)
    comments = [statement("52_publish_table_comment", table=name, comment=text(f"one row per {table.grain}"))]
    for column in table.columns:
        place, comment = identifier(column.name), text(column.comment)
        comments.append(statement("53_publish_column_comment", table=name, column=place, comment=comment))
    connection.execute(";\n".join(comments))


def insert_rows(connection: duckdb.DuckDBPyConnection, table: Table, rows: pl.DataFrame) -> None:
    """Add rows to a table, its columns by name."""
    connection.register("rows", rows.to_arrow())
    connection.execute(statement("70_publish_rows", table=identifier(table.name)))
    connection.unregister("rows")


def stored_tables(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """The tables with rows of releases that these results have, declared here or by another version."""
    return [str(row[0]) for row in connection.execute(statement("86_analyst_tables")).fetchall()]


def rows_of(connection: duckdb.DuckDBPyConnection, table: str, release_id: str) -> duckdb.DuckDBPyRelation:
    """A release's rows of a stored table, in the order of their publication."""
    return connection.sql(statement("80_show_rows", table=identifier(table)), params={"release_id": release_id})


def read_rows(connection: duckdb.DuckDBPyConnection, release_id: str) -> dict[str, pl.DataFrame]:
    """A release's rows of every declared table, `release_id` among them.

    Results of an earlier version lack tables and columns that came later: these are empty here, and null.
    """
    stored = set(stored_tables(connection))
    return {
        table.name: completed(
            table, rows_of(connection, table.name, release_id).pl() if table.name in stored else pl.DataFrame()
        )
        for table in PUBLISHED
    }
