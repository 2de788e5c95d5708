"""What makes a CSV file one of which the database would lose rows: the rules, where one is broken, and the remedy."""

from __future__ import annotations

from dataclasses import dataclass

LONGEST = 2_000_000
"""Bytes of a record. The database drops a record that fills its buffer (csvfile.py), and may not say so."""
MOST_LINES = 1_000
"""Lines of one record: two stray quotes would otherwise make one cell of everybody between them."""

NOT_TEXT = "the cell holds a byte that is not UTF-8"
LONG = f"the row has more than {LONGEST:,} bytes"
UNCLOSED = (
    f"a quote opens here that is not closed, by the end of the file or within {MOST_LINES:,} lines, so the rows after "
    "it would be lost"
)
STRAY = "a quote stands here that neither opens nor closes a cell, so rows would be lost"


@dataclass(frozen=True)
class CsvFault(Exception):
    """What is wrong with a file, and where: a physical line from 1, and a cell of its row from 0 if that is known."""

    line: int
    rule: str
    cell: int | None = None

    def remedy(self, field: str) -> str:
        """`field` is the section of the spec that names the file."""
        if self.rule == NOT_TEXT:
            return "Write the file as UTF-8."
        if self.rule in (UNCLOSED, STRAY):
            return (
                f"Close the quote, or double it inside a cell that is in quotes; where quotes are plain text, say "
                f'`quote: ""` in {field}.csv.'
            )
        return f"Shorten it, or close the quote that it starts with; check {field}.csv."
