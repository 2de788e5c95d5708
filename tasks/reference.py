"""The reference of the published tables: the parts of docs/tables.md that follow from their declaration.

`python -m pldp.tasks.reference docs/tables.md` (`make reference`) writes them anew.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pldp.questions.tables import PUBLISHED, published_table
from pldp.tables.declaration import Column, Table

_PART = re.compile(r"<!-- table (\w+) -->\n.*?<!-- end of table -->", re.DOTALL)


def part(table: Table) -> str:
    """One table in Markdown, between its marks: what a row is about, and every column."""
    key = ", ".join(f"`{name}`" for name in (table.columns[0].name, *table.key))
    return "\n".join(
        [
            f"<!-- table {table.name} -->",
            f"One row per {table.grain}. Key: {key}.",
            "",
            "| column | type | meaning |",
            "| --- | --- | --- |",
            *(_row(column) for column in table.columns),
            "<!-- end of table -->",
        ]
    )


def _row(column: Column) -> str:
    kind = column.type.value + (" or null" if column.nullable else "")
    return f"| `{column.name}` | {kind} | {column.comment} |"


def renewed(page: str) -> str:
    """The page with every part as the tables are declared now; ValueError where it lacks a table or has it twice."""
    named = _PART.findall(page)
    for table in PUBLISHED:
        if named.count(table.name) != 1:
            raise ValueError(
                f"the page must have one part `<!-- table {table.name} -->` (has {named.count(table.name)})"
            )
    return _PART.sub(lambda mark: part(published_table(mark[1])), page)


def main(paths: list[str]) -> None:
    """Renew pages in place."""
    for path in map(Path, paths):
        path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
