"""Landing: rows of a server are exported to the vault's side before a run is named after them.

The export of a slot is made once, in one snapshot of the server, and is the source of its release until that is
published or refused: a release that was killed is resumed from what it read, whatever the table has become since.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from pldp.errors import Outcome
from pldp.tasks.drafts import alive
from pldp.tasks.durable import delete_folder, delete_or_refuse, make_folder
from pldp.tasks.home import Home
from pldp.tasks.publish import status_of
from pldp.tasks.source import described
from pldp.tasks.sources.postgres import PostgresTable
from pldp.tasks.specfile import SpecFile

_RELEASE, _EVALUATION = "release", "evaluation"


def land(home: Home, file: SpecFile, slot: str, *, evaluation: bool = False) -> SpecFile:
    """The spec with its export beside it, made now unless this slot has one; any other spec as it is.

    A release calls it under the home's lock.
    """
    if not file.spec.source.remote or file.landed is not None:
        return file
    exports = home.root / "exports"
    make_folder(exports)
    if evaluation:
        parts = (_EVALUATION, str(os.getpid()), secrets.token_hex(8), "")
    else:
        digest = hashlib.sha256(f"{file.identity}\n{slot}".encode()).hexdigest()[:16]
        parts = (_RELEASE, file.spec.name, slot, digest)
    folder = exports / "@".join(parts)
    _sweep(home, exports, folder)
    path = folder / "rows.parquet"
    if not path.exists():
        make_folder(folder)
        try:
            _export(file, path)
        except BaseException:
            delete_folder(folder)
            raise
    return replace(file, landed=path)


def forget_landing(file: SpecFile) -> None:
    """The end of an export: what it held is drawn from, or refused."""
    if file.landed is not None:
        _delete(file.landed.parent)


@contextmanager
def landed(file: SpecFile) -> Iterator[None]:
    """An export ends with this, whatever comes of it."""
    try:
        yield
    finally:
        forget_landing(file)


def _export(file: SpecFile, path: Path) -> None:
    read = [rows for table in described(file) for rows in table.dealt]
    tables = {rows.file: None for rows in read if isinstance(rows.file, PostgresTable)}
    if len(tables) != 1:
        raise ValueError("one table of a server is read")
    (table,) = tables
    draft = path.with_name(".rows")
    table.export(draft, [column for rows in read if rows.file == table for column in rows.columns])
    draft.rename(path)


def _sweep(home: Home, exports: Path, current: Path) -> None:
    """Delete exports that nobody comes back for: of evaluations that died, of releases that are done or never spent."""
    begun = {
        (spend.get("name"), spend.get("slot"))
        for spend in home.spends()
        if status_of(home, str(spend["release_id"])) is None
    }
    for folder in exports.iterdir():
        of, name, slot, _ = folder.name.split("@")
        kept = alive(int(name)) if of == _EVALUATION else (name, slot) in begun
        if folder != current and not kept:
            _delete(folder)


def _delete(folder: Path) -> None:
    delete_or_refuse(folder, "raw values", Outcome.AS_BEFORE, "Delete the folder yourself.")
