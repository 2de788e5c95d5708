"""What was published, as a hash: taken when a release is published, kept outside the results, compared by `validate`.

A release's rows are carried from one results file to the next, so the hash of a release is of its rows alone, whatever
file they stand in; another hash is of the whole file, with its views and macros and the releases of others.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

from pldp.tasks.drafts import replace
from pldp.tasks.home import Home, open_folder
from pldp.tasks.lines import append, entries
from pldp.tasks.query import connect, connect_published, refuse_log
from pldp.tasks.schema import rows_of, stored_tables

RECORD = "contents.json"
_BESIDE = ("spec.json", "plan.json", "privacy.json")
"""What analysts read of a release beside its tables."""


@dataclass(frozen=True)
class Comparison:
    """The results beside what was written down when the release was published."""

    sha256: str
    """Of the release's rows as they are now."""
    recorded: bool
    """Whether anything was written down: releases of earlier versions have no hash."""
    problems: tuple[str, ...]


def release_hash(connection: duckdb.DuckDBPyConnection, release_id: str) -> str:
    """SHA-256 of a release's rows in all tables: exact values, in any order.

    Cells that are null are left out, so that a column which a later version adds leaves the hash of earlier releases.
    """
    lines = []
    for table in stored_tables(connection):
        rows = rows_of(connection, table, release_id)
        for row in rows.fetchall():
            cells = {name: _exact(cell) for name, cell in zip(rows.columns, row, strict=True) if cell is not None}
            lines.append(json.dumps([table, cells], sort_keys=True, ensure_ascii=False))
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _exact(cell: Any) -> Any:
    match cell:
        case float():
            return cell.hex()
        case datetime():
            return cell.isoformat()
        case list():
            return [_exact(part) for part in cell]
        case _:
            return cell


def file_hash(path: Path) -> str:
    """SHA-256 of a file, in hex."""
    with path.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def record_contents(home: Home, release_id: str, finished: Path, name: str) -> None:
    """Write down what a finished results file holds, before analysts see it under its name.

    In two places, neither of them the results: beside the release's plan, and as a line of a list. A repeated
    publication writes again, and the last line counts.
    """
    folder = home.releases / release_id
    with connect(finished, read_only=True) as connection:
        contents = release_hash(connection, release_id)
    record = {
        "release_id": release_id,
        "contents_sha256": contents,
        "file": name,
        "file_sha256": file_hash(finished),
        "beside": {name: file_hash(folder / name) for name in _BESIDE if (folder / name).exists()},
    }
    open_folder(folder)
    replace(folder / RECORD, (json.dumps(record, indent=2) + "\n").encode(), mode=0o644)
    append(home.publications, record, mode=0o644)


def compare_contents(home: Home, release_id: str) -> Comparison:
    """Hash what is published now and compare it with both records."""
    path = home.results.resolve()
    refuse_log(path)
    with connect_published(home.results) as connection:
        now = release_hash(connection, release_id)
    listed = entries(home.publications)
    beside = _read(home.releases / release_id / RECORD)
    records = {
        f"releases/{release_id}/{RECORD}": beside,
        home.publications.name: next((line for line in reversed(listed) if line.get("release_id") == release_id), None),
    }
    problems = []
    if any(records.values()):
        for place, record in records.items():
            if record is None:
                problems.append(f"{place} has no hash of this release, which was published with one")
            elif record.get("contents_sha256") != now:
                problems.append(f"the published tables do not have the hash that {place} has")
            else:
                problems += _changed(home.releases / release_id, record, place)
    made = next((line for line in reversed(listed) if line.get("file") == path.name), None)
    if made is None and any(records.values()):
        # Rows may be right, and views or macros not.
        problems.append(f"{path.name} is not a file that was published: {home.publications.name} does not name it")
    if made is not None and made.get("file_sha256") != file_hash(path):
        problems.append(
            f"{path.name} is not the file that was published: its hash is not that in {home.publications.name}"
        )
    return Comparison(now, any(records.values()), tuple(problems))


def _changed(folder: Path, record: dict[str, Any], place: str) -> list[str]:
    """Files beside the tables; records of earlier versions have no hash of them."""
    beside = record.get("beside", {})
    return [
        f"releases/{folder.name}/{name} does not have the hash that {place} has"
        for name, sha256 in beside.items()
        if not (folder / name).is_file() or file_hash(folder / name) != sha256
    ]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        content = json.loads(path.read_text())
    except OSError:
        return None
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}
