"""Rows that a source has and the vault has not: counted, told to the operator, and refused where they are too many.

Counts stand in the vault and on the operator's terminal only; nothing of them is published.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import duckdb

from pldp.errors import SourceError
from pldp.tasks.positions import EMPTY
from pldp.tasks.query import connect, statement
from pldp.tasks.run import Run
from pldp.tasks.sources.csvfile import REJECTS
from pldp.tasks.sources.source import Source

NO_USER, STRANGER = "NO USER ID", "NOT IN THE TABLE OF PEOPLE"
Reasons = tuple[tuple[str, int], ...]
"""Why rows do not parse, in the reader's words, and how many."""


def rejected(connection: duckdb.DuckDBPyConnection, file: Source) -> tuple[int, Reasons]:
    """How many rows of the file that the connection has read last do not parse, and why; forgotten with this call."""
    if not file.rejects:
        return 0, ()
    (rows,) = connection.execute(statement("14_ingest_rejected_rows")).fetchall()[0]
    reasons = connection.execute(statement("14_ingest_rejects")).fetchall()
    connection.execute(statement("14_ingest_forget_rejects"))
    return int(rows), tuple((str(why), int(n)) for why, n in reasons)


@dataclass(frozen=True)
class FileRead:
    """A file as it was looked at and read."""

    file: Source
    most: Fraction
    """The share of rows that may be left out."""
    records: int
    """Rows that stand in the file."""
    rejected: int = 0
    reasons: Reasons = ()

    def account(self, vault: duckdb.DuckDBPyConnection, rows: int, nameless: int) -> None:
        """Write down what was left out of so many rows that were read, some of them without a user."""
        records = self.records
        if rows > records or (self.rejected < REJECTS and rows + self.rejected != records):
            raise SourceError(
                f"{records:,} rows stand in the file and {rows:,} were "
                f"read{f', {self.rejected:,} do not parse' if self.rejected else ''}: the rest was lost",
                self.file.outcome,
                file=self.file.name,
                remedy=(
                    f"Check that quotes are closed and doubled inside cells, {self.file.field}.csv, and that the "
                    "file is whole."
                ),
            )
        left = records - rows + nameless
        # Where nobody is left, that is what is said.
        if left > self.most * records and rows > nameless:
            reasons = ", ".join(f"{n:,} {_words(why)}" for why, n in (*self.reasons, (NO_USER, nameless)) if n)
            raise SourceError(
                f"{left:,} of {records:,} rows would be left out ({reasons}), more than the share source.max_left_out "
                f"allows ({float(self.most):g})",
                self.file.outcome,
                file=self.file.name,
                remedy="Mend them, or state a larger share.",
            )
        for why, n in (*self.reasons, (NO_USER, nameless)):
            vault.execute(
                statement("13_ingest_quarantine"), {"file": self.file.field, "reason": why, "n": n, "of": records}
            )


def account_strangers(
    vault: duckdb.DuckDBPyConnection, file: Source, most: Fraction, records: int, strangers: int
) -> None:
    """Write down how many rows are of people who do not stand in the table of people, and refuse too many."""
    if strangers > most * records:
        raise SourceError(
            f"{strangers:,} of {records:,} rows would be left out ({_words(STRANGER)}), more than the share "
            f"{file.field}.max_left_out allows ({float(most):g})",
            file.outcome,
            file=file.name,
            remedy="Add these people, or state a larger share.",
        )
    if strangers:
        left = {"file": file.field, "reason": STRANGER, "n": strangers, "of": records}
        vault.execute(statement("13_ingest_quarantine"), left)


def remarks(run: Run) -> list[str]:
    """What the operator should know of what was read, in sentences: counts, never values."""
    if not run.vault.exists():  # clients' reports
        return []
    with connect(run.vault, read_only=True) as connection:
        left = connection.execute(statement("19_ingest_quarantine")).fetchall()
        unstated = connection.execute(statement("19_ingest_unstated")).fetchall()
    sentences = [
        f"{file}: {n:,} of {of:,} rows {'was' if n == 1 else 'were'} left out: {_words(why)}"
        for file, why, n, of in left
    ]
    for column, why, n, becomes in unstated:
        state = "hold nothing" if why == EMPTY else "hold what the spec does not declare"
        sentences.append(f"column {column}: {n:,} cells {state}, and count as {becomes}")
    return sentences


def _words(reason: str) -> str:
    return {
        NO_USER: "without a user id",
        STRANGER: "of users who do not stand in the table of people",
        "MISSING COLUMNS": "with too few cells",
        "TOO MANY COLUMNS": "with too many cells",
    }.get(reason, reason.lower())
