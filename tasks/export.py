"""Export: the tables of one release as files, for those who do not read DuckDB."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import polars as pl

from pldp.errors import Outcome, RequestError
from pldp.tasks.analyst import fetch, reading
from pldp.tasks.home import Home
from pldp.tasks.query import statement
from pldp.tasks.results import no_release
from pldp.tasks.schema import read_rows

Format = Literal["parquet", "csv"]

_WRITERS: dict[Format, Callable[[pl.DataFrame, Path], None]] = {
    "parquet": lambda frame, path: frame.write_parquet(path),
    "csv": lambda frame, path: _flat(frame).write_csv(path),
}


def _flat(frame: pl.DataFrame) -> pl.DataFrame:
    """Lists as JSON: CSV has none."""
    lists = [name for name, kind in frame.schema.items() if isinstance(kind, pl.List)]
    return frame.with_columns(
        pl.Series(name, [json.dumps(cell, ensure_ascii=False) for cell in frame[name].to_list()], dtype=pl.String)
        for name in lists
    )


def export_release(
    home: Path, wanted: str, folder: Path, kind: Format = "parquet", *, force: bool = False
) -> list[str]:
    """Write every table of a release, and its privacy statement if it has one, into a folder; the files' names.

    Files of an earlier export are replaced only by force, and only after all new ones are written.
    """
    release_id, tables = read_tables(home, wanted)
    statement_path = Home(home).releases / release_id / "privacy.json"
    names = [f"{table}.{kind}" for table in tables] + (["privacy.json"] if statement_path.exists() else [])
    present = [name for name in names if (folder / name).exists()]
    if present and not force:
        raise RequestError(
            f"{', '.join(present)} would be overwritten",
            Outcome.NOTHING_WRITTEN,
            file=folder,
            remedy="Give another folder, or --force.",
        )
    with replacing(folder, names, "export") as draft:
        for table, frame in tables.items():
            _WRITERS[kind](frame, draft / f"{table}.{kind}")
        if statement_path.exists():
            shutil.copyfile(statement_path, draft / statement_path.name)
    return names


@contextmanager
def replacing(folder: Path, names: Sequence[str], what: str) -> Iterator[Path]:
    """A draft to write all names into before they replace those of the folder."""
    draft = folder / f".{what}-{os.getpid()}"
    try:
        draft.mkdir(parents=True, mode=0o700)
        yield draft
        for name in names:
            (draft / name).replace(folder / name)
    except OSError as error:
        raise RequestError(
            f"the {what} cannot be written ({error.strerror or 'input or output failed'})",
            Outcome.AS_BEFORE,
            file=folder,
            remedy="Check the folder.",
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def read_tables(home: Path, wanted: str) -> tuple[str, dict[str, pl.DataFrame]]:
    """A release's id and its rows of every published table, empty ones too: a refused release has few."""
    with reading(home) as connection:
        releases = fetch(connection, statement("85_analyst_release"), {"wanted": wanted}).rows
        if not releases:
            raise no_release(home, wanted)
        release_id = str(releases[0][0])
        tables = read_rows(connection, release_id)
    return release_id, tables
